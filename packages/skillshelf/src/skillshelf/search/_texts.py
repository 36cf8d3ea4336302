"""The search for texts that are not skills, such as passages of documents. Its index is in memory."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from skillshelf.files import make_lock
from skillshelf.search._database import NewEntry, SkillDatabase
from skillshelf.search._document import make_text_document
from skillshelf.search._ranking import FAR_BEHIND, Ranked, rank_texts
from skillshelf.search._similarity import load_encoder


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

    def __init__(self, *, with_similarity: bool = True) -> None:
        encoder = load_encoder() if with_similarity else None
        self.has_similarity = encoder is not None
        self._lock = make_lock()
        self._database = SkillDatabase(None, encoder)

    def __len__(self) -> int:
        return self._database.size

    def change(self, *, removed: Sequence[int] = (), added: Iterable[SearchText] = ()) -> list[int]:
        """Take texts out by their ids, and add others. Return the ids of those added, in order."""
        entries = (NewEntry(make_text_document(each.title, each.text)) for each in added)
        with self._lock, self._database.transaction():
            return self._database.change(removed, {}, entries)

    def search(self, query: str, limit: int) -> list[TextMatch]:
        """Return the texts that fit a query, best first, without those that are far behind the best.

        Of texts that say almost the same, only the best is there.
        """
        if limit < 1:
            return []
        with self._lock:
            ranked = rank_texts(self._database, query, 2 * limit + 8).texts
        least = FAR_BEHIND * ranked[0].score if ranked else 0.0
        related = [each for each in ranked if not each.is_unrelated and each.score >= least]
        return _fold_copies(related)[:limit]


def _fold_copies(ranked: Sequence[Ranked]) -> list[TextMatch]:
    """Return a match for each text, and the copies of it among those that come after."""
    copies: dict[Ranked, list[int]] = {}
    for each in ranked:
        first = next((first for first in copies if each.is_copy_of(first)), None)
        if first is None:
            copies[each] = []
        else:
            copies[first].append(each.id)
    return [TextMatch(first.id, round(first.score, 4), tuple(ids)) for first, ids in copies.items()]
