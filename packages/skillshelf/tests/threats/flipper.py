"""Script: swap pairs of names as fast as possible until killed: `flipper.py FOLDER NAME OTHER …`.

On Linux both names exist at every moment; elsewhere one is missing for a moment between two renames.
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
    current_folder = -100  # AT_FDCWD
    while True:
        for name, other in pairs:
            if exchange:
                exchange(current_folder, name, current_folder, other, RENAME_EXCHANGE)
            else:
                os.rename(name, name + b".aside")
                os.rename(other, name)
                os.rename(name + b".aside", other)


if __name__ == "__main__":
    main(*sys.argv[1:])
