"""The values that pass between the parts: a skill's card, a diagnostic, a reload's changes, an activation."""

from collections.abc import ItemsView, Iterator, Mapping, ValuesView
from dataclasses import dataclass
from typing import Any, Literal

from skillshelf.errors import InvalidSkillError

Category = Literal["standard", "raw"]
Disclosure = Literal["auto", "always", "manual"]
Severity = Literal["error", "warning", "info"]


class FrozenMap(Mapping[str, Any]):
    """A small mapping that can be hashed: frontmatter values inside a descriptor."""

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[str, Any] | None = None) -> None:
        self._items: tuple[tuple[str, Any], ...] = tuple((items or {}).items())

    def __getitem__(self, key: str) -> Any:
        for name, value in self._items:
            if name == key:
                return value
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self._items)

    def __len__(self) -> int:
        return len(self._items)

    # What Mapping has of these three looks each key up, which takes the square of their number.
    def items(self) -> ItemsView[str, Any]:
        return dict(self._items).items()

    def values(self) -> ValuesView[Any]:
        return dict(self._items).values()

    def __eq__(self, other: object) -> bool:
        return dict(self._items) == dict(other.items()) if isinstance(other, Mapping) else NotImplemented

    def __hash__(self) -> int:
        return hash(frozenset(self._items))

    def __repr__(self) -> str:
        return repr(dict(self._items))


EMPTY_MAP = FrozenMap()


def freeze(value: Any) -> Any:
    """A hashable copy of a YAML value: mappings become FrozenMap, lists become tuples."""
    if isinstance(value, Mapping):
        return FrozenMap({str(key): freeze(item) for key, item in value.items()})
    if isinstance(value, list | tuple):
        return tuple(freeze(item) for item in value)
    return value


def thaw(value: Any) -> Any:
    """The plain dicts and lists behind `freeze`: what JSON can write."""
    if isinstance(value, Mapping):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [thaw(item) for item in value]
    return value


@dataclass(frozen=True, slots=True)
class SkillDescriptor:
    """A skill's card: what a catalog holds of it. The instructions are read through the shelf when they are wanted."""

    name: str
    description: str
    category: Category = "standard"
    tools: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    """The allowlist: the only files of the skill that can be loaded."""
    source: str = ""
    location: str = ""
    """The SKILL.md's path, or `module:Class` for a code skill."""
    size: int = 0
    """Bytes of instructions."""
    license: str = ""
    compatibility: str = ""
    allowed_tools: tuple[str, ...] = ()
    metadata: FrozenMap = EMPTY_MAP
    disclosure: Disclosure = "auto"
    """`always`: in the listing in full; `manual`: not shown to the model, for the person to invoke."""
    user_invocable: bool = True
    arguments: tuple[str, ...] = ()
    argument_hint: str = ""
    fields: FrozenMap = EMPTY_MAP
    """Frontmatter keys outside the format, as written."""

    def __post_init__(self) -> None:
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
    def qualified(self) -> str:
        """`name@source`: reaches this skill even where another of its name comes first."""
        return f"{self.name}@{self.source}"


_SETTERS = tuple(vars(SkillDescriptor)[field].__set__ for field in SkillDescriptor.__dataclass_fields__)


def descriptor_of(*values: Any) -> SkillDescriptor:
    """A descriptor from all its values in order, checked already: a scan makes ten thousand of them."""
    descriptor = object.__new__(SkillDescriptor)
    for set_field, value in zip(_SETTERS, values, strict=True):
        set_field(descriptor, value)
    return descriptor


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A fault in something an author wrote, or a note about what was made of it: data, not a log line."""

    severity: Severity
    code: str
    message: str
    path: str = ""
    line: int = 0
    fix: str = ""

    def __str__(self) -> str:
        where = f"{self.path}:{self.line}: " if self.line else f"{self.path}: " if self.path else ""
        return f"{where}{self.code} ({self.severity}) {self.message}"


@dataclass(frozen=True, slots=True)
class Delta:
    """What a reload changed, by name. False when nothing did."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    """What the files that were read again have to say."""

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)


@dataclass(frozen=True, slots=True)
class Activation:
    """A skill's text entered the conversation."""

    skill: str
    reference: str
    """Empty for the instructions."""
    by: Literal["model", "user", "shelf"]
    """`shelf`: it was put before a model that cannot ask for itself."""
    size: int
    """Bytes of the text that entered; 0 for a binary file."""
