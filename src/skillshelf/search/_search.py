"""Rank the skills of a catalog for a query: order the candidates, fold copies, give reasons."""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from threading import Event

from skillshelf.catalog import Candidate, Catalog, Place
from skillshelf.locks import make_lock
from skillshelf.search._candidates import Candidates, Scored, find_candidates, find_excluded
from skillshelf.search._document import are_copies, are_related, find_fields
from skillshelf.search._engine import EngineName, choose_engine, weigh_rarity
from skillshelf.search._index import Announce, Index, Stopped
from skillshelf.search._match import FoundWord, Match
from skillshelf.search._query import Query
from skillshelf.search._ranking import (
    MIN_SCORE,
    UNSPACED_WEIGHTS,
    WEIGHTS,
    Features,
    Weights,
    rate_fit,
    rate_later_fit,
)
from skillshelf.search._similarity import load_encoder
from skillshelf.search._store import PairRow

_CANDIDATES = 60
"""Skills whose word pairs are looked at: those that are best without them. With 300, the results are the same."""


@dataclass(slots=True)
class _Ranked:
    """A skill that may fit."""

    id: int
    place: Place
    row: PairRow
    features: Features
    score: float
    copies: list[Place] = field(default_factory=list)


class SkillSearch:
    """The search of one shelf. It builds its index at the first query and keeps it up to date with the catalog."""

    def __init__(
        self,
        read_instructions: Callable[[Candidate], str],
        *,
        with_similarity: bool = True,
        engine: EngineName | None = None,
        folder: str | None = None,
        weights: Weights = WEIGHTS,
        unspaced_weights: Weights = UNSPACED_WEIGHTS,
    ) -> None:
        """`folder`: where to store the index. It need not exist. Without one, the index stays in memory.

        Raises MissingExtraError if there is no engine.
        """
        self.weights = weights
        self.unspaced_weights = unspaced_weights
        self.engine: EngineName = engine or choose_engine()
        encoder = load_encoder() if with_similarity else None
        self.has_similarity = encoder is not None
        """Whether similarity of meaning counts. It needs the extra `search`."""
        if folder is not None:
            # With and without the extra, the same folder is searched from two environments.
            folder = os.path.join(folder, self.engine if encoder is None else f"{self.engine}-similarity")
        self._index = Index(read_instructions, self.engine, encoder, folder)
        self._lock = make_lock()

    @property
    def size(self) -> int:
        """Bytes that the index takes in memory, without what its engine holds."""
        return self._index.size

    def prepare(self, catalog: Catalog, announce: Announce | None = None, stop: Event | None = None) -> None:
        """Build the index or bring it up to date, so that the next search need not. Another thread can do this.

        `announce` is called with the number of skills to be indexed, if there are any. If `stop` is set meanwhile, this
        ends early, and the next search starts over.
        """
        with self._lock, suppress(Stopped):
            self._index.update(catalog, announce, stop)

    def search(self, catalog: Catalog, query: str, limit: int = 5, *, min_score: float | None = None) -> list[Match]:
        """Return the skills that fit a query, best first. Skills for the user alone are left out.

        Skills below `min_score` are left out, too; without it, the measured threshold holds.
        """
        with self._lock:
            # Another process may have changed the store meanwhile; or it is damaged, in a place that opening it did not
            # touch. A damaged store can fail in any way.
            for remedy in (self._index.close, self._index.discard, self._index.leave_folder):
                self._index.update(catalog)
                try:
                    return self._search(catalog, query, limit, min_score)
                except Exception:
                    if not self._index.is_stored:
                        raise
                    remedy()
            self._index.update(catalog)
            return self._search(catalog, query, limit, min_score)

    def _search(self, catalog: Catalog, text: str, limit: int, min_score: float | None) -> list[Match]:
        if limit < 1 or not len(self._index):
            return []
        candidates = find_candidates(
            self._index.store,
            text,
            size=len(self._index),
            count=max(_CANDIDATES, 2 * limit),
            weights=self.weights,
            unspaced_weights=self.unspaced_weights,
            is_known=lambda number: self._index.place_of(number) is not None,
        )
        if candidates is None:
            return []

        ranked = [self._locate(scored) for scored in candidates.scored]
        ranked.sort(key=lambda each: (-each.score, catalog.found[each.place].name))
        found = _fold_copies(ranked, limit + 1, catalog)
        scores = _rate(found, ranked, candidates)
        matches = []
        for rank, each in enumerate(found[:limit]):
            if scores[rank] < (MIN_SCORE if min_score is None else min_score):
                break
            following = scores[rank + 1] if rank + 1 < len(scores) else 0.0
            matches.append(self._make_match(catalog, candidates, each, scores[rank], following))
        return matches

    def _locate(self, scored: Scored) -> _Ranked:
        place = self._index.place_of(scored.id)
        assert place is not None  # candidates are known to the index
        return _Ranked(scored.id, place, scored.row, scored.features, scored.score)

    # --- reasons ---

    def _make_match(
        self, catalog: Catalog, candidates: Candidates, ranked: _Ranked, score: float, next_score: float
    ) -> Match:
        found = catalog.found
        query = candidates.query
        weights = candidates.weights
        candidate = Candidate(ranked.place, found[ranked.place])
        similarity_share = 0.0
        if ranked.score > 0:
            similarity_share = min(1.0, weights.similarity * ranked.features.similarity / ranked.score)
        copies = [Candidate(place, found[place]) for place in ranked.copies]
        return Match(
            name=catalog.reach(candidate),
            descriptor=candidate.descriptor,
            score=round(score, 4),
            words=self._explain_words(query, weights, ranked, 1 - similarity_share),
            similarity_share=round(similarity_share, 3),
            next_score=round(next_score, 4),
            copies=tuple(map(catalog.reach, copies)),
            excluded_words=tuple(query.spelling[word] for word in find_excluded(query, ranked.row)),
        )

    def _explain_words(self, query: Query, weights: Weights, ranked: _Ranked, share: float) -> tuple[FoundWord, ...]:
        """Return the words that a skill has, and share out the part of the score that they brought."""
        words = self._index.store.read_words([ranked.id])[ranked.id]
        fields = find_fields(words, query.importance)
        parts: dict[str, float] = {}
        for word, field_name in fields.items():
            weight = weights.long
            if field_name in ("name", "description"):
                weight += weights.short
            parts[word] = weight * query.weigh(word)
        total = sum(parts.values()) or 1.0
        highest = weigh_rarity(1, len(self._index))
        return tuple(
            FoundWord(
                word=query.spelling[word],
                field=field_name,
                rarity=round(min(1.0, query.rarity[word] / highest), 3),
                share=round(share * parts[word] / total, 3),
                corrected=word if word in query.corrected else "",
            )
            for word, field_name in fields.items()
        )


def _fold_copies(candidates: Sequence[_Ranked], wanted: int, catalog: Catalog) -> list[_Ranked]:
    """Return the best skills, each with the copies of it among those that come after.

    Copies are folded within a kind of source. A tenth of a copy, and all that is beyond the searched part, can say
    something else, so a project's copy must not hide the user's own skill. Of two folders of one kind, such as the
    user's, the skill of the first stands for its copies.
    """
    found: list[_Ranked] = []
    kinds: list[str] = []
    for ranked in candidates[: 2 * wanted + 8]:
        kind = Candidate(ranked.place, catalog.found[ranked.place]).descriptor.source
        at = None
        for index, each in enumerate(found):
            if kinds[index] == kind and are_copies(each.row.pairs, ranked.row.pairs):
                at = index
                break
        if at is None:
            if len(found) < wanted:
                found.append(ranked)
                kinds.append(kind)
            continue
        first = found[at]
        if ranked.place.source < first.place.source:
            copies = [first.place, *first.copies]
            found[at] = replace(ranked, score=first.score, copies=copies)
        else:
            first.copies.append(ranked.place)
    return found


def _rate(found: Sequence[_Ranked], ranked: Sequence[_Ranked], candidates: Candidates) -> list[float]:
    """Return how well each skill fits."""
    if not found:
        return []
    best = found[0]
    in_long = candidates.words.score_long([best.id])
    best_fit = rate_fit(
        coverage=min(1.0, in_long.get(best.id, 0.0) / candidates.possible),
        similarity=best.features.similarity if candidates.weights.similarity else None,
        score=best.score,
        rival=_find_rival_score(best, ranked),
    )
    return [best_fit, *(rate_later_fit(best_fit, each.score, best.score) for each in found[1:])]


def _find_rival_score(best: _Ranked, ranked: Sequence[_Ranked]) -> float:
    """Return the score of the next skill that says something else, 0 if there is none.

    A changed copy that comes right after the best skill does not make it less likely that the best one is right.
    """
    for other in ranked:
        is_same = other.id == best.id or other.place in best.copies
        if not is_same and not are_related(best.row.pairs, other.row.pairs):
            return other.score
    return 0.0
