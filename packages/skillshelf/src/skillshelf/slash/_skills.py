"""Skills as commands: `/skills:<name>`, and the message that it becomes.

Instructions hold code that the model must see unchanged. Only text that could be taken for the message's own tags is
escaped, and `read_message` undoes that exactly, so that no skill and no argument can close the block it stands in.
"""

import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import lru_cache
from typing import Generic, NamedTuple

from skillshelf.shelf import list_references
from skillshelf.skills import Catalog, SkillDescriptor
from skillshelf.slash._commands import (
    SKILL_PREFIX,
    Command,
    FaceT,
    NameMatch,
    Suggestion,
    find_name,
    parse_command,
    strip_separator,
)
from skillshelf.slash._completion import quote_path
from skillshelf.text import clean_line

_OWN_TAG = re.compile(r"<(?=\s*+(?:/\s*+)?skill_(?:instructions|references|arguments)\b)|&(?=(?:lt|amp);)", re.I)
_ESCAPED = re.compile(r"&(lt|amp);")
_PATH_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", "\r": "&#13;", "\n": "&#10;"})
# Each block ends at its first closing tag, because no text inside can have one: so nothing is tried twice.
_MESSAGE = re.compile(
    r'Apply Skill "(?P<name>[^\n]*)"\n\n<skill_instructions>\n(?>(?P<instructions>.*?)\n</skill_instructions>\n)'
    r"(?>\n[^\n]*\n<skill_references>\n.*?\n</skill_references>\n)?+"
    r"(?>\n<skill_arguments>\n(?P<arguments>.*?)\n</skill_arguments>\n)?+",
    re.S,
)
# A backslash before a letter is part of a Windows path. An apostrophe inside a word opens no quotation.
_WORD_PIECE = re.compile(
    r"""(?P<space>\s++) | "(?P<double>(?:[^"\\]|\\.)*+)" | (?<![^\s"'])'(?P<single>[^']*+)'
      | \\(?P<escaped>["'\\\s]) | (?P<plain>[^\s"'\\]++|.)""",
    re.S | re.X,
)
_QUOTED_ESCAPE = re.compile(r'\\(["\\])')
# A megabyte of placeholders, each filled with a pasted text, would be gigabytes.
_MAX_FILLED = 1_000_000


class AppliedSkill(NamedTuple):
    """The content of an Apply Skill message."""

    name: str
    instructions: str
    arguments: str
    """Empty if the arguments were put into the instructions."""


def apply_message(descriptor: SkillDescriptor, instructions: str, arguments: str, *, reach: str = "") -> str:
    """Return the message that a user sends to the model by invoking a skill.

    Placeholders are replaced only if the skill declares arguments; arguments without a place of their own follow the
    instructions. Commands inside the text stay text. `reach` is the name that leads to a shadowed skill.
    """
    if descriptor.arguments or descriptor.argument_hint:
        filled = fill_placeholders(instructions, arguments, descriptor.arguments)
        instructions = filled.text
        if filled.is_complete:
            arguments = ""

    name = clean_line(reach or descriptor.name)
    message = f'Apply Skill "{name}"\n\n{_make_block("instructions", instructions)}'
    if descriptor.references:
        message += f"\n{_make_references_block(name, descriptor.references)}"
    if arguments:
        message += f"\n{_make_block('arguments', arguments)}"
    return message


def read_message(text: str) -> AppliedSkill | None:
    """Take an Apply Skill message apart, exactly as it was put together. Return None for any other message."""
    match = _MESSAGE.fullmatch(text)
    if not match:
        return None
    return AppliedSkill(match["name"], _unescape(match["instructions"]), _unescape(match["arguments"] or ""))


class FilledText(NamedTuple):
    """A text with its placeholders replaced."""

    text: str
    is_complete: bool
    """True if every argument was put into the text."""


def fill_placeholders(text: str, arguments: str, names: Sequence[str]) -> FilledText:
    """Replace `$ARGUMENTS`, `$1`, `$2` … and `$name` in one pass: placeholders inside an argument are left alone."""
    words = split_words(arguments)
    index_of = {
        name: index for index, name in enumerate(names) if name and name != "ARGUMENTS" and not name.isdecimal()
    }
    # `$1.50` is money.
    alternatives = "".join(f"|{re.escape(name)}" for name in sorted(index_of, key=len, reverse=True))
    pattern = re.compile(rf"\$(ARGUMENTS|[1-9][0-9]?{alternatives})(?!\w|\.\d)")
    used: set[int] = set()
    room = _MAX_FILLED

    def replace(match: re.Match[str]) -> str:
        nonlocal room
        name = match[1]
        if name == "ARGUMENTS":
            value = arguments
            indexes = range(len(words))
        else:
            index = index_of[name] if name in index_of else int(name) - 1
            value = words[index] if index < len(words) else ""
            indexes = range(index, index + 1)

        room -= len(value)
        if room < 0:
            return match[0]
        used.update(indexes)
        return value

    filled = pattern.sub(replace, text)
    return FilledText(filled, used.issuperset(range(len(words))))


def split_words(arguments: str) -> list[str]:
    """Split arguments as a shell does, except that a quote that nothing closes is an ordinary character."""
    words: list[str] = []
    inside_word = False
    for piece in _WORD_PIECE.finditer(arguments):
        kind = piece.lastgroup or "plain"
        if kind == "space":
            inside_word = False
            continue

        text = piece[kind]
        if kind == "double":
            text = _QUOTED_ESCAPE.sub(r"\1", text)
        if inside_word:
            words[-1] += text
        else:
            words.append(text)
            inside_word = True
    return words


def _make_references_block(name: str, references: Sequence[str]) -> str:
    how_to_load = f'References of this skill: load one with load_skill_instructions(skill_name="{name}", reference=…).'
    listed = "\n".join(list_references([path.translate(_PATH_ESCAPES) for path in references]))
    return f"{how_to_load}\n<skill_references>\n{listed}\n</skill_references>\n"


def _make_block(tag: str, text: str) -> str:
    escaped = _OWN_TAG.sub(lambda match: "&lt;" if match[0] == "<" else "&amp;", text)
    return f"<skill_{tag}>\n{escaped}\n</skill_{tag}>\n"


def _unescape(text: str) -> str:
    return _ESCAPED.sub(lambda match: "<" if match[1] == "lt" else "&", text)


Invoke = Callable[[FaceT, str, str], Awaitable[None] | None]
"""Called with the face, the name that leads to the skill, and the arguments."""
Count = Callable[[str], int | None]
"""Returns the tokens of a skill, by the name that leads to it, or None if they are not known."""


class Invocation(NamedTuple):
    """A message that asks for a skill by name."""

    skill: str
    arguments: str
    """Verbatim from the first word or the next line on."""


def parse_invocation(text: str, catalog: Catalog) -> Invocation | None:
    """Read a message as `/skills:<name> [arguments]`. Return None if it does not begin like that.

    If no skill has the name, the first word is taken for it.
    """
    if parse_command(text) is None or not text.startswith(f"/{SKILL_PREFIX}"):
        return None

    typed = text.removeprefix(f"/{SKILL_PREFIX}")
    match = find_name(typed, catalog)
    if match is None:
        first_word = (typed.split(maxsplit=1) or [""])[0]
        match = NameMatch(first_word, len(first_word))
    return Invocation(match.name, strip_separator(typed[match.end :]))


def skill_commands(
    catalog: Callable[[], Catalog], invoke: Invoke[FaceT], count: Count | None = None
) -> Callable[[], Sequence[Command[FaceT]]]:
    """Return a function for `register("skills:", …)` that lists a command for each skill; shadowed skills come last.

    `count` returns the tokens of a skill's instructions, which completion shows, such as `Shelf.count_instructions`.
    """
    return _SkillCommands(catalog, invoke, count).list


class _SkillCommands(Generic[FaceT]):
    """The commands of a catalog. A command is made once for each version of a skill."""

    def __init__(self, catalog: Callable[[], Catalog], invoke: Invoke[FaceT], count: Count | None) -> None:
        self._get_catalog = catalog
        self._invoke = invoke
        self._count = count
        self._catalog: Catalog | None = None
        self._made: dict[str, _SkillCommand[FaceT]] = {}
        self._commands: tuple[Command[FaceT], ...] = ()

    def list(self) -> Sequence[Command[FaceT]]:
        catalog = self._get_catalog()
        if catalog is not self._catalog:
            self._catalog = catalog
            self._made = {name: self._make(name, skill) for name, skill in _list_invocable(catalog)}
            self._commands = tuple(made.command for made in self._made.values())
        return self._commands

    def _make(self, name: str, skill: SkillDescriptor) -> "_SkillCommand[FaceT]":
        made = self._made.get(name)
        if made is not None and made.skill is skill:
            return made

        def run(face: FaceT, arguments: str) -> Awaitable[None] | None:
            return self._invoke(face, name, arguments)

        def complete(_: str) -> Sequence[Suggestion]:
            return _suggest_references(skill.references)

        command = Command(
            name,
            skill.summary,
            run,
            usage=skill.argument_hint or " ".join(f"[{argument}]" for argument in skill.arguments),
            complete=complete if skill.references else None,
            cost=self._count(name) if self._count else None,
        )
        return _SkillCommand(skill, command)


class _SkillCommand(NamedTuple, Generic[FaceT]):
    """A command, and the version of the skill that it was made for."""

    skill: SkillDescriptor
    command: Command[FaceT]


def _list_invocable(catalog: Catalog) -> Iterator[tuple[str, SkillDescriptor]]:
    """Yield the skills that a user may invoke, each with the name that leads to it."""
    shadowed = []
    for name in catalog:
        first, *rest = catalog.candidates(name)
        if first.descriptor.user_invocable:
            yield name, first.descriptor
        shadowed += rest
    for candidate in shadowed:
        if candidate.descriptor.user_invocable:
            yield catalog.reach(candidate), candidate.descriptor


@lru_cache(maxsize=4)
def _suggest_references(paths: tuple[str, ...]) -> tuple[Suggestion, ...]:
    return tuple(Suggestion(quote_path(path), label=path) for path in paths)
