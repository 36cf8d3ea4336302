"""Which of many names is meant: the bare name counts first, then words of the description.

Without a function for typos this finds correctly spelled words. The agent brings one that forgives typos.
"""

import re
import string
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from functools import cached_property, lru_cache

MAX_SUGGESTIONS = 50
"""A longer menu is not read."""
_MAX_QUERY = 64
_WORD = re.compile(r"[^\W_]+")
_TO_SPACES = str.maketrans(dict.fromkeys(string.punctuation + "\n\t“”‘’«»–—…·•", " "))

FindNear = Callable[[str, Sequence[str]], Mapping[int, int]]
"""Returns the texts that begin almost like a query: the number of typos by index."""
Rank = Callable[[str, "NameIndex"], list[int]]
"""Returns the indexes of the names that fit a query, best first."""


class _Tier(IntEnum):
    """How well a name fits, best first. There is room between the tiers for a number of typos."""

    EXACT = 0
    NAME_PREFIX = 10
    SPELLING_PREFIX = 20
    WORD_PREFIX = 30
    INSIDE = 40
    MISSPELLED = 50
    DESCRIBED = 60
    DESCRIBED_MISSPELLED = 70


class NameIndex:
    """The names to rank, prepared once for many keys."""

    def __init__(self, names: Sequence[str], spellings: Sequence[str], summaries: Sequence[str]) -> None:
        self.names = [name.lower() for name in names]
        self.spellings = [spelling.lower() for spelling in spellings]
        self.summaries = summaries

    @cached_property
    def texts(self) -> list[str]:
        """The words of each name and summary, with a space before each word."""
        return [_join_words(name, summary) for name, summary in zip(self.names, self.summaries, strict=True)]

    @cached_property
    def word_starts(self) -> tuple[list[str], list[int]]:
        """Each name from each of its words on, and the index of the name."""
        texts: list[str] = []
        owners: list[int] = []
        for index, name in enumerate(self.names):
            starts = _cut_at_words(name)
            texts += starts
            owners += [index] * len(starts)
        return texts, owners

    @cached_property
    def vocabulary(self) -> list[str]:
        """The words of all names and summaries, each once."""
        return list(set("".join(self.texts).split()))


# A reload changes few of these.
@lru_cache(maxsize=4096)
def _cut_at_words(name: str) -> tuple[str, ...]:
    return tuple(name[word.start() :] for word in _WORD.finditer(name))


@lru_cache(maxsize=4096)
def _join_words(name: str, summary: str) -> str:
    return f" {name} {summary.lower()}".translate(_TO_SPACES)


def rank(query: str, names: NameIndex, limit: int = MAX_SUGGESTIONS, find_near: FindNear | None = None) -> list[int]:
    """Return the indexes of the names that fit a query, best first. An empty query fits all, in their own order."""
    if len(query) > _MAX_QUERY:
        return []
    wanted = " ".join(query.lower().split())
    if not wanted:
        return list(range(min(limit, len(names.names))))

    tiers = _rank_by_name(wanted, names)
    # A user who typed the beginning of a word correctly made no typo.
    is_spelled_right = any(tier <= _Tier.WORD_PREFIX for tier in tiers.values())
    if find_near and not is_spelled_right:
        _add_misspelled(wanted, names, tiers, find_near)
    if len(tiers) < limit and (len(wanted) > 1 or not wanted.isascii()):
        _add_described(wanted, names, tiers, find_near)

    def order(index: int) -> tuple[int, int, int]:
        return tiers[index], len(names.spellings[index]), index

    return sorted(tiers, key=order)[:limit]


def _rank_by_name(wanted: str, names: NameIndex) -> dict[int, int]:
    tiers: dict[int, int] = {}
    for index, (name, spelling) in enumerate(zip(names.names, names.spellings, strict=True)):
        position = name.find(wanted)
        if wanted in (name, spelling):
            tiers[index] = _Tier.EXACT
        elif position == 0:
            tiers[index] = _Tier.NAME_PREFIX
        elif spelling.startswith(wanted):
            tiers[index] = _Tier.SPELLING_PREFIX
        elif position > 0 and not name[position - 1].isalnum():
            tiers[index] = _Tier.WORD_PREFIX
        elif position > 0 and len(wanted) > 1:
            tiers[index] = _Tier.INSIDE
    return tiers


def _add_misspelled(wanted: str, names: NameIndex, tiers: dict[int, int], find_near: FindNear) -> None:
    texts, owners = names.word_starts
    for position, typos in find_near(wanted, texts).items():
        index = owners[position]
        tiers[index] = min(_Tier.MISSPELLED + typos, tiers.get(index, _Tier.DESCRIBED))


def _add_described(wanted: str, names: NameIndex, tiers: dict[int, int], find_near: FindNear | None) -> None:
    """Add names that have every word of the query in their name or description, or, failing that, almost have them."""
    words = _WORD.findall(wanted)
    for index in _find_with_words([[word] for word in words], names.texts):
        tiers.setdefault(index, _Tier.DESCRIBED)

    if find_near and not tiers:
        vocabulary = names.vocabulary
        groups = [[word, *(vocabulary[index] for index in find_near(word, vocabulary))] for word in words]
        for index in _find_with_words(groups, names.texts):
            tiers[index] = _Tier.DESCRIBED_MISSPELLED


def _find_with_words(groups: Sequence[Sequence[str]], texts: Sequence[str]) -> list[int]:
    """Return the indexes of the texts in which, for every group, a word begins with one of the group's words."""
    indexes = list(range(len(texts))) if groups else []
    for group in groups:
        # Scripts that write without spaces have no beginnings of words to look for.
        beginnings = [f" {word}" if word.isascii() else word for word in group]
        if len(beginnings) == 1:
            [beginning] = beginnings  # the usual case, and a third faster than asking any()
            indexes = [index for index in indexes if beginning in texts[index]]
        else:
            indexes = [index for index in indexes if any(word in texts[index] for word in beginnings)]
    return indexes
