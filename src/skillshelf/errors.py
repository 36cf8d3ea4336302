"""Everything skillshelf raises on purpose.

    SkillError
    ├── InvalidSkillError            a skill that breaks the rules (also a ValueError)
    ├── SkillNotFoundError           no skill of that name; carries the closest names (also a KeyError)
    ├── SkillUnreadableError         the skill is known, but its file cannot be read as one right now
    ├── ReferenceNotAllowedError     not on the skill's list, or not a plain file inside the skill's folder
    │   └── AmbiguousReferenceError  a bare file name that several listed references share
    ├── ReferenceNotFoundError       on the list, but gone (also a LookupError)
    ├── ReferenceUnreadableError     on the list and there, but the read failed or the offset is wrong
    ├── PolicyError                  a raw skill without a policy, or a tool the policy does not let through
    ├── ToolArgumentError            a call whose arguments the tool does not take (also a TypeError)
    ├── ToolFailedError              a tool that raised something of its own
    ├── ToolResultError              a result that cannot be given to a model (also a ValueError)
    ├── SourceError                  a place to look for skills that is none
    ├── SettingsError                a configuration file or a setting that cannot be used
    ├── ModelUnavailableError        a model that cannot be used: unknown, without a key, or not installed
    ├── SessionError                 a session that cannot be found, read or written
    ├── TrustError                   the record of what the person agreed to cannot be used
    ├── FileAccessError              a file that the agent's tools cannot read or write, and why
    ├── EvalError                    a case, a check or a recording that cannot be used
    └── MissingExtraError            an optional library is not installed (also an ImportError)

Messages are written for whoever must act on them, which is often a model: they say what was asked, why not, and what
would be right. They never hold a path outside the skill.
"""

from collections.abc import Sequence
from typing import Any

from skillshelf.text import replace_surrogates

_SHOWN = 20


def _some(items: Sequence[str]) -> str:
    """A list for a message: never so long that it crowds out the sentence around it."""
    shown = ", ".join(repr(item) for item in items[:_SHOWN])
    return f"{shown} and {len(items) - _SHOWN} more" if len(items) > _SHOWN else shown


def _clip(asked: str) -> str:
    """What was asked, quoted; an over-long request is not echoed back whole."""
    return repr(asked) if len(asked) <= 200 else f"{asked[:200]!r}… ({len(asked)} characters)"


class SkillError(Exception):
    """The root of the tree: catch this to catch all of them."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Not by calling the constructor with the message, which takes other arguments.
        return _unpickled, (type(self), self.args, self.__dict__)


def _unpickled(cls: type[SkillError], args: tuple[Any, ...], attributes: dict[str, Any]) -> SkillError:
    error = cls.__new__(cls)
    error.args = args
    error.__dict__.update(attributes)
    return error


class InvalidSkillError(SkillError, ValueError):
    """A skill that breaks the rules."""


class SkillNotFoundError(SkillError, KeyError):
    __str__ = Exception.__str__  # a KeyError's own puts the sentence in quotes

    def __init__(self, name: str, closest: Sequence[str] = ()) -> None:
        self.name, self.closest = name, tuple(closest)
        hint = f" Did you mean {_some(self.closest)}?" if closest else " list_skills() names them all."
        super().__init__(f"There is no skill named {_clip(name)}.{hint}")


class SkillUnreadableError(SkillError):
    def __init__(self, name: str, reason: str) -> None:
        self.name, self.reason = name, reason
        super().__init__(f"The instructions of skill {name!r} cannot be read: {reason}")


class ReferenceNotAllowedError(SkillError):
    def __init__(
        self, skill: str, reference: str, allowed: Sequence[str], reason: str = "it is not on the skill's list"
    ) -> None:
        self.skill, self.reference, self.allowed, self.reason = skill, reference, tuple(allowed), reason
        legal = f"Listed references: {_some(self.allowed)}." if allowed else "This skill has no references."
        super().__init__(f"Skill {skill!r} does not offer the reference {_clip(reference)}: {reason}. {legal}")


class AmbiguousReferenceError(ReferenceNotAllowedError):
    def __init__(self, skill: str, reference: str, candidates: Sequence[str]) -> None:
        self.candidates = tuple(candidates)
        super().__init__(
            skill, reference, candidates, "several listed references have that file name; give the whole path"
        )


class ReferenceNotFoundError(SkillError, LookupError):
    def __init__(self, skill: str, reference: str, listed: Sequence[str]) -> None:
        self.skill, self.reference, self.listed = skill, reference, tuple(listed)
        super().__init__(
            f"Skill {skill!r} lists the reference {reference!r}, but the file is gone. "
            f"Listed references: {_some(self.listed)}."
        )


class ReferenceUnreadableError(SkillError):
    def __init__(self, skill: str, reference: str, reason: str) -> None:
        self.skill, self.reference, self.reason = skill, reference, reason
        super().__init__(f"The reference {reference!r} of skill {skill!r} cannot be read: {reason}.")


class PolicyError(SkillError):
    """A raw skill without a policy, or a tool the policy does not let through."""


class ToolArgumentError(SkillError, TypeError):
    def __init__(self, tool: str, reason: str) -> None:
        self.tool, self.reason = tool, reason
        super().__init__(f"Tool {tool!r} cannot take these arguments: {reason}.")


class ToolFailedError(SkillError):
    def __init__(self, tool: str, error: BaseException) -> None:
        self.tool, self.error = tool, error
        super().__init__(replace_surrogates(f"Tool {tool!r} failed: {type(error).__name__}: {error}".rstrip(": ")))


class ToolResultError(SkillError, ValueError):
    """A tool's result that cannot be given to a model, such as an image that is too large."""


class SourceError(SkillError):
    """A place to look for skills that is none."""


class SettingsError(SkillError):
    """A configuration file or a setting that cannot be used."""


class ModelUnavailableError(SkillError):
    """A model that cannot be used: unknown, without a key, or not installed."""


class SessionError(SkillError):
    """A session that cannot be found, read or written."""


class TrustError(SkillError):
    """The record of what the person agreed to cannot be used."""


class FileAccessError(SkillError):
    """A file that the agent's tools cannot read or write."""


class EvalError(SkillError):
    """A case, a check or a recording that cannot be used; where it is written, if that is known."""

    def __init__(self, problem: str, fix: str = "", path: str = "", line: int = 0) -> None:
        self.problem, self.fix, self.path, self.line = problem, fix, path, line
        where = f"{path}:{line}: " if line else f"{path}: " if path else ""
        super().__init__(f"{where}{problem}. {fix}".rstrip() if fix else f"{where}{problem}.")


class MissingExtraError(SkillError, ImportError):
    def __init__(self, what: str, extra: str) -> None:
        self.what, self.extra = what, extra
        super().__init__(f"{what}: a library for this is not installed. Run: pip install 'skillshelf[{extra}]'")
