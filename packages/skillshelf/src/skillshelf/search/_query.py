"""A query, made ready for the index: its words, corrected where no skill has them, and how much each counts."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from skillshelf.search._limits import MAX_QUERY, MAX_QUERY_WORDS, MAX_WORD
from skillshelf.search._words import cut_ending, is_unspaced, spell_variants, split_query

_MAX_CORRECTED = 3
"""Unknown words that are corrected. Each takes about a millisecond."""
_FEW_WORDS = 12
"""The words of a query in which unknown ones are corrected. In a longer one, the other words find the skill."""
_CORRECTED = 0.8
"""The importance of a word that was corrected: it may be another word after all."""
_UNSPACED = 0.5
"""The importance of a pair of characters: each character is in two of them."""
_MIN_CORRECTED_LETTERS = 5
_COUNT_OF_UNKNOWN = 0.5
"""A word that no skill has weighs a little more than one that a single skill has."""

Count = Callable[[Sequence[str]], list[int]]
"""Returns how many skills have each word."""


@dataclass(slots=True)
class Query:
    text: str
    words: list[str] = field(default_factory=list)
    """In order, with repetitions."""
    importance: dict[str, float] = field(default_factory=dict)
    """The weight of each word, without regard to its rarity."""
    rarity: dict[str, float] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)
    """How much each word counts: its importance times its rarity."""
    spelling: dict[str, str] = field(default_factory=dict)
    """Each word as the query has it."""
    corrected: set[str] = field(default_factory=set)
    """The words that stand for unknown ones."""


def read_query(text: str, count: Count, size: int) -> Query:
    """Return the words of a text, corrected if no skill has them, and what each is worth among `size` skills."""
    query = Query(text[:MAX_QUERY])
    words = split_query(query.text)[:MAX_QUERY_WORDS]
    distinct = list({word: None for word, _ in words})
    counts = dict(zip(distinct, count(distinct), strict=True))
    is_short = len(distinct) <= _FEW_WORDS

    for word, spelling in words:
        known = word
        if not counts[word] and is_short and len(query.corrected) < _MAX_CORRECTED:
            known = _correct(word, spelling, count)
            counts.setdefault(known, 1)

        importance = 1.0
        if known != word:
            importance = _CORRECTED
            query.corrected.add(known)
        elif len(word) > 1 and is_unspaced(word):
            importance = _UNSPACED

        query.words.append(known)
        query.importance.setdefault(known, importance)
        query.spelling.setdefault(known, spelling)

    for word, number in zip(query.importance, count(list(query.importance)), strict=True):
        query.rarity[word] = weigh_rarity(max(number, _COUNT_OF_UNKNOWN), size)
        query.weights[word] = query.importance[word] * query.rarity[word]
    return query


def _correct(word: str, spelling: str, count: Count) -> str:
    """Return the known word that is one typo away from an unknown one, the most common if there are several."""
    if not _MIN_CORRECTED_LETTERS <= len(spelling) <= MAX_WORD:
        return word
    if not (spelling.isascii() and spelling.isalpha()):
        return word
    variants = sorted({cut_ending(variant) for variant in spell_variants(spelling)})
    counts = count(variants)
    highest = max(counts)
    return variants[counts.index(highest)] if highest else word


def weigh_rarity(count: float, size: int) -> float:
    """Return BM25's inverse document frequency: what a word says that few of `size` texts have."""
    return math.log(1 + (max(size, count) - count + 0.5) / (count + 0.5))
