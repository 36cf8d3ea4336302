"""From frontmatter values to the fields of a descriptor. A fault in an optional field never costs the skill."""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from skillshelf.skillmd._layout import DiagnosticCollector, Unreadable
from skillshelf.skillmd._limits import MAX_USABLE_NAME, MAX_VARIABLE_NAME, MAX_VARIABLES
from skillshelf.skills import MAX_DESCRIPTION, Disclosure
from skillshelf.text import find_hidden, show_controls, unify_lines

FORMAT_KEYS = frozenset({"name", "description", "license", "compatibility", "metadata", "allowed-tools"})
_MAX_NAME_SHOWN = 80
_MAX_VALUE_SHOWN = 80
# Separators of paths, `@` (it qualifies a name), and whatever quotes, opens a tag or belongs to a pattern.
_FORBIDDEN_IN_NAMES = frozenset('/\\@<>"`|*?$')

# -- the name ---------------------------------------------------------------------------------------------------------


def read_name(value: Any, folder: str, diagnostics: DiagnosticCollector) -> str:
    """Return the name as written, or one made from the folder's name if it is missing or unusable."""
    problem = ""
    if isinstance(value, str):
        name = value.strip()
        if not value.isascii():
            refuse_hidden("name", value, diagnostics)
            name = unicodedata.normalize("NFKC", name)
        if _is_usable_name(name):
            if name != value.strip():
                message = f"the name {value.strip()!r} is read as {name!r}, its Unicode compatibility form (NFKC)"
                line = diagnostics.line_of("name")
                diagnostics.inform("name-normalised", message, line, fix=f"write `name: {name}`")
            return name
        if name:
            problem = f"the name {show_controls(value)[:_MAX_NAME_SHOWN]!r} cannot be used"
        elif value:
            problem = "Missing required field in frontmatter: name is blank"
    elif value:
        problem = "the name must be text"

    code = "name-refused" if problem else "name-missing"
    problem = problem or "Missing required field in frontmatter: name"
    fallback, origin = _name_from_folder(folder)
    diagnostics.warn_field("name", code, f"{problem}; {origin} is used", fix=f"write `name: {fallback}`")
    return fallback


def _is_usable_name(text: str) -> bool:
    """Return True if a skill can have this name here. The format's own grammar is narrower."""
    return (
        0 < len(text) <= MAX_USABLE_NAME
        and text.isprintable()
        and text[0] not in ".- "
        and text[-1] != " "
        and _FORBIDDEN_IN_NAMES.isdisjoint(text)
        and not any(find_hidden(text))
    )


def _name_from_folder(folder: str) -> tuple[str, str]:
    """Return a name made from the folder's, and words that say how it was made."""
    name = unicodedata.normalize("NFKC", folder).strip()
    if _is_usable_name(name):
        return name, f"the folder's name, {name!r},"
    ascii_name = name.encode("ascii", "ignore").decode()
    name = re.sub(r"[^\w-]+", "-", ascii_name).strip("-_")[:64]
    if name:
        return name, f"{name!r}, made from the folder's name,"
    return "skill", "'skill'"


# -- the description --------------------------------------------------------------------------------------------------


def read_description(value: Any, diagnostics: DiagnosticCollector) -> str:
    """Return the description, stripped and without control characters. It is empty if the field is missing."""
    if not isinstance(value, str):
        value = _join_values(value)
        message = "the description must be text; its parts are joined"
        diagnostics.warn_field("description", "field-invalid", message, fix="put the description in quotes")

    text = unify_lines(value).strip()
    if not (text.isascii() and text.isprintable()):
        refuse_hidden("description", text, diagnostics)
        shown = show_controls(text)
        if shown != text:
            message = "the description has control characters; they are written out"
            diagnostics.warn_field("description", "control-characters", message, fix="remove them")
        text = shown
    if len(text) > MAX_DESCRIPTION:
        message = f"the description exceeds {MAX_DESCRIPTION} characters ({len(text)}); it is kept, but shown shortened"
        fix = "say when to use the skill in a sentence or two"
        diagnostics.warn_field("description", "description-too-long", message, fix=fix)
    return text


def refuse_hidden(key: str, value: str, diagnostics: DiagnosticCollector) -> None:
    hidden = next(find_hidden(value), None)
    if hidden:
        message = f"the {key} has a hidden character, U+{ord(hidden[0]):04X}; such skills are not loaded"
        raise Unreadable("hidden-characters", message, "retype the value without it", diagnostics.line_of(key))


# -- optional fields --------------------------------------------------------------------------------------------------

# YAML 1.1's words for true and false, in any case. The values here are texts as written.
_FLAGS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
# `Bash(git add:*)` is one word.
_WORD = re.compile(r"(?:[^\s,(]|\([^)]*\)?)+")


class OptionalFields(NamedTuple):
    """The optional fields of a frontmatter. Skills with the same fields share one."""

    license: str
    compatibility: str
    argument_hint: str
    allowed_tools: tuple[str, ...]
    arguments: tuple[str, ...]
    listed_references: tuple[str, ...] | None
    """The references that the author lists, or None if the folder's files count."""
    metadata: Mapping[str, Any]
    disclosure: Disclosure
    user_invocable: bool
    fields: Mapping[str, Any]
    """The keys that neither the format nor skillshelf knows."""


def read_optional_fields(values: Mapping[str, Any], diagnostics: DiagnosticCollector) -> OptionalFields:
    """Read every field except the name and the description. A faulty field is reported and left out."""
    reader = _OptionalFieldReader(values, diagnostics)
    metadata = reader.take_metadata()
    return OptionalFields(
        license=reader.take_text("license"),
        compatibility=reader.take_text("compatibility"),
        argument_hint=reader.take_argument_hint(),
        allowed_tools=reader.take_words("allowed-tools"),
        arguments=reader.take_words("arguments"),
        listed_references=reader.take_references(),
        metadata=metadata,
        disclosure=reader.take_disclosure(default=metadata.get("disclosure", "auto")),
        user_invocable=reader.take_flag("user-invocable", default=True),
        fields=reader.take_rest(),
    )


class _OptionalFieldReader:
    """Takes one field after the other out of the values of a frontmatter."""

    def __init__(self, values: Mapping[str, Any], diagnostics: DiagnosticCollector) -> None:
        self._diagnostics = diagnostics
        self._remaining: dict[str, Any] = {}
        for key, value in values.items():
            if key in ("name", "description"):
                continue
            if _has_hidden_text(key, value):
                message = f"{show_controls(key)!r} has hidden or control characters; it is left out"
                diagnostics.warn_field(key, "hidden-characters", message, fix="retype it without them")
                continue
            self._remaining[key] = value

    def take_text(self, key: str) -> str:
        value = self._remaining.pop(key, "")
        if isinstance(value, str):
            return value
        self._warn(key, f"{key!r} must be text; it is left out", fix=f"write `{key}: …` on one line")
        return ""

    def take_argument_hint(self) -> str:
        value = self._remaining.pop("argument-hint", "")
        if isinstance(value, list):  # `[a] [b]` is a list to YAML, but a hint to its author
            return " ".join(f"[{_join_values(item)}]" for item in value)
        return _join_values(value)

    def take_words(self, key: str) -> tuple[str, ...]:
        value = self._remaining.pop(key, "")
        if isinstance(value, str):
            return tuple(word for word in _WORD.findall(value) if word != "-")
        if isinstance(value, list):
            words = (_join_values(item).strip() for item in value)
            return tuple(word for word in words if word)
        fix = f"write `{key}: one two` or one `- one` line for each"
        self._warn(key, f"{key!r} must be words or a list; it is left out", fix=fix)
        return ()

    def take_references(self) -> tuple[str, ...] | None:
        if "references" not in self._remaining:
            return None
        value = self._remaining.pop("references")
        paths = [value] if isinstance(value, str) else value
        if isinstance(paths, list) and all(isinstance(path, str) for path in paths):
            return tuple(dict.fromkeys(path for path in paths if path))
        message = "'references' must be a list of paths; the folder's files are used instead"
        self._warn("references", message, fix="write one `- references/file.md` line for each")
        return None

    def take_metadata(self) -> Mapping[str, Any]:
        value = self._remaining.pop("metadata", "")
        if isinstance(value, dict):
            return value
        if value:
            fix = "write `metadata:` and below it indented `key: value` lines"
            self._warn("metadata", "'metadata' must be a mapping; it is left out", fix=fix)
        return {}

    def take_flag(self, key: str, *, default: bool) -> bool:
        value = self._remaining.pop(key, "")
        if not value:
            return default
        text = _join_values(value)
        flag = _FLAGS.get(text.casefold())
        if flag is not None:
            return flag
        message = f"{key!r} must be true or false, not {text[:_MAX_VALUE_SHOWN]!r}; it is left out"
        self._warn(key, message, fix=f"write `{key}: true` or `{key}: false`")
        return default

    def take_disclosure(self, *, default: Any) -> Disclosure:
        """Take both spellings; `disable-model-invocation: true` is the stronger one."""
        value = self._remaining.pop("disclosure", "") or default
        if self.take_flag("disable-model-invocation", default=False):
            return "manual"
        if value == "auto" or value == "always" or value == "manual":
            return value  # type: ignore[no-any-return]
        shown = _join_values(value)[:_MAX_VALUE_SHOWN]
        message = f"disclosure must be auto, always or manual, not {shown!r}"
        self._warn("disclosure", message, fix="write `disclosure: auto`, or leave it out")
        return "auto"

    def take_rest(self) -> Mapping[str, Any]:
        return self._remaining

    def _warn(self, key: str, message: str, *, fix: str) -> None:
        self._diagnostics.warn_field(key, "field-invalid", message, fix=fix)


def _has_hidden_text(key: str, value: Any) -> bool:
    text = key + _join_values(value)
    if text.isascii() and text.isprintable():
        return False
    return any(find_hidden(text)) or show_controls(text) != text


def _join_values(value: Any) -> str:
    """Return everything that a value contains as one text."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return " ".join(f"{key}: {_join_values(item)}" for key, item in value.items())
    if isinstance(value, list):
        return " ".join(_join_values(item) for item in value)
    return str(value)


# -- variables for scripts --------------------------------------------------------------------------------------------

# These steer programs. A skill that asks for one wants something other than a key.
_STEERING_NAMES = frozenset(
    {"PATH", "HOME", "SHELL", "ENV", "IFS", "CDPATH", "SHELLOPTS", "BASHOPTS", "PS4", "TMPDIR", "TMP", "TEMP", "LANG"}
)
_STEERING_PREFIXES = (
    *("LD_", "DYLD_", "LC_", "XDG_", "PYTHON", "RUBY", "PERL", "NODE_", "BASH_", "GIT_", "UV_", "PIP_", "NPM_"),
    *("SKILL_DIR", "SKILLSHELF_"),
)


def find_declared_variables(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the variables that a skill's metadata declare for its scripts.

    The format has no field for them, so `metadata` has: `env: NAME …`, or `requires: {env: […]}`, also below the name
    of a program, as OpenClaw writes it. Names that steer programs do not count.
    """
    names: dict[str, None] = {}
    for value in _find_declarations(metadata):
        words = value.replace(",", " ").split() if isinstance(value, str) else value
        for word in words if isinstance(words, list | tuple) else ():
            if isinstance(word, str) and _is_usable_variable(word):
                names[word] = None
    return tuple(names)[:MAX_VARIABLES]


def _is_usable_variable(name: str) -> bool:
    is_name = name.isascii() and name.isidentifier() and len(name) <= MAX_VARIABLE_NAME
    upper = name.upper()
    return is_name and upper not in _STEERING_NAMES and not upper.startswith(_STEERING_PREFIXES)


def _find_declarations(metadata: Mapping[str, Any]) -> Iterator[Any]:
    yield metadata.get("env", "")
    for value in (metadata, *metadata.values()):
        if isinstance(value, Mapping):
            requires = value.get("requires")
            if isinstance(requires, Mapping):
                yield requires.get("env", "")
