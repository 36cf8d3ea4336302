"""From a frontmatter's values to the fields of a descriptor: a fault in an optional field never costs the skill."""

import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any

from skillshelf.descriptor import EMPTY_MAP, MAX_DESCRIPTION, Disclosure, FrozenMap, freeze
from skillshelf.skillmd._values import Notes, Unreadable
from skillshelf.text import find_hidden, show_controls, unify_lines

FORMAT_KEYS = frozenset({"name", "description", "license", "compatibility", "metadata", "allowed-tools"})
MAX_USABLE_NAME = 128
LineOf = Callable[[str], int]
"""The line of a field in the file, worked out only when a diagnostic needs it."""
# No separators of paths, no `@` (it qualifies a name), nothing that quotes, opens a tag or a pattern.
_UNUSABLE = frozenset('/\\@<>"`|*?$')
# What YAML 1.1 takes for a truth value, in any case; the values here are texts as written.
_FLAGS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_WORD = re.compile(r"(?:[^\s,(]|\([^)]*\)?)+")
_HEADING = re.compile(r"#{1,6}[ \t]+(.+)")
# A field that no frontmatter holds is still what its author meant.
_BY_PATTERN = re.compile(r"^description[ \t]*[:=][ \t]*(\S[^\n]{0,1023})$", re.M | re.I)
# `**Version:** 1.2`, `- **Author**: Ada`, `Version: 1.2`: a fact about the file, with its label.
_LABEL = re.compile(r"(?:[-*+][ \t]+)?(?:\*\*|__)([^*_:\n]{1,40})(?::[ \t]*(?:\*\*|__)|(?:\*\*|__)[ \t]*:)[ \t]*(.*)")
_PLAIN_LABEL = re.compile(r"(?:version|author|date|created|updated|last updated|license|status)[ \t]*:", re.I)
_DESCRIBING = frozenset({"about", "description", "goal", "overview", "purpose", "summary", "what it does"})
_NOT_PROSE = re.compile(r"(?:```|~~~|<|\||!\[|\[!|---|===|\*\*\*)")


class OptionalFields:
    """The optional fields of a frontmatter. Never changed once made: skills with the same fields share one."""

    __slots__ = (
        "allowed_tools",
        "argument_hint",
        "arguments",
        "compatibility",
        "disclosure",
        "fields",
        "license",
        "listed",
        "metadata",
        "user_invocable",
    )

    def __init__(self, values: Mapping[str, Any], notes: Notes, line: LineOf) -> None:
        seen = {key: value for key, value in values.items() if _seen(key, value, notes, line)}
        self.license = _text("license", seen, notes, line)
        self.compatibility = _text("compatibility", seen, notes, line)
        self.argument_hint = _hint(seen.pop("argument-hint", ""))
        self.allowed_tools = _words("allowed-tools", seen, notes, line)
        self.arguments = _words("arguments", seen, notes, line)
        self.listed = _paths(seen, notes, line)
        """The references that the author lists, or None if the folder's files count."""
        self.metadata = _metadata(seen, notes, line)
        self.disclosure = _disclosure(seen, self.metadata, notes, line)
        self.user_invocable = _flag("user-invocable", True, seen, notes, line)
        self.fields = freeze(seen) if seen else EMPTY_MAP


def usable_name(text: str) -> bool:
    """Whether a skill can go by this name here; the format's own grammar is narrower."""
    return (
        0 < len(text) <= MAX_USABLE_NAME
        and text.isprintable()
        and text[0] not in ".- "
        and text[-1] != " "
        and _UNUSABLE.isdisjoint(text)
        and not any(find_hidden(text))
    )


def read_name(value: Any, folder: str, notes: Notes, line: LineOf) -> str:
    """The name as written, or the folder's where it is missing or cannot be used."""
    if isinstance(value, str) and value:
        name = value.strip()
        if not value.isascii():
            _refuse_hidden("name", value, line)
            name = unicodedata.normalize("NFKC", name)
        if usable_name(name):
            if name != value.strip():
                message = f"the name {value.strip()!r} is read as {name!r}, its compatible form (NFKC) in Unicode"
                notes.add("info", "name-normalised", message, line("name"), f"write `name: {name}`")
            return name
        reason = (
            f"the name {show_controls(value)[:80]!r} cannot be used"
            if name
            else "Missing required field in frontmatter: name is blank"
        )
    elif value:
        reason = "the name must be text"
    else:
        reason = "Missing required field in frontmatter: name"
    fallback, origin = _name_from(folder)
    code = "name-refused" if value else "name-missing"
    notes.add("warning", code, f"{reason}; {origin} is used", line("name"), f"write `name: {fallback}`")
    return fallback


def _name_from(folder: str) -> tuple[str, str]:
    """Return a name made from the folder's, and words that say how it was made."""
    name = unicodedata.normalize("NFKC", folder).strip()
    if usable_name(name):
        return name, f"the folder's name, {name!r},"
    name = re.sub(r"[^\w-]+", "-", name.encode("ascii", "ignore").decode()).strip("-_")[:64]
    if name:
        return name, f"{name!r}, made from the folder's name,"
    return "skill", "'skill'"


def read_description(value: Any, notes: Notes, line: LineOf) -> str:
    """The description as written, stripped, with nothing in it that hides."""
    if not isinstance(value, str):
        value = _flat(value)
        notes.add(
            "warning",
            "field-invalid",
            "the description must be text; its parts are joined",
            line("description"),
            "put the description in quotes",
        )
    text: str = unify_lines(value).strip()
    if not (text.isascii() and text.isprintable()):
        _refuse_hidden("description", text, line)
        shown = show_controls(text)
        if shown != text:
            notes.add(
                "warning",
                "control-characters",
                "the description has control characters; they are written out",
                line("description"),
                "remove them",
            )
        text = shown
    if len(text) > MAX_DESCRIPTION:
        notes.add(
            "warning",
            "description-too-long",
            f"the description exceeds {MAX_DESCRIPTION} characters ({len(text)}); it is kept, and shown shortened",
            line("description"),
            "say when to use the skill in a sentence or two",
        )
    return text


def describe_from(body: str, notes: Notes, line: LineOf) -> str:
    """A description from the first paragraph, or the first heading, of the instructions."""
    meant = _BY_PATTERN.search(body[:4000])
    heading = ""
    prose: list[str] = [meant[1].strip("\"' ")] if meant else []
    for text in body[:20_000].splitlines() if not prose else ():
        text = _without_label(text.strip())
        match = _HEADING.match(text)
        if match:
            heading = heading or match[1].rstrip(" \t#")
        if match or not text or _NOT_PROSE.match(text):
            if prose:
                break
            continue
        prose.append(text)
    found = show_controls(" ".join(prose) or heading)[:MAX_DESCRIPTION].strip()
    _refuse_hidden("description", found, line)
    if not found:
        raise Unreadable(
            "no-text", "there is no description and no text to take one from", "write `description:` and instructions"
        )
    notes.add(
        "warning",
        "description-missing",
        "Missing required field in frontmatter: description; the first paragraph is used",
        line("description"),
        "write `description:` with what the skill does and when to use it",
    )
    return found


def _without_label(line: str) -> str:
    """Return the line, the text behind a label that says what the skill does, or nothing for any other label."""
    if _PLAIN_LABEL.match(line):
        return ""
    label = _LABEL.match(line)
    if not label:
        return line
    return label[2] if label[1].strip().lower() in _DESCRIBING else ""


def _refuse_hidden(key: str, value: str, line: LineOf) -> None:
    hit = next(find_hidden(value), None)
    if hit:
        raise Unreadable(
            "hidden-characters",
            f"the {key} has a hidden character, U+{ord(hit[0]):04X}; such skills are not loaded",
            "retype the value without it",
            line(key),
        )


def _seen(key: str, value: Any, notes: Notes, line: LineOf) -> bool:
    """Whether an optional field is free of hidden and control characters; one that is not is left out."""
    if key in ("name", "description"):
        return False
    text = key + (value if isinstance(value, str) else _flat(value))
    if (text.isascii() and text.isprintable()) or not (next(find_hidden(text), None) or show_controls(text) != text):
        return True
    notes.add(
        "warning",
        "hidden-characters",
        f"{show_controls(key)!r} has hidden or control characters; it is left out",
        line(key),
        "retype it without them",
    )
    return False


def _flat(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(f"{key}: {_flat(item)}" for key, item in value.items())
    if isinstance(value, list):
        return " ".join(_flat(item) for item in value)
    return str(value)


def _text(key: str, seen: dict[str, Any], notes: Notes, line: LineOf) -> str:
    value = seen.pop(key, "")
    if isinstance(value, str):
        return value
    notes.add(
        "warning", "field-invalid", f"{key!r} must be text; it is left out", line(key), f"write `{key}: …` on one line"
    )
    return ""


def _hint(value: Any) -> str:
    """`[a] [b]` is a list to YAML and a hint to everybody else."""
    return " ".join(f"[{_flat(item)}]" for item in value) if isinstance(value, list) else _flat(value)


def _words(key: str, seen: dict[str, Any], notes: Notes, line: LineOf) -> tuple[str, ...]:
    value = seen.pop(key, "")
    if isinstance(value, str):
        return tuple(word for word in _WORD.findall(value) if word != "-")
    if isinstance(value, list):
        words = (_flat(item).strip() for item in value)
        return tuple(word for word in words if word)
    fix = f"write `{key}: one two` or one `- one` line for each"
    notes.add("warning", "field-invalid", f"{key!r} must be words or a list; it is left out", line(key), fix)
    return ()


def _paths(seen: dict[str, Any], notes: Notes, line: LineOf) -> tuple[str, ...] | None:
    if "references" not in seen:
        return None
    value = seen.pop("references")
    items = [value] if isinstance(value, str) else value
    if isinstance(items, list) and all(isinstance(item, str) for item in items):
        return tuple(dict.fromkeys(item for item in items if item))
    notes.add(
        "warning",
        "field-invalid",
        "'references' must be a list of paths; the folder's files are taken instead",
        line("references"),
        "write one `- references/file.md` line for each",
    )
    return None


def _metadata(seen: dict[str, Any], notes: Notes, line: LineOf) -> FrozenMap:
    value = seen.pop("metadata", "")
    if isinstance(value, dict):
        return FrozenMap(freeze(value))
    if value:
        notes.add(
            "warning",
            "field-invalid",
            "'metadata' must be a mapping; it is left out",
            line("metadata"),
            "write `metadata:` and below it indented `key: value` lines",
        )
    return EMPTY_MAP


def _flag(key: str, default: bool, seen: dict[str, Any], notes: Notes, line: LineOf) -> bool:
    value = seen.pop(key, "")
    if not value:
        return default
    known = _FLAGS.get(_flat(value).casefold())
    if known is not None:
        return known
    notes.add(
        "warning",
        "field-invalid",
        f"{key!r} must be true or false, not {_flat(value)[:80]!r}; it is left out",
        line(key),
        f"write `{key}: true` or `{key}: false`",
    )
    return default


def _disclosure(seen: dict[str, Any], metadata: FrozenMap, notes: Notes, line: LineOf) -> Disclosure:
    asked = seen.pop("disclosure", "") or metadata.get("disclosure", "auto")
    if _flag("disable-model-invocation", False, seen, notes, line):
        return "manual"
    if asked == "auto" or asked == "always" or asked == "manual":
        return asked  # type: ignore[no-any-return]
    notes.add(
        "warning",
        "field-invalid",
        f"disclosure must be auto, always or manual, not {_flat(asked)[:80]!r}",
        line("disclosure"),
        "write `disclosure: auto`, or leave it out",
    )
    return "auto"
