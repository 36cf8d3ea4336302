"""`skillshelf demo`: a recording of a scripted conversation in the real interface."""

import argparse
import sys
from importlib.util import find_spec

from skillshelf.cli._output import Output
from skillshelf.cli._parsers import Parser
from skillshelf.cli._recording import Playback, read_recording

EXAMPLES = """
  skillshelf demo                       watch a skill at work; a key skips the pauses, q leaves
  skillshelf demo | less                read it
"""
_INSTALL = "pip install 'skillshelf[chat]'"


def add_arguments(parser: Parser) -> None:
    """Add nothing: a key skips the pauses."""


def run(args: argparse.Namespace, out: Output) -> int:
    has_chat = find_spec("skillshelf_agent") is not None
    out.print_styled("skillshelf demo: A recording of a scripted conversation", "bold")
    out.print_styled("The model's words are scripted. The skill, the tools, the diff and the refusal are real.", "dim")
    if sys.stdin.isatty() and out.is_terminal:
        out.print_styled("Any key skips the pauses, q leaves.", "dim")
    out.print()

    Playback(out.console).play(read_recording())
    _print_ending(out, has_chat=has_chat)
    return 0


def _print_ending(out: Output, *, has_chat: bool) -> None:
    out.print()
    out.print_styled("End of the demo. Next:", "bold")
    chat = ("skillshelf chat", "talk to the agent, with a model of your choice")
    if not has_chat:
        chat = (_INSTALL, "install the agent; then `skillshelf chat`")
    steps = (("skillshelf new my-skill", "create your first skill"), chat)
    width = max(len(command) for command, _ in steps)
    for command, purpose in steps:
        out.print(f"  {command:{width}}   {purpose}")
