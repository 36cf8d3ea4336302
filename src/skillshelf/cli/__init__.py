"""The command line: `skillshelf COMMAND …`. Exit codes: 0 success, 1 problems found, 2 wrong use."""

from skillshelf.cli._main import main

__all__ = ["main"]
