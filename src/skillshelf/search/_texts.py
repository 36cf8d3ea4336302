"""The index for texts that are not skills, such as passages of documents. It is in memory."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from skillshelf.catalog import Place
from skillshelf.locks import make_lock
from skillshelf.search._candidates import Scored, find_candidates
from skillshelf.search._document import are_copies, make_text_document
from skillshelf.search._engine import EngineName, choose_engine
from skillshelf.search._ranking import UNSPACED_WEIGHTS, WEIGHTS, is_unrelated, rate_later_fit
from skillshelf.search._similarity import load_encoder
from skillshelf.search._store import NewSkill, Store

_NO_PLACE = Place(0, "")
"""Texts have ids and nothing else. A store has room for the place of a skill, too."""


class SearchText(NamedTuple):
    """A text to be found, of a page at most: the first 2,000 characters are compared by meaning."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class TextMatch:
    """A text that fits a query."""

    id: int
    score: float
    """Orders the matches of one query. It means nothing across queries."""
    copies: tuple[int, ...] = ()
    """Texts that say almost the same, and are left out."""


class TextSearch:
    """Finds texts by words, word pairs and, with the extra `search`, similarity of meaning. Threads may share it."""

    def __init__(self, *, with_similarity: bool = True, engine: EngineName | None = None) -> None:
        """Raises MissingExtraError if there is no engine."""
        encoder = load_encoder() if with_similarity else None
        self.has_similarity = encoder is not None
        self._ids: set[int] = set()
        self._lock = make_lock()
        self._store = Store(None, engine or choose_engine(), encoder)
        self._store.load()
        self._store.change((), ())

    def __len__(self) -> int:
        return len(self._ids)

    def change(self, *, removed: Sequence[int] = (), added: Iterable[SearchText] = ()) -> list[int]:
        """Take texts out by their ids, and add others. Return the ids of those added, in order."""
        with self._lock:
            inserted = [skill.id for skill in self._store.change(removed, map(_prepare, added))]
            self._ids.difference_update(removed)
            self._ids.update(inserted)
            return inserted

    def search(self, query: str, limit: int) -> list[TextMatch]:
        """Return the texts that fit a query, best first, without those that are far behind the best.

        Of texts that say almost the same, only the best is there.
        """
        with self._lock:
            if limit < 1 or not self._ids:
                return []
            candidates = find_candidates(
                self._store,
                query,
                size=len(self._ids),
                count=2 * limit + 8,
                weights=WEIGHTS,
                unspaced_weights=UNSPACED_WEIGHTS,
                is_known=self._ids.__contains__,
            )
        if candidates is None:
            return []
        best = max((scored.score for scored in candidates.scored), default=0.0)
        related = [
            scored
            for scored in candidates.scored
            if not is_unrelated(scored.features) and rate_later_fit(1.0, scored.score, best)
        ]
        related.sort(key=lambda scored: (-scored.score, scored.id))
        return _fold_copies(related)[:limit]


def _prepare(text: SearchText) -> NewSkill:
    document = make_text_document(text.title, text.text)
    return NewSkill(_NO_PLACE, 0, document, f"{text.title}. {text.text}")


def _fold_copies(ranked: Sequence[Scored]) -> list[TextMatch]:
    """Return a match for each text, and the copies of it among those that come after."""
    firsts: list[Scored] = []
    copies: dict[int, list[int]] = {}
    for scored in ranked:
        for first in firsts:
            if are_copies(first.row.pairs, scored.row.pairs):
                copies[first.id].append(scored.id)
                break
        else:
            firsts.append(scored)
            copies[scored.id] = []
    return [TextMatch(first.id, round(first.score, 4), tuple(copies[first.id])) for first in firsts]
