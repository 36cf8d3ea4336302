"""Ask for a prepared `skillshelf`, which takes over the standard streams, and wait for its end.

In any program, `python -IS tests/prepared_command.py NAME …` is `skillshelf …` without its imports. So this module
imports little itself. NAME is that of the socket.
"""

import json
import os
import signal
import socket
import struct
import sys
from collections.abc import Mapping, Sequence

NUMBER = struct.Struct("!i")


def ask(
    server: socket.socket, words: Sequence[str], folder: str, environment: Mapping[str, str], streams: Sequence[int]
) -> int:
    """Have a process started. Return a pipe that reports its number, and later its exit code."""
    report, other_end = os.pipe()
    request = json.dumps({"words": list(words), "folder": folder, "environment": dict(environment)})
    socket.send_fds(server, [request.encode()], [*streams, other_end])
    os.close(other_end)
    return report


def read_number(report: int) -> int:
    (number,) = NUMBER.unpack(os.read(report, NUMBER.size))
    return int(number)


def main() -> int:
    server = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    server.connect(f"\0{sys.argv[1]}")
    report = ask(server, sys.argv[2:], os.getcwd(), os.environ, (0, 1, 2))
    read_number(report)
    code = read_number(report)
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


if __name__ == "__main__":
    sys.exit(main())
