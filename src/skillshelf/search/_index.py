"""An inverted index in memory: which skills have a word, and how much it counts there.

Every skill has two texts: the short one (name and description) and the long one (all its text). Both are scored by
BM25, with one change: a text is long or short compared with a fixed length, not with the average of the collection.
So a skill's weights do not change when others come and go, and scores mean the same in every collection.

Memory is what limits a large collection, so there are no Python objects per word or per skill: a posting takes four
bytes, a word eight, and a word pair two.
"""

import math
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from itertools import pairwise
from typing import Any, NamedTuple

from skillshelf.search._words import hash_word

_SATURATION = 1.2
"""BM25's k1: the second mention of a word counts for less than the first, and no number of them for more than 2.2."""
_LENGTH_PENALTY = 0.75
"""BM25's b: a word in a long text counts for less."""
_SHORT_LENGTH = 45
_LONG_LENGTH = 650
"""Words of a typical name with description, and of a typical skill: the means of 4,672 public skills."""
_MAX_REPEATS = 3
"""How often a word of a description counts. One that is there ten times is there to be found, not to inform."""

# A posting: the skill in 20 bits, the word's weight in the long text in 6, in the short text in 6.
_SLOT_SHIFT = 12
_LONG_SHIFT = 6
_FULL_WEIGHT = 63
MAX_SLOTS = 1 << (32 - _SLOT_SHIFT)

# A pair of words: 16 bits for each text that has it, and 16 for the number of these texts.
_PAIR_BITS = 0xFFFF
_MAX_COUNT = 0xFFFF
_COUNTERS_PER_SKILL = 100
_MIN_COUNTERS = 1 << 16

_MAX_WALKED = 10_000
"""Postings that a query reads one by one in plain Python, which takes 2 ms. See `_score_plainly`."""
_MAX_KEPT = 200


class Text(NamedTuple):
    """The words of a skill, as numbers."""

    short: Sequence[int]
    """Those of the name and the description."""
    rest: Sequence[int]


class Weight(NamedTuple):
    """How much a word counts in one skill, between 0 and 1, before its rarity."""

    long: float
    short: float


class Scores:
    """The scores of all skills that share a word with the query, by slot."""

    def __init__(self, long: Any, short: Any, rarities: Mapping[str, float]) -> None:
        self.long: Any = long
        """A mapping, or an array of NumPy."""
        self.short: Any = short
        self.rarities = rarities
        """How much each word of the query counts."""
        self.possible = sum(rarities.values())
        """The score of a text that consists of the query's words alone."""


class Index:
    """Texts by slot. A slot is a number that is given once."""

    def __init__(self, expected: int, *, with_numpy: bool) -> None:
        self._with_numpy = with_numpy
        self._keys = array("I")
        self._starts = array("I", [0])
        self._postings = array("I")
        self._recent: dict[int, array[int]] = {}
        """Postings that came after the last merge."""
        self._merged_slots = 0
        self._slots = 0
        self._removed: set[int] = set()
        self._pairs = array("H")
        self._pair_starts = array("I", [0])
        counters = max(_MIN_COUNTERS, expected * _COUNTERS_PER_SKILL)
        self._pair_counts = array("H", bytes(2 * (1 << (counters - 1).bit_length())))
        """How many skills have a pair, by its hash: the pairs of a hash are counted together."""

    @property
    def slots(self) -> int:
        """The number of slots that were given, those of removed texts included."""
        return self._slots

    @property
    def removed(self) -> Set[int]:
        """The slots of texts that were removed."""
        return self._removed

    @property
    def texts(self) -> int:
        return self._slots - len(self._removed)

    @property
    def size(self) -> int:
        """Bytes in memory."""
        merged = (self._keys, self._starts, self._postings, self._pairs, self._pair_starts, self._pair_counts)
        return sum(each.itemsize * len(each) for each in (*merged, *self._recent.values())) + 200 * len(self._recent)

    # --- changes ---

    def add(self, text: Text) -> int:
        """Add a text and return its slot."""
        slot = self._slots
        self._slots += 1
        short_counts = {key: min(count, _MAX_REPEATS) for key, count in Counter(text.short).items()}
        long_counts = Counter(text.rest)
        long_counts.update(short_counts)
        short = _weigh(short_counts, len(text.short) / _SHORT_LENGTH)
        long = _weigh(long_counts, (len(text.short) + len(text.rest)) / _LONG_LENGTH)
        start = slot << _SLOT_SHIFT
        for key, weight in long.items():
            posting = start | weight << _LONG_SHIFT | short.get(key, 0)
            postings = self._recent.get(key)
            if postings is None:
                self._recent[key] = array("I", (posting,))
            else:
                postings.append(posting)
        self._add_pairs([*text.short, *text.rest])
        return slot

    def remove(self, slot: int) -> None:
        """Take a text out. Its memory is freed when the index is built anew."""
        self._removed.add(slot)

    def tidy(self) -> None:
        """Put the recent postings into the large arrays if there are many: a word takes 8 bytes there, not 200."""
        if self._slots - self._merged_slots > max(64, self._merged_slots // 8):
            self._merge()

    def _merge(self) -> None:
        keys = array("I", sorted({*self._keys, *self._recent}))
        starts = array("I", [0])
        merged = array("I")
        for key in keys:
            start, end = self._find(key)
            merged += self._postings[start:end]
            merged.extend(self._recent.get(key, ()))
            starts.append(len(merged))
        self._keys = keys
        self._starts = starts
        self._postings = merged
        self._recent = {}
        self._merged_slots = self._slots

    def _add_pairs(self, keys: Sequence[int]) -> None:
        pairs = set(hash_pairs(keys))
        mask = len(self._pair_counts) - 1
        counts = self._pair_counts
        for pair in pairs:
            counter = pair & mask
            if counts[counter] < _MAX_COUNT:
                counts[counter] += 1
        self._pairs.extend(sorted({_shorten_pair(pair) for pair in pairs}))
        self._pair_starts.append(len(self._pairs))

    # --- words ---

    def _find(self, key: int) -> tuple[int, int]:
        """Return where the merged postings of a word begin and end."""
        at = bisect_left(self._keys, key)
        if at == len(self._keys) or self._keys[at] != key:
            return 0, 0
        return self._starts[at], self._starts[at + 1]

    def count_texts(self, word: str) -> int:
        """Return how many texts have a word."""
        key = hash_word(word)
        start, end = self._find(key)
        return end - start + len(self._recent.get(key, ()))

    def weigh_rarity(self, word: str) -> float:
        """Return BM25's inverse document frequency: what a word says that few skills have."""
        return _rarity(self.count_texts(word), self.texts)

    @property
    def highest_rarity(self) -> float:
        """The rarity of a word that a single text has."""
        return _rarity(1, self.texts)

    def weigh_in(self, slot: int, word: str) -> Weight:
        """Return how much a word counts in one text."""
        key = hash_word(word)
        start, end = self._find(key)
        for postings, low, high in ((self._postings, start, end), (self._recent.get(key, array("I")), 0, None)):
            at = bisect_left(postings, slot << _SLOT_SHIFT, low, len(postings) if high is None else high)
            if at < (len(postings) if high is None else high) and postings[at] >> _SLOT_SHIFT == slot:
                return _read_weight(postings[at])
        return Weight(0.0, 0.0)

    def score(self, words: Mapping[str, float]) -> Scores:
        """Score every text for the words of a query, each with its importance."""
        rarities = {word: importance * self.weigh_rarity(word) for word, importance in words.items()}
        if self._with_numpy:
            long, short = self._score_with_numpy(rarities)
        else:
            long, short = self._score_plainly(rarities)
        return Scores(long, short, rarities)

    def _score_with_numpy(self, rarities: Mapping[str, float]) -> tuple[Any, Any]:
        import numpy as np

        long: Any = np.zeros(self._slots, np.float32)
        short: Any = np.zeros(self._slots, np.float32)
        merged: Any = np.frombuffer(self._postings, np.uint32) if self._postings else np.zeros(0, np.uint32)
        for word, rarity in rarities.items():
            key = hash_word(word)
            start, end = self._find(key)
            unit = np.float32(rarity / _FULL_WEIGHT)
            for postings in (merged[start:end], np.array(self._recent.get(key, ()), np.uint32)):
                slots = postings >> _SLOT_SHIFT
                long[slots] += (postings >> _LONG_SHIFT & _FULL_WEIGHT) * unit
                short[slots] += (postings & _FULL_WEIGHT) * unit
        if self._removed:
            gone = list(self._removed)
            long[gone] = 0
            short[gone] = 0
        return long, short

    def _score_plainly(self, rarities: Mapping[str, float]) -> tuple[dict[int, float], dict[int, float]]:
        """Score without NumPy, rare words first.

        When rare words have led to enough skills, a common word cannot bring another one to the top. From there on,
        words count for the best skills so far alone, so a query takes about the same time in any collection.
        """
        long: dict[int, float] = {}
        short: dict[int, float] = {}
        walked = 0
        is_settled = False
        for word in sorted(rarities, key=self.count_texts):
            unit = rarities[word] / _FULL_WEIGHT
            walked += self.count_texts(word)
            if walked > _MAX_WALKED and long and not is_settled:
                best = sorted(long, key=lambda slot: long[slot] + short[slot], reverse=True)[:_MAX_KEPT]
                long = {slot: long[slot] for slot in best}
                short = {slot: short[slot] for slot in best}
                is_settled = True
            if is_settled:
                for slot in long:
                    weight = self.weigh_in(slot, word)
                    long[slot] += weight.long * rarities[word]
                    short[slot] += weight.short * rarities[word]
                continue

            key = hash_word(word)
            start, end = self._find(key)
            for posting in (*self._postings[start:end], *self._recent.get(key, ())):
                slot = posting >> _SLOT_SHIFT
                long[slot] = long.get(slot, 0.0) + (posting >> _LONG_SHIFT & _FULL_WEIGHT) * unit
                short[slot] = short.get(slot, 0.0) + (posting & _FULL_WEIGHT) * unit

        for slot in self._removed:
            long.pop(slot, None)
            short.pop(slot, None)
        return long, short

    # --- pairs of words ---

    def weigh_pairs(self, words: Sequence[str], rarities: Mapping[str, float]) -> dict[int, float]:
        """Return the rarity of each pair of neighbouring words, by the pair's 16 bits.

        A pair is not worth more than its words, which are in `rarities`.
        """
        mask = len(self._pair_counts) - 1
        # Other pairs share a counter; on average it has this many too many.
        crowd = len(self._pairs) / len(self._pair_counts)
        weights: dict[int, float] = {}
        for at, pair in enumerate(hash_pairs([hash_word(word) for word in words])):
            count = max(1.0, self._pair_counts[pair & mask] - crowd)
            importance = min(rarities[words[at]], rarities[words[at + 1]], 1.0)
            weights[_shorten_pair(pair)] = importance * _rarity(min(count, self.texts), self.texts)
        return weights

    def score_pairs(self, slots: Sequence[int], weights: Mapping[int, float]) -> list[float]:
        """Return the sum of the weights of the pairs that each text has."""
        if not weights:
            return [0.0] * len(slots)
        if not self._with_numpy:
            wanted = frozenset(weights)
            return [sum(weights[pair] for pair in wanted.intersection(self.pairs_of(slot))) for slot in slots]

        import numpy as np

        table: Any = np.zeros(_PAIR_BITS + 1, np.float32)
        table[list(weights)] = list(weights.values())
        return [float(table[np.frombuffer(self.pairs_of(slot), np.uint16)].sum()) for slot in slots]

    def pairs_of(self, slot: int) -> "array[int]":
        """Return the word pairs of a text, each in 16 bits, sorted. One of a hundred looks like another pair."""
        return self._pairs[self._pair_starts[slot] : self._pair_starts[slot + 1]]


def _weigh(counts: Mapping[int, int], length: float) -> dict[int, int]:
    """Return the weight of each word in a text, in 63rds: its frequency, saturated, and less in a long text."""
    damping = _SATURATION * (1 - _LENGTH_PENALTY + _LENGTH_PENALTY * length)
    weights: dict[int, int] = {}
    for key, count in counts.items():
        weights[key] = max(1, round(_FULL_WEIGHT * count / (count + damping)))
    return weights


def _read_weight(posting: int) -> Weight:
    return Weight((posting >> _LONG_SHIFT & _FULL_WEIGHT) / _FULL_WEIGHT, (posting & _FULL_WEIGHT) / _FULL_WEIGHT)


def _rarity(count: float, texts: int) -> float:
    return math.log(1 + (max(texts, count) - count + 0.5) / (count + 0.5))


def hash_pairs(keys: Sequence[int]) -> list[int]:
    """Return 42 bits for each pair of neighbouring words."""
    return [(before * 0x9E3779B1 + key * 0x85EBCA6B >> 7) & 0x3FFFFFFFFFF for before, key in pairwise(keys)]


def _shorten_pair(pair: int) -> int:
    """Return 16 of a pair's bits, others than those that choose its counter."""
    return pair >> 26
