"""Ends what is left of a server's process group when the agent does, however that happens, even after `kill -9`.

Started as a script with the number of the group. Its standard input is a pipe that the agent alone holds open, and
never writes to: the end of input is the sign. It uses the standard library alone.
"""

import os
import signal
import sys
from contextlib import suppress


def main() -> None:
    group = int(sys.argv[1])
    sys.stdin.buffer.read()
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    main()
