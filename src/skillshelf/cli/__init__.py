"""The command line: `skillshelf COMMAND …`. Exit codes: 0 fine, 1 found faults, 2 wrong use."""

from skillshelf.cli._commands import main

__all__ = ["main"]
