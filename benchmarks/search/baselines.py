"""What our search is compared with, in the same run: plain BM25 and FTS5."""

import importlib.util
import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from benchmarks.search.measures import DEPTH, Ranking

SHORT_FIELDS = ("name", "description")
ALL_FIELDS = ("name", "description", "body")

_WORD = re.compile(r"[a-z0-9à-ÿ]+|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")


def is_bm25s_installed() -> bool:
    return all(importlib.util.find_spec(name) for name in ("bm25s", "Stemmer"))


class PlainBM25:
    """BM25 by bm25s with its usual settings: English stop words, Snowball stems, k1 = 1.5, b = 0.75.

    Chinese, Japanese and Korean are cut into pairs of characters.
    """

    def __init__(self, skills: Mapping[str, Mapping[str, str]], fields: Iterable[str]) -> None:
        self._words = _Words()
        self._identifiers: list[str] = []
        self._texts: list[list[int]] = []
        for identifier, skill in skills.items():
            text = " ".join(skill.get(field) or "" for field in fields)
            self._identifiers.append(identifier)
            self._texts.append(self._words.number(text, learn=True))

    @cached_property
    def _whole(self) -> "_Index":
        return self.take(self._identifiers)

    def rank(self, query: str) -> Ranking:
        return self._whole.rank(query)

    def take(self, identifiers: Iterable[str]) -> "_Index":
        """Return an index of some of the skills."""
        chosen = set(identifiers)
        kept = [at for at, identifier in enumerate(self._identifiers) if identifier in chosen]
        return _Index(self._words, [self._identifiers[at] for at in kept], [self._texts[at] for at in kept])


class PlainFTS5:
    """SQLite's FTS5 as it comes: Porter stems, all text in one column, its own ranking."""

    def __init__(self, skills: Mapping[str, Mapping[str, str]], fields: Iterable[str] = ALL_FIELDS) -> None:
        self._database = sqlite3.connect(":memory:")
        self._database.execute("CREATE VIRTUAL TABLE texts USING fts5(id UNINDEXED, text, tokenize='porter')")
        rows = (
            (identifier, " ".join(skill.get(field) or "" for field in fields)) for identifier, skill in skills.items()
        )
        self._database.executemany("INSERT INTO texts VALUES (?, ?)", rows)

    def rank(self, query: str) -> Ranking:
        words = set(re.findall(r"\w+", query.lower()))
        if not words:
            return Ranking([])
        phrases = " OR ".join(f'"{word}"' for word in words)
        select = "SELECT id FROM texts WHERE texts MATCH ? ORDER BY rank LIMIT ?"
        return Ranking([row[0] for row in self._database.execute(select, (phrases, DEPTH))])


class _Index:
    def __init__(self, words: "_Words", identifiers: Sequence[str], texts: Sequence[Sequence[int]]) -> None:
        import bm25s

        self._words = words
        self._identifiers = identifiers
        self._engine: Any = bm25s.BM25()
        self._engine.index((texts, words.vocabulary), show_progress=False)

    def rank(self, query: str, among: set[str] | None = None) -> Ranking:
        """Return the best skills, of those in `among` alone if it is given."""
        import numpy as np

        words = self._words.number(query, learn=False)
        if not words:
            return Ranking([])
        scores: Any = self._engine.get_scores_from_ids(words)
        if among is not None:
            scores = np.where([identifier in among for identifier in self._identifiers], scores, 0)
        best = np.argsort(-scores, kind="stable")[:DEPTH]
        return Ranking([self._identifiers[at] for at in best if scores[at] > 0])


class _Words:
    """Cuts texts into words and numbers them."""

    def __init__(self) -> None:
        import Stemmer
        from bm25s.stopwords import STOPWORDS_EN_PLUS

        self.vocabulary: dict[str, int] = {}
        self._stop_words = frozenset(STOPWORDS_EN_PLUS)
        self._stem = Stemmer.Stemmer("english").stemWord

    def number(self, text: str, *, learn: bool) -> list[int]:
        """Return the numbers of the words of a text. Unknown words are left out unless they are to be learnt."""
        numbers: list[int] = []
        for word in self._split(text):
            if learn:
                numbers.append(self.vocabulary.setdefault(word, len(self.vocabulary)))
            elif word in self.vocabulary:
                numbers.append(self.vocabulary[word])
        return numbers

    def _split(self, text: str) -> Iterable[str]:
        for run in _WORD.findall(text.lower()):
            if run[0] < "\u3040":
                if run not in self._stop_words:
                    yield self._stem(run)
            elif len(run) == 1:
                yield run
            else:
                yield from (run[at : at + 2] for at in range(len(run) - 1))
