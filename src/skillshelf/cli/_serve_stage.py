"""`skillshelf serve` on the shelf of the conformance scenario.

This is not a command: faces of the conformance kit start it as `python -m skillshelf.cli._serve_stage FOLDER [--http]`.
It differs from `serve` only in its shelf, whose Python skills are the kit's own.
"""

import os
import signal
import sys
from contextlib import nullcontext
from threading import Thread

from skillshelf.cli._parsers import Parser
from skillshelf.cli._serve import ServedShelf, add_arguments, serve_shelf
from skillshelf.testing.conformance import Stage


def main(folder: str, *words: str) -> int:
    if "--http" in words:
        Thread(target=_exit_with_parent, daemon=True).start()
    parser = Parser()
    add_arguments(parser)
    args = parser.parse_args(words)
    return serve_shelf(args, lambda args: nullcontext(ServedShelf(Stage(folder).shelf)))


def _exit_with_parent() -> None:
    """End this process when standard input closes. Over pipes a server does so anyway, over HTTP it would not."""
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
