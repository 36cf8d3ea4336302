"""Plain word search: rare words count more than common ones, a name more than a description."""

import heapq
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from skillshelf.descriptor import MAX_DESCRIPTION, SkillDescriptor

_WORD = re.compile(r"[^\W_]+")
# Scripts that write without spaces: each character counts as a word.
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
_STOP = frozenset(
    "a an and are as at be but by can could did do does for from had has have how i if in into is it its me my need "
    "not of on or our please should so some that the their them then there they this to use want was we what when "
    "where which who will with would you your".split()
)
_WEIGHTS = (("name", 4.0), ("description", 2.0), ("references", 1.0))


@dataclass(frozen=True, slots=True)
class Match:
    """A skill that fits a query."""

    descriptor: SkillDescriptor
    score: float
    why: tuple[str, ...]
    """The words of the query that were found, each with where: `pdf in name`."""


def search(catalog: Mapping[str, SkillDescriptor], query: str, limit: int = 5) -> list[Match]:
    """The skills that share words with the query, best first. Skills that are not for the model are left out."""
    typed = _words(query)
    wanted = list(typed)
    if not wanted:
        return []
    found: list[tuple[SkillDescriptor, dict[str, str]]] = []
    spread: dict[str, int] = dict.fromkeys(wanted, 0)
    total = 0
    for skill in catalog.values():
        if skill.disclosure == "manual":
            continue
        total += 1
        where = _where(skill, wanted)
        if where:
            found.append((skill, where))
            for word in where:
                spread[word] += 1
    weights = dict(_WEIGHTS)
    rarity = {word: math.log(1 + total / (1 + count)) for word, count in spread.items()}
    matches = [
        Match(
            skill,
            round(sum(rarity[word] * weights[field] for word, field in where.items()), 4),
            tuple(f"{typed[word]} in {field}" for word, field in where.items()),
        )
        for skill, where in found
    ]
    return heapq.nsmallest(limit, matches, key=lambda match: (-match.score, match.descriptor.name))


def _where(skill: SkillDescriptor, wanted: list[str]) -> dict[str, str]:
    """The best field that each wanted word is in."""
    texts = {
        "name": skill.name.lower(),
        "description": skill.description[:MAX_DESCRIPTION].lower(),
        "references": " ".join(skill.references).lower(),
    }
    where: dict[str, str] = {}
    for word in wanted:
        for field, text in texts.items():
            if word in text and _begins_word(word, text):
                where[word] = field
                break
    return where


def _begins_word(word: str, text: str) -> bool:
    """Whether a word of the text begins with this one: `deploy` finds `deployment`, `form` does not find `platform`."""
    at = text.find(word)
    while at >= 0:
        if at == 0 or not text[at - 1].isalnum() or _UNSPACED.match(word):
            return True
        at = text.find(word, at + 1)
    return False


def _words(query: str) -> dict[str, str]:
    """What to look for, and the word of the query that it comes from."""
    words: dict[str, str] = {}
    for word in _WORD.findall(query.lower()[:2000]):
        if _UNSPACED.search(word):
            words.update(zip(word, word, strict=True))
        elif word not in _STOP:
            words.setdefault(_stem(word), word)
    return dict(list(words.items())[:50])


def _stem(word: str) -> str:
    """The part of an English word that its other forms begin with."""
    for ending in ("ations", "ation", "ings", "ing", "ies", "ied", "es", "ed", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word
