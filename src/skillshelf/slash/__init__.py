"""Slash commands: what is typed, which command it is, what could come next, and the message a skill becomes."""

from skillshelf.slash._apply import Applied, apply_message, read_message
from skillshelf.slash._command import Call, Candidate, Command, Slash, UnknownCommand, parse
from skillshelf.slash._completion import Files, complete
from skillshelf.slash._ranking import LIMIT, Names, rank
from skillshelf.slash._registry import ENTRY_POINTS, Commands, Register
from skillshelf.slash._skills import SKILL_PREFIX, Invocation, parse_invocation, skill_commands

__all__ = [
    "ENTRY_POINTS",
    "LIMIT",
    "SKILL_PREFIX",
    "Applied",
    "Call",
    "Candidate",
    "Command",
    "Commands",
    "Files",
    "Invocation",
    "Names",
    "Register",
    "Slash",
    "UnknownCommand",
    "apply_message",
    "complete",
    "parse",
    "parse_invocation",
    "rank",
    "read_message",
    "skill_commands",
]
