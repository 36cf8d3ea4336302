"""Slash commands: what is typed, which command it is, what could come next, and the message a skill becomes."""

from skillshelf.slash.apply import Applied, apply_message, read_message
from skillshelf.slash.command import Call, Candidate, Command, Slash, UnknownCommand, parse
from skillshelf.slash.completion import complete
from skillshelf.slash.registry import ENTRY_POINTS, Commands, Register
from skillshelf.slash.skills import skill_commands

__all__ = [
    "ENTRY_POINTS",
    "Applied",
    "Call",
    "Candidate",
    "Command",
    "Commands",
    "Register",
    "Slash",
    "UnknownCommand",
    "apply_message",
    "complete",
    "parse",
    "read_message",
    "skill_commands",
]
