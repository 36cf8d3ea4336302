"""Ranking that forgives typos: what `Commands(rank=rank)` completes by."""

from collections.abc import Sequence

from rapidfuzz import process
from rapidfuzz.distance import OSA

from skillshelf.slash import MAX_SUGGESTIONS, Names
from skillshelf.slash import rank as rank_as_spelled


def rank(query: str, names: Names, limit: int = MAX_SUGGESTIONS) -> list[int]:
    """The indexes of the names that fit a query, best first: as spelled, then with typos, then by description."""
    return rank_as_spelled(query, names, limit, near)


def near(query: str, texts: Sequence[str]) -> dict[int, int]:
    """The texts that begin almost like the query, with how many letters are wrong, missing, too many or swapped."""
    size = len(query)
    allowed = 0 if size < 3 else 1 if size < 6 else 2
    found: dict[int, int] = {}
    # A letter that is missing or too many shifts where the typed part of a text ends.
    for length in range(max(3, size - 1), size + 2) if allowed else ():
        beginnings = [text[:length] for text in texts]
        for _, typos, at in process.extract(query, beginnings, scorer=OSA.distance, score_cutoff=allowed, limit=None):
            found[at] = min(int(typos), found.get(at, allowed))
    return found
