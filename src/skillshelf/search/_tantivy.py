"""Words in tantivy, an index in Rust. It reads its files through the system's cache, so they take no memory."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import tantivy

from skillshelf.search._engine import EngineName, EngineText, WordScores

_TOKENIZER = "skillshelf"
_MAX_FOUND = 300
"""Skills that are scored for a query, beside those that the caller asks for."""
_HEAP = 100_000_000
"""Bytes that an indexing thread may use. With this many, a collection of 50,000 skills makes few segments."""
_SMALL_HEAP = 15_000_000
_FEW = 100


@contextmanager
def _catch_panics() -> Iterator[None]:
    """Raise ValueError if tantivy panics, as it does over some damaged files, and raises ValueError over others.

    A panic is not an Exception, and its class cannot be imported.
    """
    try:
        yield
    except (Exception, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as panic:
        raise ValueError(f"tantivy failed: {panic}") from panic


class TantivyEngine:
    """Skills in a folder, or in memory without one."""

    name: EngineName = "tantivy"

    @_catch_panics()
    def __init__(self, folder: str | None) -> None:
        """Open the index in an existing folder; an empty one gets a new index."""
        builder = tantivy.SchemaBuilder()
        builder.add_integer_field("id", indexed=True, fast=True)
        for field in ("long", "short"):
            builder.add_text_field(field, tokenizer_name=_TOKENIZER, index_option="freq")
        self._schema = builder.build()
        self._index = tantivy.Index(self._schema, path=folder)
        self._index.register_tokenizer(_TOKENIZER, tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build())
        self._index.config_reader("manual")
        self._index.reload()
        self._searcher = self._index.searcher()
        self._added: list[tantivy.Document] = []
        self._removed: list[int] = []
        self._writer: Any = None

    @_catch_panics()
    def add(self, texts: Iterable[EngineText]) -> None:
        for text in texts:
            document = tantivy.Document(id=text.id, long=text.long, short=text.short)
            if self._writer is None and len(self._added) < _FEW:
                self._added.append(document)
                continue
            self._open_writer(_HEAP).add_document(document)

    def remove(self, ids: Sequence[int]) -> None:
        self._removed += ids

    @_catch_panics()
    def commit(self) -> None:
        if not self._added and not self._removed and self._writer is None:
            return
        writer = self._open_writer(_SMALL_HEAP)
        for number in self._removed:
            writer.delete_documents_by_term("id", number)
        self._removed = []
        writer.commit()
        # After this, no thread of the writer changes files any more.
        writer.wait_merging_threads()
        self._writer = None
        self._index.reload()
        self._searcher = self._index.searcher()

    def _open_writer(self, heap: int) -> Any:
        """Return the writer of this commit, after it got what was added before."""
        if self._writer is None:
            self._writer = self._index.writer(heap, 1)
        for document in self._added:
            self._writer.add_document(document)
        self._added = []
        return self._writer

    @_catch_panics()
    def count(self, words: Sequence[str]) -> list[int]:
        searcher = self._searcher
        return [searcher.doc_freq("long", word) for word in words]

    @_catch_panics()
    def search(
        self, importance: Mapping[str, float], *, long: float, short: float, also: Sequence[int] = ()
    ) -> WordScores:
        in_long = self._any_of("long", importance)
        in_short = self._any_of("short", importance)
        best_long = self._best_score(in_long)
        best_short = self._best_score(in_short)

        parts = []
        for query, weight, best in ((in_long, long, best_long), (in_short, short, best_short)):
            if weight and best:
                parts.append((tantivy.Occur.Should, tantivy.Query.boost_query(query, weight / best)))
        weighted = tantivy.Query.boolean_query(parts)
        by_id = self._score(weighted, _MAX_FOUND)
        if len(by_id) == _MAX_FOUND:
            by_id.update(self._score_some(weighted, [number for number in also if number not in by_id]))
        return WordScores(best_long, by_id, lambda ids: self._score_some(in_long, ids))

    @_catch_panics()
    def _score(self, query: Any, limit: int) -> dict[int, float]:
        hits = self._searcher.search(query, limit, count=False).hits
        ids: Any = self._searcher.fast_field_values("id", [address for _, address in hits])
        return dict(zip(ids, [score for score, _ in hits], strict=True))

    def _score_some(self, query: Any, ids: Sequence[int]) -> dict[int, float]:
        if not ids:
            return {}
        terms = [tantivy.Query.term_query(self._schema, "id", number) for number in ids]
        chosen = tantivy.Query.boolean_query([(tantivy.Occur.Should, term) for term in terms])
        unscored = tantivy.Query.const_score_query(chosen, 0.0)
        both = tantivy.Query.boolean_query([(tantivy.Occur.Must, unscored), (tantivy.Occur.Should, query)])
        return self._score(both, len(ids))

    def _any_of(self, field: str, importance: Mapping[str, float]) -> Any:
        parts = []
        for word, weight in importance.items():
            query = tantivy.Query.term_query(self._schema, field, word, "freq")
            if weight != 1:
                query = tantivy.Query.boost_query(query, weight)
            parts.append((tantivy.Occur.Should, query))
        return tantivy.Query.boolean_query(parts)

    def _best_score(self, query: Any) -> float:
        hits = self._searcher.search(query, 1, count=False).hits
        return float(hits[0][0]) if hits else 0.0
