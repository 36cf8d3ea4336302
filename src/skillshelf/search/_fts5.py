"""Words in SQLite's FTS5, which comes with Python.

FTS5 gives a word that half of the texts have no weight at all, which makes its scores useless in small collections. So
words are looked up one by one, and FTS5's weight for a word's rarity is replaced by the usual one. Rare words decide
which skills are candidates; common words, which take the most time to look up, are counted in the candidates alone.
"""

import heapq
import math
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence

from skillshelf.search._document import find_card_end, shorten
from skillshelf.search._engine import SATURATION, EngineName, EngineText, WordScores, weigh_rarity

_TABLES = ("long", "short")
_LEAST_RARITY = 1e-6
"""FTS5's weight for a word that half of the texts have."""
_MIN_WORDS = 3
_MAX_SHARE = 0.1
_MAX_ROWS = 2_000
"""The rarest words are looked up until that share of the skills, or that many, were found. Common words can hardly
bring another skill to the top then, but would take most of the time."""
_COMPLETED = 100
"""Candidates in which common words are counted."""
_MAX_PARAMETERS = 500


class Fts5Engine:
    """Skills in tables of a database, which also has their words in the table `texts`."""

    name: EngineName = "fts5"

    def __init__(self, database: sqlite3.Connection, *, is_new: bool) -> None:
        self._database = database
        self._skills: int = database.execute("SELECT count(*) FROM skills").fetchone()[0]
        for table in _TABLES:
            if is_new:
                # Words are letters and digits alone, and the tokenizer `ascii` leaves other scripts as they are.
                database.execute(f"CREATE VIRTUAL TABLE {table} USING fts5(words, content='', tokenize='ascii')")
            database.execute(f"CREATE VIRTUAL TABLE temp.{table}_counts USING fts5vocab(main, {table}, row)")

    def add(self, texts: Iterable[EngineText]) -> None:
        for text in texts:
            self._skills += 1
            self._database.execute("INSERT INTO long (rowid, words) VALUES (?, ?)", (text.id, text.long))
            self._database.execute("INSERT INTO short (rowid, words) VALUES (?, ?)", (text.id, text.short))

    def remove(self, ids: Sequence[int]) -> None:
        # The tables have no copy of their texts: FTS5 must be given what to take out.
        self._skills -= len(ids)
        for number in ids:
            row = self._database.execute("SELECT words FROM texts WHERE id = ?", (number,)).fetchone()
            for table, words in (("long", row[0]), ("short", shorten(row[0]))):
                self._database.execute(
                    f"INSERT INTO {table} ({table}, rowid, words) VALUES ('delete', ?, ?)", (number, words)
                )

    def commit(self) -> None:
        """Do nothing: the tables are part of the database, whose owner commits."""

    def count(self, words: Sequence[str]) -> list[int]:
        counts = self._count_in("long", words)
        return [counts.get(word, 0) for word in words]

    def _count_in(self, table: str, words: Sequence[str]) -> dict[str, int]:
        counts: dict[str, int] = {}
        for start in range(0, len(words), _MAX_PARAMETERS):
            some = words[start : start + _MAX_PARAMETERS]
            marks = ", ".join("?" * len(some))
            counts.update(
                self._database.execute(f"SELECT term, doc FROM temp.{table}_counts WHERE term IN ({marks})", some)
            )
        return counts

    def search(
        self, importance: Mapping[str, float], *, long: float, short: float, also: Sequence[int] = ()
    ) -> WordScores:
        counts = self._count_in("long", list(importance))
        rare = self._choose_rare(counts)
        in_long = self._score("long", rare, importance)
        in_short = self._score("short", rare, importance)
        common = {
            word: importance[word] * weigh_rarity(count, self._skills)
            for word, count in counts.items()
            if word not in rare
        }
        if common:
            best = heapq.nlargest(_COMPLETED, in_long, key=lambda number: in_long[number] + in_short.get(number, 0.0))
            self._add_common({*best, *also}, common, in_long, in_short)

        best_long = max(in_long.values(), default=0.0)
        best_short = max(in_short.values(), default=0.0)
        long_unit = long / (best_long or 1.0)
        short_unit = short / (best_short or 1.0)
        sums = {number: score * long_unit + in_short.get(number, 0.0) * short_unit for number, score in in_long.items()}
        return WordScores(best_long, sums, lambda ids: {number: in_long.get(number, 0.0) for number in ids})

    def _choose_rare(self, counts: Mapping[str, int]) -> list[str]:
        rare: list[str] = []
        rows = 0
        for word in sorted(counts, key=lambda word: counts[word]):
            rows += counts[word]
            if len(rare) >= _MIN_WORDS and rows > max(_MAX_ROWS, _MAX_SHARE * self._skills):
                break
            rare.append(word)
        return rare

    def _add_common(
        self, ids: Collection[int], weights: Mapping[str, float], in_long: dict[int, float], in_short: dict[int, float]
    ) -> None:
        """Add the common words to the scores of some skills, from their stored texts."""
        marks = ", ".join("?" * len(ids))
        rows = self._database.execute(f"SELECT id, words FROM texts WHERE id IN ({marks})", list(ids)).fetchall()
        long_length = sum(words.count(" ") for _, words in rows) / len(rows)
        short_length = sum(find_card_end(words) for _, words in rows) / len(rows)
        for number, words in rows:
            end = find_card_end(words)
            long_damping = _damp(words.count(" ") / long_length)
            short_damping = _damp(end / short_length)
            for word, weight in weights.items():
                padded = f" {word} "
                in_text = words.count(padded)
                if not in_text:
                    continue
                in_long[number] = in_long.get(number, 0.0) + weight * _saturate(in_text, long_damping)
                in_card = words.count(padded, 0, end)
                if in_card:
                    in_short[number] = in_short.get(number, 0.0) + weight * _saturate(in_card, short_damping)

    def _score(self, table: str, words: Sequence[str], importance: Mapping[str, float]) -> dict[int, float]:
        """Return the BM25 score of each text that has one of the words."""
        counts = self._count_in(table, words)
        scores: dict[int, float] = {}
        for word in words:
            count = counts.get(word, 0)
            if not count:
                continue
            # A rank is below 0: the better the text, the lower.
            unit = -importance[word] * weigh_rarity(count, self._skills) / _fts5_rarity(count, self._skills)
            rows = self._database.execute(f"SELECT rowid, rank FROM {table} WHERE {table} MATCH ?", (f'"{word}"',))
            for number, rank in rows:
                scores[number] = scores.get(number, 0.0) + rank * unit
        return scores


def _fts5_rarity(count: int, skills: int) -> float:
    return max(_LEAST_RARITY, math.log((skills - count + 0.5) / (count + 0.5)))


def _damp(length: float) -> float:
    """Return BM25's damping for a text of a length, compared with the average."""
    return SATURATION * (0.25 + 0.75 * length)


def _saturate(count: int, damping: float) -> float:
    """Return BM25's weight of a word that a text has so many times."""
    return (1 + SATURATION) * count / (count + damping)
