"""A graph in a file: LadybugDB, which is embedded and speaks Cypher."""

import asyncio
import os
from collections.abc import Mapping
from importlib.util import find_spec

from skillshelf.errors import MissingExtraError
from skillshelf.sandbox import find_sandbox
from skillshelf_skills.agentic_rag._errors import RagError, SourceFailedError
from skillshelf_skills.agentic_rag._isolated import ask_graph_file
from skillshelf_skills.agentic_rag._results import GraphSchema
from skillshelf_skills.agentic_rag._worker import measure_space
from skillshelf_skills.database import Parameter, Rows


class GraphFile:
    """A graph that LadybugDB wrote. It is opened for each query, by a process that can open nothing else.

    Close it in the program that writes it: the database is for one writer, or for readers.
    """

    def __init__(self, path: str, *, name: str = "graph", seconds: float = 15.0) -> None:
        """Open nothing yet. A query may take this many seconds. Raises MissingExtraError."""
        if find_spec("ladybug") is None:
            raise MissingExtraError("A graph in a file", "rag")
        self.name = name
        self._path = os.path.abspath(path)
        self._seconds = seconds

    async def describe(self) -> GraphSchema:
        schema: GraphSchema = await ask_graph_file(
            self._path, {"action": "describe"}, seconds=self._seconds, space_megabytes=self._measure()
        )
        return schema

    async def query(self, cypher: str, parameters: Mapping[str, Parameter], limit: int, *, is_template: bool) -> Rows:
        if not is_template and not await asyncio.to_thread(find_sandbox):
            raise RagError(
                "Your own queries need a sandbox for the database, and this machine has none. Use a template.",
                reference="cypher_templates.py",
            )
        request = {"action": "query", "cypher": cypher, "parameters": dict(parameters), "limit": limit}
        rows: Rows = await ask_graph_file(self._path, request, seconds=self._seconds, space_megabytes=self._measure())
        return rows

    def _measure(self) -> int:
        try:
            return measure_space(os.stat(self._path).st_size)
        except OSError as error:
            raise SourceFailedError(self.name, f"the file cannot be opened ({error.strerror}).") from None
