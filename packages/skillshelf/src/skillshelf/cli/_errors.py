"""Errors of the command line: a sentence on standard error, or JSON on standard output, and the exit code."""

import sys
from collections.abc import Mapping
from typing import Any

from skillshelf.cli._output import complain
from skillshelf.errors import (
    EvalError,
    ModelUnavailableError,
    RunStoppedError,
    SettingsError,
    SkillError,
    SkillNotFoundError,
    SourceError,
    error_code,
)
from skillshelf.text import to_json

_WRONG_USE = (EvalError, ModelUnavailableError, SettingsError, SourceError)
"""The user must change the options, the settings or the files that the command was given: exit code 2."""


class CommandError(SkillError):
    """A command cannot do its work."""

    def __init__(
        self,
        message: str,
        hint: str = "",
        *,
        code: str = "wrong-use",
        exit_code: int = 2,
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        """`hint` says what to do: on the same line, unless the message ends its own. `facts` are for programs."""
        self.message = message.rstrip()
        self.hint = hint
        self.code = code
        self.exit_code = exit_code
        self.facts = dict(facts or {})
        separator = "" if message.endswith("\n") else " "
        super().__init__(f"{message}{separator}{hint}".rstrip())


class ArgumentsError(CommandError):
    """The words on the command line make no sense. `usage` shows which would."""

    def __init__(self, message: str, hint: str = "", *, usage: str, program: str) -> None:
        self.usage = usage
        self.program = program
        super().__init__(message, hint)


def report_error(error: SkillError | OSError, command: str, *, as_json: bool) -> int:
    """Report an error on the way out of a command. Return the exit code."""
    reported = _to_command_error(error)
    if as_json:
        _print_json(reported, as_event=command == "chat")
    elif isinstance(reported, ArgumentsError):
        complain(f"{reported.usage}{reported.program}: error: {reported}")
    elif isinstance(error, SkillError) and not isinstance(error, (CommandError, *_WRONG_USE)):
        complain(str(reported))  # whole sentences about a skill
    else:
        complain(f"skillshelf: {reported}")
    return reported.exit_code


def _to_command_error(error: SkillError | OSError) -> CommandError:
    if isinstance(error, CommandError):
        return error
    if isinstance(error, SkillNotFoundError):
        return _explain_unknown_skill(error)
    return CommandError(str(error), code=find_code(error), exit_code=_find_exit_code(error))


def _find_exit_code(error: SkillError | OSError) -> int:
    if isinstance(error, RunStoppedError):
        return 3  # the cases are not to blame, and neither is the command line
    if isinstance(error, _WRONG_USE):
        return 2
    return 1


def _explain_unknown_skill(error: SkillNotFoundError) -> CommandError:
    hint = error.hint
    if not error.reason:
        hint += " `skillshelf why NAME` explains more."
    facts = {"closest": list(error.closest)}
    return CommandError(error.problem, hint, code=find_code(error), exit_code=1, facts=facts)


def find_code(error: Exception) -> str:
    """Return the kind of an error for a program. Errors of the operating system are all one kind."""
    if isinstance(error, OSError) and not isinstance(error, SkillError):
        return "system"
    return error_code(type(error))


def _print_json(error: CommandError, as_event: bool) -> None:
    """Print an error as an object, or as the event that ends a stream of events."""
    facts: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.hint:
        facts["hint"] = error.hint
    facts.update(error.facts)
    if as_event:
        sys.stdout.write(to_json({"event": "error", **facts}) + "\n")
    else:
        sys.stdout.write(to_json({"error": facts}, indent=2) + "\n")
