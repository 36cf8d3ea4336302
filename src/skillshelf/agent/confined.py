"""As a script: `confined.py FOLDER… -- PROGRAM ARGUMENT…`. The program can read everything, and write in the folders.

Landlock confines a process and all its children for good, without root. A script of its own, because the agent itself
must not be confined, and because nothing of skillshelf need be imported here.
"""

import os
import sys

from sandlock import Sandbox, confine

# What programs expect to be able to write to, none of which keeps anything.
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/random", "/dev/urandom")


def main() -> None:
    words = sys.argv[1:]
    at = words.index("--")
    folders, program = words[:at], words[at + 1 :]
    devices = [device for device in _DEVICES if os.path.exists(device)]
    confine(Sandbox(fs_readable=["/"], fs_writable=[*folders, *devices]))
    try:
        os.execvp(program[0], program)
    except OSError as error:
        print(f"{program[0]}: {error.strerror}", file=sys.stderr)
        sys.exit(127)


if __name__ == "__main__":
    main()
