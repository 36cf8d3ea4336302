"""`skillshelf serve` on the shelf of the conformance scenario: `python -m skillshelf.cli._staged FOLDER [--http] …`.

Not a command: faces of the kit start it. It is here because it is the command `serve` in all but the shelf, which has
code skills; those of a program are given to a shelf by that program.
"""

import argparse
import os
import signal
import sys
from contextlib import nullcontext
from threading import Thread

from skillshelf.cli import _serve as serve
from skillshelf.testing.conformance import Stage


def main(folder: str, *words: str) -> int:
    if "--http" in words:
        Thread(target=_leave_with_parent, daemon=True).start()
    parser = argparse.ArgumentParser()
    serve.add_arguments(parser)
    return serve.serve_shelf(parser.parse_args(words), lambda args: nullcontext(serve.Opened(Stage(folder).shelf)))


def _leave_with_parent() -> None:
    """Over pipes a server leaves with its client; here the end of standard input says that nobody is there any more."""
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
