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
_STOP_WORDS = frozenset(
    "a an and are as at be but by can could did do does for from had has have how i if in into is it its me my need "
    "not of on or our please should so some that the their them then there they this to use want was we what when "
    "where which who will with would you your".split()
)
_ENDINGS = ("ations", "ation", "ings", "ing", "ies", "ied", "es", "ed", "s")
_MIN_STEM = 3
_MAX_QUERY_CHARACTERS = 2_000
_MAX_QUERY_WORDS = 50
_WEIGHTS = {"name": 4.0, "description": 2.0, "references": 1.0}


@dataclass(frozen=True, slots=True)
class Match:
    """A skill that fits a query."""

    descriptor: SkillDescriptor
    score: float
    why: tuple[str, ...]
    """The words of the query that were found, each with its field: `pdf in name`."""


def search(catalog: Mapping[str, SkillDescriptor], query: str, limit: int = 5) -> list[Match]:
    """Return the skills that share words with the query, best first. Skills for the user alone are left out."""
    typed = _stem_query(query)
    if not typed:
        return []

    hits: list[tuple[SkillDescriptor, dict[str, str]]] = []
    skills_with = dict.fromkeys(typed, 0)
    total = 0
    for skill in catalog.values():
        if skill.disclosure == "manual":
            continue
        total += 1
        fields = _find_fields(skill, typed)
        if fields:
            hits.append((skill, fields))
        for stem in fields:
            skills_with[stem] += 1

    rarity = {stem: math.log(1 + total / (1 + count)) for stem, count in skills_with.items()}
    matches: list[Match] = []
    for skill, fields in hits:
        score = sum(rarity[stem] * _WEIGHTS[field] for stem, field in fields.items())
        why = tuple(f"{typed[stem]} in {field}" for stem, field in fields.items())
        matches.append(Match(skill, round(score, 4), why))
    return heapq.nsmallest(limit, matches, key=lambda match: (-match.score, match.descriptor.name))


def _find_fields(skill: SkillDescriptor, stems: Mapping[str, str]) -> dict[str, str]:
    """Return the best field that each stem is in."""
    texts = {
        "name": skill.name.lower(),
        # Searching a description of a megabyte would take seconds.
        "description": skill.description[:MAX_DESCRIPTION].lower(),
        "references": " ".join(skill.references).lower(),
    }
    fields: dict[str, str] = {}
    for stem in stems:
        for field, text in texts.items():
            if stem in text and _begins_word(stem, text):
                fields[stem] = field
                break
    return fields


def _begins_word(stem: str, text: str) -> bool:
    """Return whether a word of the text begins with the stem: `deploy` finds `deployment`, not `form` `platform`."""
    at = text.find(stem)
    while at >= 0:
        if at == 0 or not text[at - 1].isalnum() or _UNSPACED.match(stem):
            return True
        at = text.find(stem, at + 1)
    return False


def _stem_query(query: str) -> dict[str, str]:
    """Return the stems to look for, each with the word of the query that it comes from."""
    stems: dict[str, str] = {}
    for word in _WORD.findall(query.lower()[:_MAX_QUERY_CHARACTERS]):
        if _UNSPACED.search(word):
            for character in word:
                stems[character] = character
        elif word not in _STOP_WORDS:
            stems.setdefault(_stem(word), word)
    return dict(list(stems.items())[:_MAX_QUERY_WORDS])


def _stem(word: str) -> str:
    """Return the part of an English word that its other forms begin with."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _MIN_STEM:
            return word[: -len(ending)]
    return word
