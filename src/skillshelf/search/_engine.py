"""The engine that finds words: tantivy with the extra `search`, SQLite's FTS5 without it.

Both get the same words and score them by BM25, so they rank alike. An engine knows two texts of each skill: the long
one (all its words) and the short one (its name and description).
"""

import importlib.util
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from skillshelf.errors import MissingExtraError

EngineName = Literal["tantivy", "fts5"]
SATURATION = 1.2
"""BM25's k1: the second mention of a word counts for less than the first, and no number of them for more than 2.2."""


class EngineText(NamedTuple):
    """A skill as an engine gets it."""

    id: int
    long: str
    short: str


@dataclass(frozen=True, slots=True)
class WordScores:
    """What an engine found for the words of a query."""

    best_long: float
    """The highest score of a long text, by BM25."""
    by_id: Mapping[int, float]
    """The weighted sum of both scores, each divided by the best."""
    score_long: Callable[[Sequence[int]], dict[int, float]]
    """Returns the scores of some long texts. Those without a word of the query may be left out."""


class Engine(Protocol):
    """Finds skills by words."""

    name: EngineName

    def add(self, texts: Iterable[EngineText]) -> None:
        """Add skills under ids that are new."""

    def remove(self, ids: Sequence[int]) -> None: ...

    def commit(self) -> None:
        """Make the changes visible to `count` and `search`, and durable if the engine has files of its own."""

    def count(self, words: Sequence[str]) -> list[int]:
        """Return how many skills have each word."""

    def search(
        self, importance: Mapping[str, float], *, long: float, short: float, also: Sequence[int] = ()
    ) -> WordScores:
        """Score the best of the skills that have some of these words, and those of `also` that have some.

        `long` and `short` are the weights of the two texts.
        """


def choose_engine() -> EngineName:
    """Return the better of the installed engines. Raises MissingExtraError if there is none."""
    if importlib.util.find_spec("tantivy"):
        return "tantivy"
    if _has_fts5():
        return "fts5"
    raise MissingExtraError("The SQLite of this Python lacks FTS5, which a search needs", "search")


def weigh_rarity(count: float, skills: int) -> float:
    """Return BM25's inverse document frequency: what a word says that few skills have."""
    return math.log(1 + (max(skills, count) - count + 0.5) / (count + 0.5))


def _has_fts5() -> bool:
    import sqlite3

    with closing(sqlite3.connect(":memory:")) as database:
        options = {row[0] for row in database.execute("PRAGMA compile_options")}
    return "ENABLE_FTS5" in options
