"""Passages in a table of PostgreSQL, found by words and, with pgvector, by vectors."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from importlib.util import find_spec
from typing import NamedTuple

from skillshelf.errors import MissingExtraError
from skillshelf.search import embed_texts, is_similarity_installed, split_words
from skillshelf_skills.agentic_rag._errors import RagError, SourceFailedError
from skillshelf_skills.agentic_rag._limits import MAX_TEXT, MAX_WORDS
from skillshelf_skills.agentic_rag._passages import fuse_ranks
from skillshelf_skills.agentic_rag._sources import Passage
from skillshelf_skills.database import DatabaseError, Postgres

Embed = Callable[[str], Awaitable[Sequence[float]]]
"""Returns the vector of a question, as the model does that made the vectors in the table."""

_TEXT_COLUMNS = ("text", "content", "body", "passage", "chunk")
_TITLE_COLUMNS = ("title", "heading", "name")
_LOCATOR_COLUMNS = ("locator", "url", "uri", "path", "source", "id")
_VECTOR = re.compile(r'((?:\w+|"(?:[^"]|"")+")\.)?vector\((\d+)\)')
"""The type of a column. PostgreSQL writes the schema, quoted if need be, if it is not in the search path."""
_OWN_DIMENSIONS = 256
"""Of the vectors that `skillshelf.search.embed_texts` makes."""


class _Columns(NamedTuple):
    text: str
    title: str
    locator: str
    vector: str
    vector_schema: str
    """Where pgvector is, as SQL writes it before a name: `extensions.`; empty if it is in the search path."""
    dimensions: int


class PostgresPassages:
    """A table with a passage in each row. The server reads only, and ends what takes too long.

    The columns are found by their names: `text` or `content`, `title`, `locator`, `url` or `path`, and a column of the
    type `vector`. Vectors of 256 numbers are taken for those of `skillshelf.search.embed_texts`; for others, pass
    `embed`.
    """

    def __init__(
        self, address: str, table: str, *, embed: Embed | None = None, name: str = "postgres", seconds: float = 15.0
    ) -> None:
        """Connect to nothing yet. The password comes from PGPASSWORD or ~/.pgpass. Raises SettingsError."""
        if find_spec("psycopg") is None:
            raise MissingExtraError("PostgreSQL", "rag-postgres")
        self.name = name
        self.remarks: list[str] = []
        self._table = ".".join(map(_quote, table.split(".")))
        self._embed = embed
        self._server = Postgres(address, seconds)
        self._columns: _Columns | None = None

    async def search(self, question: str, limit: int) -> Sequence[Passage]:
        words = list(dict.fromkeys(split_words(question)))[:MAX_WORDS]
        if not words:
            raise RagError("There is nothing to look for.")
        try:
            if self._columns is None:
                self._columns = await asyncio.to_thread(self._find_columns)
            columns = self._columns
            lists = [await asyncio.to_thread(self._search_words, columns, words, limit)]
            vector = await self._make_vector(columns, question)
            if vector is not None:
                lists.append(await asyncio.to_thread(self._search_vectors, columns, vector, limit))
        except DatabaseError as error:
            raise SourceFailedError(self.name, error.reason) from None
        scores = fuse_ranks(lists)
        return sorted(scores, key=lambda passage: -scores[passage])[:limit]

    def _find_columns(self) -> _Columns:
        found = {column["name"]: column["type"] for column in self._server.describe_table(self._table)["columns"]}
        text = _choose(_TEXT_COLUMNS, found)
        if not text:
            raise SourceFailedError(
                self.name, f"the table has no column for the text: one of {', '.join(_TEXT_COLUMNS)}."
            )
        vector = ""
        schema = ""
        dimensions = 0
        for name, kind in found.items():
            match = _VECTOR.fullmatch(kind)
            if match:
                vector = name
                schema = match[1] or ""
                dimensions = int(match[2])
                break
        title = _choose(_TITLE_COLUMNS, found)
        return _Columns(text, title, _choose(_LOCATOR_COLUMNS, found), vector, schema, dimensions)

    async def _make_vector(self, columns: _Columns, question: str) -> Sequence[float] | None:
        """Return the vector of a question, or None if nothing here makes vectors like those in the table."""
        self.remarks = []
        if not columns.vector:
            return None
        if self._embed is not None:
            return await self._embed(question)
        if columns.dimensions == _OWN_DIMENSIONS and is_similarity_installed():
            return embed_texts([question])[0]
        self.remarks = [
            f"{self.name}: words alone were searched, because nothing here makes vectors of {columns.dimensions} "
            f"numbers. A program can pass `embed`."
        ]
        return None

    def _search_words(self, columns: _Columns, words: Sequence[str], limit: int) -> list[Passage]:
        # The words have letters and digits alone. Their endings are cut, so each is the beginning of a word.
        query = " | ".join(f"{word}:*" for word in words)
        text = f"to_tsvector('simple', {_quote(columns.text)})"
        return self._read(
            columns,
            f"WHERE {text} @@ to_tsquery('simple', $1) ORDER BY ts_rank_cd({text}, to_tsquery('simple', $1)) DESC",
            query,
            limit,
        )

    def _search_vectors(self, columns: _Columns, vector: Sequence[float], limit: int) -> list[Passage]:
        literal = f"[{','.join(f'{number:.6g}' for number in vector)}]"
        column = _quote(columns.vector)
        schema = columns.vector_schema
        distance = f"{column} OPERATOR({schema}<=>) $1::{schema}vector"
        return self._read(columns, f"WHERE {column} IS NOT NULL ORDER BY {distance}", literal, limit)

    def _read(self, columns: _Columns, clause: str, parameter: str, limit: int) -> list[Passage]:
        selected = [
            f"left({_quote(columns.text)}::text, {MAX_TEXT})",
            f"{_quote(columns.title)}::text" if columns.title else "NULL",
            f"{_quote(columns.locator)}::text" if columns.locator else "NULL",
        ]
        sql = f"SELECT {', '.join(selected)} FROM {self._table} {clause} LIMIT {int(limit)}"
        rows = self._server.query(sql, [parameter], limit)["rows"]
        passages = []
        for text, title, locator in rows:
            place = str(locator or self._table)
            passages.append(Passage(self.name, place, str(title or place), str(text or "")))
        return passages


def _choose(names: Sequence[str], found: dict[str, str]) -> str:
    for name in names:
        if name in found:
            return name
    return ""


def _quote(name: str) -> str:
    """Return a name as SQL has it, whatever characters it has."""
    escaped = name.replace('"', '""')
    return f'"{escaped}"'
