"""A process that swaps pairs of names as fast as it can until it is killed: `flipper.py FOLDER NAME OTHER …`.

On Linux both names exist at every moment; elsewhere there is a moment between two renames when one is missing.
"""

import ctypes
import os
import sys

RENAME_EXCHANGE = 2


def main(folder: str, *names: str) -> None:
    os.chdir(folder)
    pairs = [(os.fsencode(name), os.fsencode(other)) for name, other in zip(names[::2], names[1::2], strict=True)]
    exchange = getattr(ctypes.CDLL(None), "renameat2", None)
    print("ready", flush=True)
    here = -100  # AT_FDCWD
    while True:
        for name, other in pairs:
            if exchange:
                exchange(here, name, here, other, RENAME_EXCHANGE)
            else:
                os.rename(name, name + b".aside")
                os.rename(other, name)
                os.rename(name + b".aside", other)


if __name__ == "__main__":
    main(*sys.argv[1:])
