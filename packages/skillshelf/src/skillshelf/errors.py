"""Every error that skillshelf raises on purpose.

    SkillError
    ├── InvalidSkillError            a skill breaks the rules (also a ValueError)
    ├── SkillNotFoundError           no skill on the shelf has that name; carries the closest names (also a KeyError)
    ├── SkillUnreadableError         the skill is known, but its instructions cannot be read right now
    ├── ReferenceNotAllowedError     not on the skill's list, or not a plain file inside the skill's folder
    │   └── AmbiguousReferenceError  several listed references have that file name
    ├── ReferenceNotFoundError       on the list, but gone (also a LookupError)
    ├── ReferenceUnreadableError     on the list and there, but reading failed or the offset is wrong
    ├── PolicyError                  a raw skill has no policy, or the policy does not allow a tool
    ├── ToolArgumentError            a call has arguments that the tool does not take (also a TypeError)
    ├── ToolFailedError              a tool raised an error of its own
    ├── GuidedError                  a tool failed, and a reference of its skill says what to do about it
    ├── ToolResultError              a tool's result cannot be given to a model (also a ValueError)
    ├── SourceError                  a place to look for skills cannot be used
    ├── SettingsError                a configuration file or a setting cannot be used
    ├── ModelUnavailableError        a model cannot be used: unknown, without a key, or not installed
    ├── SessionError                 a session cannot be found, read or written
    ├── TrustError                   the record of the user's approvals cannot be used
    ├── RegistryError                a skill cannot be fetched, installed or compared with its lock
    │   └── SkillsLockError          skills.lock cannot be used: damaged, from a newer version, or with conflicts
    ├── RepeatedCallError            a model went in circles with its calls
    ├── FileAccessError              the agent's tools cannot read or write a file
    ├── AddressRefusedError          the network rules forbid a skill to reach an address
    ├── FetchFailedError             a server cannot be reached, or does not answer as it should
    ├── CheckpointError              a turn cannot be taken back
    ├── EvalError                    a case, a check or a recording cannot be used
    │   ├── NotRecordedError         a replay has no recorded answer for a call of a model
    │   └── RunStoppedError          a run stopped before its end, and can be resumed
    └── MissingExtraError            an optional library is not installed (also an ImportError)

Messages are written for the reader who must act on them, which is often a model: they say what was asked for, why it
failed, and what would be right. They never hold a path outside the skill.
"""

import re
from collections.abc import Sequence
from typing import Any

from skillshelf.text import replace_surrogates, truncate

_MAX_LISTED = 20
_MAX_ECHOED = 200
_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def _list_names(names: Sequence[str]) -> str:
    """Return a list for a message, never so long that it crowds out the sentence around it."""
    shown = ", ".join(repr(name) for name in names[:_MAX_LISTED])
    if len(names) > _MAX_LISTED:
        return f"{shown} and {len(names) - _MAX_LISTED} more"
    return shown


def _quote(requested: str) -> str:
    """Return what was asked for in quotes. A very long request is not echoed back whole."""
    return repr(truncate(requested, _MAX_ECHOED))


def error_code(kind: type[BaseException]) -> str:
    """Return the name of an error's class in words, such as `skill-not-found`, for a program."""
    return _WORD_START.sub("-", kind.__name__.removesuffix("Error")).lower()


class SkillError(Exception):
    """The root of the tree: catch this to catch all of them."""

    def __reduce__(self) -> tuple[Any, ...]:
        # The constructors take other arguments than the message, so unpickling must not call them.
        return _restore, (type(self), self.args, self.__dict__)


def _restore(cls: type[SkillError], args: tuple[Any, ...], attributes: dict[str, Any]) -> SkillError:
    error = cls.__new__(cls)
    error.args = args
    error.__dict__.update(attributes)
    return error


class InvalidSkillError(SkillError, ValueError):
    """A skill breaks the rules."""


class SkillNotFoundError(SkillError, KeyError):
    """No skill on the shelf has that name."""

    __str__ = Exception.__str__  # KeyError's own puts the sentence in quotes

    def __init__(self, name: str, closest: Sequence[str] = (), *, reason: str = "", hint: str = "") -> None:
        """`reason`: why a skill of that name isn't on the shelf, if there is one. `hint`: what to do, in a sentence."""
        self.name = name
        self.closest = tuple(closest)
        self.reason = reason
        self.problem = f"There is no skill named {_quote(name)}."
        if reason:
            self.problem = f"The skill {_quote(name)} isn't available: {reason}."

        if not hint:
            hint = "list_skills() names them all."
            if closest:
                hint = f"Did you mean {_list_names(self.closest)}?"
        self.hint = hint
        super().__init__(f"{self.problem} {hint}")


class SkillUnreadableError(SkillError):
    """The skill is known, but its instructions cannot be read right now."""

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self.reason = reason
        super().__init__(f"The instructions of skill {name!r} cannot be read: {reason}")


class ReferenceNotAllowedError(SkillError):
    """The reference is not on the skill's list, or not a plain file inside the skill's folder."""

    def __init__(
        self, skill: str, reference: str, allowed: Sequence[str], reason: str = "it is not on the skill's list"
    ) -> None:
        self.skill = skill
        self.reference = reference
        self.allowed = tuple(allowed)
        self.reason = reason
        listed = "This skill has no references."
        if allowed:
            listed = f"Listed references: {_list_names(self.allowed)}."
        super().__init__(f"Skill {skill!r} does not offer the reference {_quote(reference)}: {reason}. {listed}")


class AmbiguousReferenceError(ReferenceNotAllowedError):
    """Several listed references have that file name."""

    def __init__(self, skill: str, reference: str, candidates: Sequence[str]) -> None:
        self.candidates = tuple(candidates)
        super().__init__(
            skill, reference, candidates, "several listed references have that file name; give the whole path"
        )


class ReferenceNotFoundError(SkillError, LookupError):
    """The reference is on the skill's list, but the file is gone."""

    def __init__(self, skill: str, reference: str, listed: Sequence[str]) -> None:
        self.skill = skill
        self.reference = reference
        self.listed = tuple(listed)
        super().__init__(
            f"Skill {skill!r} lists the reference {reference!r}, but the file is gone. "
            f"Listed references: {_list_names(self.listed)}."
        )


class ReferenceUnreadableError(SkillError):
    """The reference is there, but reading it failed or the offset is wrong."""

    def __init__(self, skill: str, reference: str, reason: str) -> None:
        self.skill = skill
        self.reference = reference
        self.reason = reason
        super().__init__(f"The reference {reference!r} of skill {skill!r} cannot be read: {reason}.")


class PolicyError(SkillError):
    """A raw skill has no policy, or the policy does not allow a tool."""


class ToolArgumentError(SkillError, TypeError):
    """A call has arguments that the tool does not take."""

    def __init__(self, tool: str, reason: str) -> None:
        self.tool = tool
        self.reason = reason
        super().__init__(f"Tool {tool!r} cannot take these arguments: {reason}.")


class ToolFailedError(SkillError):
    """A tool raised an error of its own."""

    def __init__(self, tool: str, error: BaseException) -> None:
        self.tool = tool
        self.error = error
        message = f"Tool {tool!r} failed: {type(error).__name__}: {error}".rstrip(": ")
        super().__init__(replace_surrogates(message))


class GuidedError(SkillError):
    """A tool failed, and a reference of its skill says what to do about it. The message names both."""

    def __init__(self, reason: str, *, reference: str = "error_codes.md") -> None:
        """Without a reference, the message is the reason alone."""
        self.reason = reason
        """What happened, without the advice."""
        self.reference = reference
        self.skill = ""
        """The skill whose tool was called, which sets it."""
        super().__init__(reason)

    def __str__(self) -> str:
        reason = super().__str__()
        if not self.reference:
            return reason
        if not reason.endswith((".", "?", "!")):
            reason += "."
        owner = f" of the skill {self.skill!r}" if self.skill else ""
        return f"{reason} Load the reference {self.reference!r}{owner} for what to do about it."


class ToolResultError(SkillError, ValueError):
    """A tool's result cannot be given to a model: an image that is too large, for example."""


class SourceError(SkillError):
    """A place to look for skills cannot be used."""


class SettingsError(SkillError):
    """A configuration file or a setting cannot be used."""


class ModelUnavailableError(SkillError):
    """A model cannot be used: it is unknown, has no key, or is not installed."""


class RepeatedCallError(SkillError):
    """A model went in circles with its calls, and the turn was stopped."""


class SessionError(SkillError):
    """A session cannot be found, read or written."""


class TrustError(SkillError):
    """The record of the user's approvals cannot be used."""


class RegistryError(SkillError):
    """A skill cannot be fetched, installed, or compared with skills.lock."""


class SkillsLockError(RegistryError):
    """The file skills.lock cannot be used."""


class FileAccessError(SkillError):
    """The agent's tools cannot read or write a file."""


class AddressRefusedError(SkillError):
    """The network rules forbid a skill to reach an address."""

    def __init__(self, target: str, reason: str) -> None:
        self.target = target
        self.reason = reason
        super().__init__(
            f"{_quote(target)} may not be reached: {reason}. Skills reach public addresses over http: and https: only; "
            f"for any other host, ask the user to allow it by name."
        )


class FetchFailedError(SkillError):
    """A server cannot be reached, or does not answer as it should."""

    def __init__(self, target: str, reason: str) -> None:
        self.target = target
        self.reason = reason
        super().__init__(f"{_quote(target)} cannot be fetched: {reason}.")


class CheckpointError(SkillError):
    """A turn cannot be taken back, or brought back again."""


class EvalError(SkillError):
    """A case, a check or a recording cannot be used. The message says where it is written, if that is known."""

    def __init__(self, problem: str, fix: str = "", path: str = "", line: int = 0) -> None:
        self.problem = problem
        self.fix = fix
        self.path = path
        self.line = line
        message = f"{problem}."
        if fix:
            message = f"{problem}. {fix}".rstrip()
        if line:
            message = f"{path}:{line}: {message}"
        elif path:
            message = f"{path}: {message}"
        super().__init__(message)


class NotRecordedError(EvalError):
    """A replay has no recorded answer for a call of a model."""


class RunStoppedError(EvalError):
    """A run could not go on, because of its database, its provider or its budget. It can be resumed."""


class MissingExtraError(SkillError, ImportError):
    """An optional library is missing or too old."""

    def __init__(self, what: str, extra: str) -> None:
        self.what = what
        self.extra = extra
        super().__init__(f"{what}: a library for this is missing or too old. Run: pip install 'skillshelf[{extra}]'")
