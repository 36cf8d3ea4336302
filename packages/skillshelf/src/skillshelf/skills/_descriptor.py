"""Values that every part of the package shares: a skill's descriptor, a diagnostic, a scan result, a delta."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, NoReturn

from skillshelf.errors import InvalidSkillError
from skillshelf.text import truncate

Category = Literal["standard", "raw"]
Disclosure = Literal["auto", "always", "manual"]
ListingForm = Literal["auto", "catalog", "full"]
"""How much the listing shows: instructions as far as the budget goes, no instructions, or all of them."""
Choice = Literal["full", "name", "manual", "off"]
"""What the user chose for a skill. `full`: its instructions are in the listing, before those of other skills. `name`:
the listing has its name only. `manual`: hidden from the model; the user can invoke it. `off`: not on the shelf."""
Severity = Literal["error", "warning", "info"]

MAX_DESCRIPTION = 1024
"""Characters of a description that the format allows."""


class ReadOnlyDict(dict[str, Any]):
    """A dict that skills share, which takes 250 bytes less for each. It refuses changes; a copy is a plain dict."""

    __slots__ = ()

    @classmethod
    def make(cls, values: Mapping[str, Any]) -> "ReadOnlyDict":
        """Return a copy of values that refuses changes, in the mappings within it, too."""
        return cls({key: cls.make(value) if isinstance(value, dict) else value for key, value in values.items()})

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("a skill's metadata and fields are read-only: change a copy, dict(skill.metadata)")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[type, tuple[dict[str, Any]]]:
        return dict, (dict(self),)


@dataclass(frozen=True, slots=True)
class SkillDescriptor:
    """What a catalog knows about a skill. The shelf reads the instructions only when they are needed."""

    name: str
    description: str
    category: Category = "standard"
    tools: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    """The allowlist: the only files of the skill that can be loaded. The main ones come first."""
    source: str = ""
    location: str = ""
    """The SKILL.md's path, or `module:Class` for a code skill."""
    size: int = 0
    """Bytes of instructions."""
    license: str = ""
    compatibility: str = ""
    allowed_tools: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)
    disclosure: Disclosure = "auto"
    """`always`: listed in full. `manual`: hidden from the model; only the user can invoke it."""
    user_invocable: bool = True
    arguments: tuple[str, ...] = ()
    argument_hint: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Frontmatter keys outside the format, as written."""
    more_references: int = 0
    """How many references, at the end of the list, are not main ones."""

    def __post_init__(self) -> None:
        # A scan makes ten thousand of these, so the common case is two cheap tests for each field.
        for value in (self.tools, self.references, self.allowed_tools):
            if type(value) is not tuple or (value and set(map(type, value)) != {str}):
                raise InvalidSkillError(
                    f"tools, references and allowed_tools must be tuples of strings, not {value!r:.200}: "
                    'write ("a.md",) or tuple(paths), so that the list cannot change after it was checked.'
                )
        if self.category != "standard" and self.category != "raw":
            raise InvalidSkillError(f"SkillDescriptor.category must be 'standard' or 'raw', not {self.category!r}")
        if not self.name:
            raise InvalidSkillError("SkillDescriptor.name must not be empty")

    @property
    def summary(self) -> str:
        """The description as it is listed and searched: as many characters as the format allows."""
        return truncate(self.description, MAX_DESCRIPTION)

    @property
    def main_references(self) -> tuple[str, ...]:
        """The references that listings name. Without a list of the author's own, these are the files below
        `references/`, `scripts/` and `assets/`, and those that the instructions name."""
        return self.references[: len(self.references) - self.more_references]

    @property
    def runs_apart(self) -> bool:
        """True if the skill asks for a conversation of its own: `context: fork`."""
        return self.fields.get("context") == "fork"

    @property
    def model(self) -> str:
        """The model that the skill asks for; empty if it takes the one in use."""
        model = self.fields.get("model")
        if not isinstance(model, str) or model.strip() == "inherit":
            return ""
        return model.strip()

    @property
    def qualified(self) -> str:
        """`name@source`, which reaches this skill even if another one of the same name takes precedence."""
        return f"{self.name}@{self.source}"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A problem in something an author wrote, or a note on how it was read. Diagnostics are data, not log lines."""

    severity: Severity
    code: str
    message: str
    path: str = ""
    line: int = 0
    fix: str = ""

    def __str__(self) -> str:
        text = f"{self.code} ({self.severity}) {self.message}"
        if self.line:
            return f"{self.path}:{self.line}: {text}"
        if self.path:
            return f"{self.path}: {text}"
        return text


@dataclass(slots=True, eq=False)
class Found:
    """A skill that a source found, or the reasons why there is none at this place.

    Treat it as immutable. It is not frozen because a scan makes one for each of ten thousand skills.
    """

    descriptor: SkillDescriptor | None
    """None if there is no usable skill here."""
    diagnostics: tuple[Diagnostic, ...] = ()
    digest: bytes = b""
    """A hash of the file's bytes; empty if the file's times alone show whether it changed."""
    stamp: int = 0
    """Changes whenever the skill's files do, and is the same in every process; 0 if only reading the files can tell."""
    is_last_good: bool = False
    """True for an earlier version that stays in use because the file is broken now."""

    @property
    def name(self) -> str:
        """The skill's name; empty if there is no skill."""
        return self.descriptor.name if self.descriptor else ""

    def as_last_good(self, diagnostics: tuple[Diagnostic, ...]) -> "Found":
        """Return this version with the diagnostics of the broken one that it stands in for."""
        return replace(self, diagnostics=diagnostics, is_last_good=True)

    def says_the_same(self, other: "Found") -> bool:
        """Return True if a shelf would not notice the difference."""
        return self.diagnostics == other.diagnostics and self.descriptor == other.descriptor


class Delta(NamedTuple):
    """The skills that a reload changed, by name. It is false if there are none."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    """Diagnostics about the files that were read again."""

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)


class Activation(NamedTuple):
    """A skill's text entered the conversation."""

    skill: str
    reference: str
    """Empty for the instructions."""
    by: Literal["model", "user"]
    size: int
    """Bytes of that text; 0 for a binary file."""
    repeated: bool = False
    """True if the same text was loaded before in this turn, so that no file was read."""
