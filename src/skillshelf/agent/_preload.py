"""For a model that cannot call tools: the shelf finds the skill that fits a message and puts it before the message."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from skillshelf.errors import SkillError
from skillshelf.search import split_words
from skillshelf.text import text_for_model
from skillshelf.tokens import Counter

if TYPE_CHECKING:
    from skillshelf.search import Match
    from skillshelf.shelf import Shelf
    from skillshelf.turn import Turn

LEAST_BUDGET = 100
"""Tokens below which there is no room for a skill."""
_CLEARLY_BETTER = 1.5
"""How many times the score of the previous skill another one must have."""
_READABLE = (".md", ".mdx", ".markdown", ".rst", ".adoc", ".txt")
_MAX_REFERENCES = 50
"""References of a skill that are compared with a message."""
_MAX_REFERENCE_BYTES = 64 * 1024
_OWN_TAG = re.compile(r"<(?=\s*+(?:/\s*+)?(?:skill|instructions|reference)\b)|&(?=(?:lt|amp);)", re.I)
_ATTRIBUTE = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\n": " ", "\r": " "})
_FENCE = re.compile(r"\s{0,3}(?:```|~~~)")
_CUT = "\n\n[Cut here: about {} of {} tokens are left out.]"


@dataclass(frozen=True, slots=True)
class Preloaded:
    """A skill that the shelf puts before a message."""

    skill: str
    reference: str
    """Empty if none fits."""
    text: str
    """The block that goes before the user's message. Its end cannot be forged from inside."""
    score: float
    """How well the skill fits, as search scores it. 0 for a skill that the user invoked."""
    why: str


def preload(
    shelf: "Shelf", turn: "Turn", message: str, *, budget: int, previous: str | None = None
) -> Preloaded | None:
    """Load the skill that the message is clearly about, in this turn. Return None if there is none.

    `previous` is the skill of the turn before. It stays unless another fits clearly better. Raises the errors of
    `turn.load`.
    """
    if budget < LEAST_BUDGET:
        return None
    match = _choose_match(shelf.search(message), previous)
    if match is None:
        return None
    reference, text = _load(shelf, turn, match.name, message, budget, "shelf")
    return Preloaded(match.name, reference, text, match.score, ", ".join(match.why))


def preload_named(shelf: "Shelf", turn: "Turn", name: str, message: str, *, budget: int) -> Preloaded:
    """Load the skill that the user invoked, whatever the message says. Raises the errors of `turn.load`."""
    reference, text = _load(shelf, turn, name, message, max(budget, LEAST_BUDGET), "user")
    return Preloaded(name, reference, text, 0.0, "asked for by name")


def _choose_match(matches: "Sequence[Match]", previous: str | None) -> "Match | None":
    """Return the best match if it is clear. The previous skill needs less to stay than another to begin."""
    if not matches:
        return None
    best = matches[0]
    for match in matches:
        shares_word = any(word.field in ("name", "description") for word in match.words)
        is_clearly_worse = best.score >= _CLEARLY_BETTER * match.score
        if match.name == previous and shares_word and not is_clearly_worse:
            return match
    return best if best.is_clear else None


def _load(
    shelf: "Shelf", turn: "Turn", name: str, message: str, budget: int, by: Literal["user", "shelf"]
) -> tuple[str, str]:
    """Return the reference that goes with the skill, if any, and the block with both texts."""
    instructions = turn.load(name, by=by).text
    reference = _find_reference(shelf, name, message)
    page = turn.load(name, reference, by=by).text if reference else ""
    return reference, _make_block(name, instructions, reference, page, budget, shelf.counter)


def _make_block(name: str, instructions: str, reference: str, page: str, budget: int, count: Counter) -> str:
    """Put both texts in a block within the budget.

    The instructions may take two thirds of it, or all that the reference leaves.
    """
    name = name.translate(_ATTRIBUTE)
    head = f'<skill name="{name}">\nFollow this skill as far as it fits the message below.\n<instructions>\n'
    middle = "\n</instructions>"
    foot = "\n</skill>\n"
    if reference:
        path = reference.translate(_ATTRIBUTE)
        middle = f'\n</instructions>\n<reference path="{path}">\n'
        foot = "\n</reference>\n</skill>\n"

    room = budget - count(head + middle + foot) - 1
    page = _escape_tags(page)
    body = _cut(_escape_tags(instructions), max(room - count(page), room * 2 // 3), count)
    page = _cut(page, room - count(body), count)
    return f"{head}{body}{middle}{page}{foot}"


def _escape_tags(text: str) -> str:
    """Escape everything in the text that could be taken for a tag of the block."""
    return _OWN_TAG.sub(lambda match: "&lt;" if match[0] == "<" else "&amp;", text_for_model(text.strip()))


def _cut(text: str, room: int, count: Counter) -> str:
    """Keep as many whole paragraphs as there is room for, and add a line that says how much is missing."""
    total = count(text)
    if total <= room:
        return text
    room -= count(_CUT.format(total, total)) + 1
    beginning = (
        _take_fitting(_paragraphs(text), "\n\n", room, count)
        or _take_fitting(iter(text.splitlines()), "\n", room, count)
        or _take_fitting(iter(text.split()), " ", room, count)
    )
    return beginning + _CUT.format(total - count(beginning), total)


def _take_fitting(pieces: Iterator[str], separator: str, room: int, count: Counter) -> str:
    fitting: list[str] = []
    for piece in pieces:
        room -= count(piece) + 1
        if room < 0:
            break
        fitting.append(piece)
    while fitting and fitting[-1].startswith("#"):  # a heading with nothing below it
        fitting.pop()
    return separator.join(fitting)


def _paragraphs(text: str) -> Iterator[str]:
    """Split a text at blank lines. A fenced block of code stays in one piece."""
    lines: list[str] = []
    is_in_fence = False
    for line in text.splitlines():
        if _FENCE.match(line):
            is_in_fence = not is_in_fence
        if line.strip() or is_in_fence:
            lines.append(line)
        elif lines:
            yield "\n".join(lines)
            lines = []
    if lines:
        yield "\n".join(lines)


def _find_reference(shelf: "Shelf", name: str, message: str) -> str:
    """Return the readable reference whose name or headings fit the message best, or an empty string."""
    candidate = shelf.catalog.find(name)
    source = shelf.sources[candidate.place.source]
    skill = candidate.descriptor
    wanted = {*split_words(message)} - {*split_words(skill.name)}
    readable = [path for path in skill.references if path.lower().endswith(_READABLE)]

    best = ""
    best_score = 0
    for path in readable[:_MAX_REFERENCES]:
        try:
            page = source.reference(candidate.place.key, skill, path, 0, _MAX_REFERENCE_BYTES)
        except SkillError:  # gone or refused: `check` informs its author, and the skill works without
            continue
        if b"\0" in page.data:
            continue
        score = _score_reference(path, page.data.decode("utf-8", "replace"), wanted)
        if score > best_score:
            best = path
            best_score = score
    return best


def _score_reference(path: str, text: str, wanted: set[str]) -> int:
    stem = path.rpartition("/")[2].rpartition(".")[0]
    headings = "\n".join(line for line in text.splitlines() if line.startswith("#"))
    in_name = wanted.intersection(split_words(stem))
    in_headings = wanted.intersection(split_words(headings))
    if not in_name and not in_headings:
        return 0
    # A word somewhere in the text breaks a tie, but does not make a file fit.
    return (3 * len(in_name) + 2 * len(in_headings)) * 100 + len(wanted.intersection(split_words(text)))
