"""`skillshelf eval`: whether skills are found, loaded and followed, and what they cost."""

from skillshelf_evals.cli._command import EXAMPLES, add_arguments, run

__all__ = ["EXAMPLES", "add_arguments", "run"]
