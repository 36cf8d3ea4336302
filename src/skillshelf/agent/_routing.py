"""For a model that cannot call tools: the shelf finds the skill that fits a message and puts it before the model."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from skillshelf.errors import SkillError
from skillshelf.text import text_for_model
from skillshelf.tokens import Counter

if TYPE_CHECKING:
    from skillshelf.search import Match
    from skillshelf.shelf import Shelf
    from skillshelf.turn import Turn

THRESHOLD = 3.5
"""How well a skill must fit: a word that only its name has counts 4, one that only its description has 2.

Measured on author evals and small talk: docs/guides/models.md has the numbers.
"""
LEAST_BUDGET = 100
"""Tokens below which there is no room for a skill."""
# What people say to anybody, about anything: it tells nothing about a skill.
_SMALL_TALK = frozenset(
    "about again also am any because bye cool d didn doesn don get give go going good goodbye got great hello hey hi "
    "hmm isn just know let like ll lol m make more morning nice night no nope now ok okay one perfect re really s said "
    "say see sorry stuff sure t tell thank thanks thing think thx ve very wait wasn won yeah yes".split()
)
_WORD = re.compile(r"[^\W_]+")
_READABLE = (".md", ".mdx", ".markdown", ".rst", ".adoc", ".txt")
_LOOKED_AT, _LOOKED_INTO = 50, 64 * 1024
_OWN_TAG = re.compile(r"<(?=\s*+(?:/\s*+)?(?:skill|instructions|reference)\b)|&(?=(?:lt|amp);)", re.I)
_ATTRIBUTE = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\n": " ", "\r": " "})
_FENCE = re.compile(r"\s{0,3}(?:```|~~~)")


@dataclass(frozen=True, slots=True)
class Route:
    """A skill that the shelf puts before the model."""

    skill: str
    reference: str
    """Empty where none fits."""
    text: str
    """What goes before the person's message: one block, whose end cannot be forged from inside."""
    score: float
    """How well the skill fits; `THRESHOLD` is the least. 0 for one that was asked for by name."""
    why: str


def route(shelf: "Shelf", turn: "Turn", message: str, *, budget: int, previous: str | None = None) -> Route | None:
    """The skill that fits the message, loaded in this turn; None where none fits well.

    `previous` is the skill of the turn before: it stays unless another fits clearly better. Raises what `turn.load`
    raises.
    """
    wanted = " ".join(word for word in _WORD.findall(message.lower()) if word not in _SMALL_TALK)
    if budget < LEAST_BUDGET or not wanted:
        return None
    # A word that one skill alone has weighs this much in the search, whatever the size of the shelf.
    unit = math.log(1 + len(shelf.catalog) / 2) if shelf.catalog else 1.0
    match = _chosen(
        [match for match in shelf.search(wanted) if match.descriptor.disclosure != "manual"], previous, unit
    )
    if match is None:
        return None
    name = match.descriptor.name
    reference, text = _loaded(shelf, turn, name, message, budget, "shelf")
    return Route(name, reference, text, round(match.score / unit, 2), ", ".join(match.why))


def route_named(shelf: "Shelf", turn: "Turn", name: str, message: str, *, budget: int) -> Route:
    """The skill the person asked for, whatever the message says. Raises what `turn.load` raises."""
    reference, text = _loaded(shelf, turn, name, message, max(budget, LEAST_BUDGET), "user")
    return Route(name, reference, text, 0.0, "asked for by name")


def _chosen(matches: "list[Match]", previous: str | None, unit: float) -> "Match | None":
    best = matches[0] if matches else None
    for match in matches:
        stays = match.score >= THRESHOLD / 2 * unit and best is not None and best.score < 1.5 * match.score
        if match.descriptor.name == previous and stays:
            return match
    return best if best and best.score >= THRESHOLD * unit else None


def _loaded(
    shelf: "Shelf", turn: "Turn", name: str, message: str, budget: int, by: Literal["user", "shelf"]
) -> tuple[str, str]:
    """The reference that goes with the skill, if any, and the block of both."""
    instructions = turn.load(name, by=by).text
    reference = _reference(shelf, name, message)
    page = turn.load(name, reference, by=by).text if reference else ""
    return reference, _block((name, instructions), (reference, page), budget, shelf.counter)


def _block(skill: tuple[str, str], reference: tuple[str, str], budget: int, count: Counter) -> str:
    """Both texts within the budget: the instructions may take two thirds, or all that the reference leaves."""
    name, path = (item[0].translate(_ATTRIBUTE) for item in (skill, reference))
    body, page = (_escaped(item[1]) for item in (skill, reference))
    head = f'<skill name="{name}">\nFollow this skill where it fits the message below.\n<instructions>\n'
    middle = f'\n</instructions>\n<reference path="{path}">\n' if path else "\n</instructions>"
    foot = "\n</reference>\n</skill>\n" if path else "\n</skill>\n"
    room = budget - count(head + middle + foot) - 1
    body = _cut(body, max(room - count(page), room * 2 // 3), count)
    return head + body + middle + _cut(page, room - count(body), count) + foot


def _escaped(text: str) -> str:
    """The text, in which nothing can be taken for a tag of the block."""
    return _OWN_TAG.sub(lambda one: "&lt;" if one[0] == "<" else "&amp;", text_for_model(text.strip()))


def _cut(text: str, room: int, count: Counter) -> str:
    """As many whole paragraphs as there is room for, and a line that says what is missing."""
    total = count(text)
    if total <= room:
        return text
    said = "\n\n[Cut here: about {} of {} tokens are left out.]"
    room -= count(said.format(total, total)) + 1
    kept = _fitting(_paragraphs(text), "\n\n", room, count)
    kept = (
        kept or _fitting(iter(text.splitlines()), "\n", room, count) or _fitting(iter(text.split()), " ", room, count)
    )
    return kept + said.format(total - count(kept), total)


def _fitting(pieces: Iterator[str], between: str, room: int, count: Counter) -> str:
    kept: list[str] = []
    for piece in pieces:
        room -= count(piece) + 1
        if room < 0:
            break
        kept.append(piece)
    while kept and kept[-1].startswith("#"):  # a heading with nothing below it
        kept.pop()
    return between.join(kept)


def _paragraphs(text: str) -> Iterator[str]:
    """What blank lines separate; a fenced block of code is one piece."""
    lines: list[str] = []
    fenced = False
    for line in text.splitlines():
        fenced ^= bool(_FENCE.match(line))
        if line.strip() or fenced:
            lines.append(line)
        elif lines:
            yield "\n".join(lines)
            lines = []
    if lines:
        yield "\n".join(lines)


def _reference(shelf: "Shelf", name: str, message: str) -> str:
    """The readable reference whose name or headings fit the message best; empty where none does."""
    found = shelf.catalog.find(name)
    source, skill = shelf.sources[found.place.source], found.descriptor
    wanted = _roots(message) - _roots(skill.name)
    best, best_score = "", 0
    for path in [path for path in skill.references if path.lower().endswith(_READABLE)][:_LOOKED_AT]:
        try:
            page = source.reference(found.place.key, skill, path, 0, _LOOKED_INTO)
        except SkillError:  # gone or refused: `check` tells its author, and the skill works without
            continue
        score = _fit(path, page.data.decode("utf-8", "replace"), wanted)
        if score > best_score and b"\0" not in page.data:
            best, best_score = path, score
    return best


def _fit(path: str, text: str, wanted: set[str]) -> int:
    in_name = wanted & _roots(path.rpartition("/")[2].rpartition(".")[0])
    in_headings = wanted & _roots("\n".join(line for line in text.splitlines() if line.startswith("#")))
    # A word somewhere in the text breaks a tie, but does not make a file fit.
    return (3 * len(in_name) + 2 * len(in_headings)) * 100 + len(wanted & _roots(text)) if in_name | in_headings else 0


def _roots(text: str) -> set[str]:
    """The words of a text, cut so that most forms of a word are the same."""
    words = (word for word in _WORD.findall(text.lower()) if len(word) > 2 and word not in _SMALL_TALK)
    return {word[:5] if len(word) > 5 else word.removesuffix("s") for word in words}
