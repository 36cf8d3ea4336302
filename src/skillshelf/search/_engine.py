"""Rank the skills of a catalog for a query.

The score of a skill is a weighted sum of four parts: its whole text, its name and description, word pairs, and
similarity of meaning. Each of the first three is divided by that of the best skill. docs/concepts/search.md explains
the weights and has the measurements.
"""

import heapq
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from skillshelf.catalog import Candidate, Catalog, Place
from skillshelf.descriptor import MAX_DESCRIPTION, SkillDescriptor
from skillshelf.errors import SkillError
from skillshelf.locks import ForkSafeLock
from skillshelf.search._index import MAX_SLOTS, Index, Scores, Text
from skillshelf.search._match import Field, FoundWord, Match
from skillshelf.search._similarity import Vectors, load_encoder, text_to_compare
from skillshelf.search._words import cut_ending, is_unspaced, spell_variants, split_keys, split_query, split_words

MIN_SCORE = 0.2
"""A skill that fits less well is not returned. Of the right skills 2 to 4 % have less, at 20 and at 2,000 skills."""
MIN_SCORE_IN_WORDS = 0.1
"""The same without the extra `search`."""
_UNRELATED = 0.3
"""The similarity that texts about different subjects have, too."""
MAX_INSTRUCTIONS = 6_000
"""Characters of the instructions that are searched: about a thousand words."""
_MAX_REFERENCES = 100
_MAX_QUERY = 4_000
"""Characters of a query that count."""
_MAX_QUERY_WORDS = 200
_ENOUGH_COVERED = 0.25
"""The share of the query that the best skill must have for words to count in full. With less, similarity decides."""
_CANDIDATES = 100
"""Skills whose word pairs are looked at: those that are best without them."""
_CORRECTED = 0.8
"""The importance of a word that was corrected: it may be another word after all."""
_MIN_CORRECTED_LETTERS = 5
_COPY_LIKENESS = 0.9
"""The share of word pairs that two skills must have in common to be copies."""
_MIN_COPY_PAIRS = 8
_COPY_SAMPLE = 16
_REBUILD_BELOW = 0.75
"""The share of slots in use below which the index is built anew."""
_EXCLUSION = re.compile(
    r"\b(?:do not|don't|not|never) (?:use|trigger|invoke|activate|apply|for|intended)\b[^.;\n]*", re.I
)
"""`Do not use for spreadsheets.`: words that a skill says it is not about."""


def find_threshold(*, with_similarity: bool | None = None) -> float:
    """Return the score below which a skill does not fit a query; by default for a search on this machine."""
    if with_similarity is None:
        with_similarity = load_encoder() is not None
    return MIN_SCORE if with_similarity else MIN_SCORE_IN_WORDS


class Weights(NamedTuple):
    """How much each part counts."""

    long: float
    short: float
    pairs: float
    similarity: float


WEIGHTS = Weights(long=1.0, short=0.5, pairs=0.4, similarity=0.8)
# The table of vectors does not know these scripts. Most such queries are about skills in English, and what both have in
# common are names of products and tools, which are in the description.
UNSPACED_WEIGHTS = Weights(long=0.3, short=1.0, pairs=0.5, similarity=0.0)


@dataclass(slots=True)
class _Query:
    """A query, made ready for the index."""

    text: str
    weights: Weights
    words: list[str] = field(default_factory=list)
    importance: dict[str, float] = field(default_factory=dict)
    spelling: dict[str, str] = field(default_factory=dict)
    """Each word as the query has it."""
    corrected: dict[str, str] = field(default_factory=dict)
    """The unknown word that each corrected word stands for."""


@dataclass(slots=True)
class _Ranked:
    """A skill's score and its parts."""

    slot: int
    long: float
    short: float
    pairs: float
    similarity: float
    score: float = 0.0
    copies: list[int] = field(default_factory=list)


class SkillSearch:
    """The search of one shelf. It builds its index at the first query and keeps it up to date with the catalog."""

    def __init__(
        self,
        read_instructions: Callable[[Candidate], str],
        *,
        with_similarity: bool = True,
        weights: Weights = WEIGHTS,
        unspaced_weights: Weights = UNSPACED_WEIGHTS,
    ) -> None:
        self.weights = weights
        self.unspaced_weights = unspaced_weights
        self._read_instructions = read_instructions
        self._encoder = load_encoder() if with_similarity else None
        self._lock = ForkSafeLock()
        self._start_anew(0)

    @property
    def has_similarity(self) -> bool:
        """Whether similarity of meaning counts. It needs the extra `search`."""
        return self._encoder is not None

    @property
    def size(self) -> int:
        """Bytes of the index in memory."""
        return self._index.size + (self._vectors.size if self._vectors is not None else 0)

    def search(self, catalog: Catalog, query: str, limit: int = 5, *, min_score: float | None = None) -> list[Match]:
        """Return the skills that fit a query, best first. Skills for the user alone are left out.

        Skills below `min_score` are left out, too; without it, the measured threshold holds.
        """
        if min_score is None:
            min_score = find_threshold(with_similarity=self.has_similarity)
        with self._lock:
            self._update(catalog)
            return self._search(catalog, query, limit, min_score)

    # --- the index ---

    def _start_anew(self, expected: int) -> None:
        self._generation = -1
        self._index = Index(expected, with_numpy=self._encoder is not None)
        self._vectors = Vectors(self._encoder) if self._encoder else None
        self._candidates: list[Candidate | None] = []
        """The skill in each slot; None if it is gone."""
        self._slot_of: dict[Place, int] = {}

    def _update(self, catalog: Catalog) -> None:
        """Index the skills that are new or changed since the last search, and forget those that are gone."""
        if catalog.generation == self._generation:
            return

        current: dict[Place, Candidate] = {}
        for name in catalog:
            for candidate in catalog.candidates(name):
                if candidate.descriptor.disclosure != "manual":
                    current[candidate.place] = candidate

        for place, slot in list(self._slot_of.items()):
            indexed = self._candidates[slot]
            now = current.get(place)
            if now is None or indexed is None or now.found is not indexed.found:
                self._index.remove(slot)
                self._candidates[slot] = None
                del self._slot_of[place]

        if len(self._slot_of) < _REBUILD_BELOW * self._index.slots or not self._slot_of:
            self._start_anew(len(current))
        self._add([candidate for place, candidate in current.items() if place not in self._slot_of])
        self._generation = catalog.generation

    def _add(self, candidates: Sequence[Candidate]) -> None:
        candidates = candidates[: MAX_SLOTS - self._index.slots]
        for candidate in candidates:
            slot = self._index.add(self._read_text(candidate))
            self._candidates.append(candidate)
            self._slot_of[candidate.place] = slot
        self._index.tidy()
        if self._vectors is not None:
            self._vectors.append([text_to_compare(candidate.descriptor) for candidate in candidates])

    def _read_text(self, candidate: Candidate) -> Text:
        try:
            instructions = self._read_instructions(candidate)
        except SkillError:  # gone or broken since the scan: what the catalog has can still be found
            instructions = ""
        skill = candidate.descriptor
        short = split_keys(f"{skill.name}\n{cut_exclusions(skill.description[:MAX_DESCRIPTION])}")
        rest = "\n".join((instructions[:MAX_INSTRUCTIONS], *skill.references[:_MAX_REFERENCES]))
        return Text(short, split_keys(rest))

    # --- a query ---

    def _search(self, catalog: Catalog, text: str, limit: int, min_score: float) -> list[Match]:
        query = self._read_query(text)
        if not query.words or limit < 1:
            return []
        scores = self._index.score(query.importance)
        candidates = self._choose_candidates(query, scores)
        if not candidates:
            return []

        fit = self._rank(query, scores, candidates)
        best = candidates[0].score
        found = self._fold_copies(candidates, limit + 1)
        matches: list[Match] = []
        for rank, ranked in enumerate(found[:limit]):
            score = fit * ranked.score / best
            if score < min_score:
                break
            following = found[rank + 1].score if rank + 1 < len(found) else 0.0
            matches.append(self._explain(catalog, query, scores, ranked, score, fit * following / best))
        return matches

    def _read_query(self, text: str) -> _Query:
        text = text[:_MAX_QUERY]
        query = _Query(text, self.weights_for(text))
        for word, spelling in split_query(text)[:_MAX_QUERY_WORDS]:
            corrected = self._correct(word, spelling)
            importance = 1.0
            if corrected != word:
                importance = _CORRECTED
                query.corrected[corrected] = word
            elif is_unspaced(word) and len(word) > 1:
                importance = 0.5  # each character is in two pairs
            query.words.append(corrected)
            query.importance.setdefault(corrected, importance)
            query.spelling.setdefault(corrected, spelling)
        return query

    def weights_for(self, text: str) -> Weights:
        """Return how much each part of the score counts for a query."""
        return self.unspaced_weights if is_unspaced(text) else self.weights

    def _correct(self, word: str, spelling: str) -> str:
        """Return the known word that is one typo away from an unknown one, the most common if there are several."""
        if len(spelling) < _MIN_CORRECTED_LETTERS or not (spelling.isascii() and spelling.isalpha()):
            return word
        if self._index.count_texts(word):
            return word
        variants = {cut_ending(variant) for variant in spell_variants(spelling)}
        counts = {variant: self._index.count_texts(variant) for variant in sorted(variants)}
        best = max(counts, key=lambda variant: counts[variant])
        return best if counts[best] else word

    def _choose_candidates(self, query: _Query, scores: Scores) -> list[_Ranked]:
        """Return the best skills without regard to word pairs."""
        weights = query.weights
        if isinstance(scores.long, Mapping):
            long_unit = 1 / (max(scores.long.values(), default=0.0) or 1.0)
            short_unit = weights.short / (max(scores.short.values(), default=0.0) or 1.0)
            long = scores.long
            short = scores.short

            def order(slot: int) -> float:
                return float(weights.long * long[slot] * long_unit + short[slot] * short_unit)

            slots = heapq.nlargest(_CANDIDATES, long, key=order)
            return [_Ranked(slot, long[slot], short[slot], 0.0, 0.0) for slot in slots]

        import numpy as np

        trust = _trust_in_words(float(scores.long.max(initial=0)), scores.possible, query)
        base: Any = trust * (weights.long * _relative(scores.long) + weights.short * _relative(scores.short))
        similarity: Any = np.zeros(len(base), np.float32)
        if self._vectors is not None and weights.similarity:
            similarity = self._vectors.compare(query.text)
            similarity[list(self._index.removed)] = 0
            base = base + weights.similarity * similarity
        chosen: Any = np.arange(len(base))
        if len(base) > _CANDIDATES:
            chosen = np.argpartition(-base, _CANDIDATES)[:_CANDIDATES]
        return [
            _Ranked(int(slot), float(scores.long[slot]), float(scores.short[slot]), 0.0, float(similarity[slot]))
            for slot in chosen
            if base[slot] > 0
        ]

    def _rank(self, query: _Query, scores: Scores, candidates: list[_Ranked]) -> float:
        """Sort the candidates, best first, and return how well the best one fits, between 0 and 1."""
        pairs = self._index.weigh_pairs(query.words, query.importance)
        in_pairs = self._index.score_pairs([ranked.slot for ranked in candidates], pairs)
        for ranked, score in zip(candidates, in_pairs, strict=True):
            ranked.pairs = score

        best_long = max(ranked.long for ranked in candidates) or 1.0
        best_short = max(ranked.short for ranked in candidates) or 1.0
        best_pairs = max(ranked.pairs for ranked in candidates) or 1.0
        weights = query.weights
        trust = _trust_in_words(best_long, scores.possible, query)
        for ranked in candidates:
            in_words = (
                weights.long * ranked.long / best_long
                + weights.short * ranked.short / best_short
                + weights.pairs * ranked.pairs / best_pairs
            )
            ranked.score = trust * in_words + weights.similarity * ranked.similarity
        # Equal skills come in the order of the catalog.
        candidates.sort(key=lambda ranked: (-ranked.score, self._name_of(ranked.slot)))
        first = candidates[0]
        coverage = min(1.0, max(first.long, first.short) / scores.possible)
        likeness = max(0.0, (first.similarity - _UNRELATED) / (1 - _UNRELATED))
        return 1 - (1 - coverage) * (1 - likeness)

    def _name_of(self, slot: int) -> str:
        candidate = self._candidates[slot]
        return candidate.found.name if candidate else ""

    def _fold_copies(self, candidates: Sequence[_Ranked], wanted: int) -> list[_Ranked]:
        """Return the best skills, each with the copies of it among those that come after."""
        found: list[_Ranked] = []
        pairs_of: dict[int, Sequence[int]] = {}
        for ranked in candidates[: 2 * wanted + 8]:
            pairs = self._index.pairs_of(ranked.slot)
            original = next((each for each in found if _are_copies(pairs_of[each.slot], pairs)), None)
            if original:
                original.copies.append(ranked.slot)
            elif len(found) < wanted:
                found.append(ranked)
                pairs_of[ranked.slot] = pairs
        return found

    # --- reasons ---

    def _explain(
        self, catalog: Catalog, query: _Query, scores: Scores, ranked: _Ranked, score: float, next_score: float
    ) -> Match:
        candidate = self._candidates[ranked.slot]
        assert candidate is not None
        skill = candidate.descriptor
        similarity = query.weights.similarity * ranked.similarity / ranked.score if ranked.score else 0.0
        contributions: dict[str, float] = {}
        for word, rarity in scores.rarities.items():
            weight = self._index.weigh_in(ranked.slot, word)
            if weight.long:
                contributions[word] = rarity * (weight.long + weight.short)
        total = sum(contributions.values()) or 1.0
        fields = _find_fields(skill, contributions)
        words = tuple(
            FoundWord(
                word=query.spelling[word],
                field=fields[word],
                rarity=round(self._index.weigh_rarity(word) / self._index.highest_rarity, 3),
                share=round((1 - similarity) * part / total, 3),
                corrected=word if word in query.corrected else "",
            )
            for word, part in contributions.items()
        )
        copies = tuple(catalog.reach(copy) for slot in ranked.copies if (copy := self._candidates[slot]))
        return Match(
            name=catalog.reach(candidate),
            descriptor=skill,
            score=round(score, 4),
            words=words,
            similarity_share=round(similarity, 3),
            next_score=round(next_score, 4),
            copies=copies,
        )


def _trust_in_words(best_long: float, possible: float, query: _Query) -> float:
    """Return how much words count: in full, unless even the best skill has few of the query's words."""
    if not query.weights.similarity or not possible:
        return 1.0
    coverage = best_long / possible
    return 1.0 if coverage >= _ENOUGH_COVERED else coverage


def _relative(scores: Any) -> Any:
    best = scores.max(initial=0)
    return scores / best if best else scores


def cut_exclusions(description: str) -> str:
    """Return a description without the words that say what the skill is not for."""
    return _EXCLUSION.sub("", description)


def _find_fields(skill: SkillDescriptor, words: Mapping[str, float]) -> dict[str, Field]:
    """Return the most telling field that has each word."""
    name = set(split_words(skill.name))
    description = set(split_words(skill.description[:MAX_DESCRIPTION]))
    references = set(split_words(" ".join(skill.references[:_MAX_REFERENCES])))
    fields: dict[str, Field] = {}
    for word in words:
        if word in name:
            fields[word] = "name"
        elif word in description:
            fields[word] = "description"
        elif word in references:
            fields[word] = "references"
        else:
            fields[word] = "instructions"
    return fields


def _are_copies(pairs: Sequence[int], other: Sequence[int]) -> bool:
    """Return whether two texts, given as their sorted word pairs, are almost the same."""
    fewer = min(len(pairs), len(other))
    more = max(len(pairs), len(other))
    if fewer < _MIN_COPY_PAIRS or fewer < _COPY_LIKENESS * more:
        return False
    # The lowest pairs are a sample. Copies have almost all of them in common, other texts none: no need to compare all.
    if len({*pairs[:_COPY_SAMPLE]} & {*other[:_COPY_SAMPLE]}) < min(fewer, _COPY_SAMPLE) // 2:
        return False
    common = len({*pairs} & {*other})
    return common >= _COPY_LIKENESS * (len(pairs) + len(other) - common)
