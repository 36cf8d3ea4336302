"""Slash commands: the commands there are, completion, and the message that invoking a skill becomes."""

from skillshelf.slash._commands import (
    SKILL_PREFIX,
    Command,
    CommandCall,
    Commands,
    Register,
    SlashMessage,
    Suggestion,
    UnknownCommand,
    parse_command,
)
from skillshelf.slash._completion import ListFiles, complete
from skillshelf.slash._markdown import expand_command, markdown_commands
from skillshelf.slash._ranking import MAX_SUGGESTIONS, NameIndex, rank
from skillshelf.slash._skills import (
    AppliedSkill,
    Invocation,
    apply_message,
    parse_invocation,
    read_message,
    skill_commands,
)

__all__ = [
    "MAX_SUGGESTIONS",
    "SKILL_PREFIX",
    "AppliedSkill",
    "Command",
    "CommandCall",
    "Commands",
    "Invocation",
    "ListFiles",
    "NameIndex",
    "Register",
    "SlashMessage",
    "Suggestion",
    "UnknownCommand",
    "apply_message",
    "complete",
    "expand_command",
    "markdown_commands",
    "parse_command",
    "parse_invocation",
    "rank",
    "read_message",
    "skill_commands",
]
