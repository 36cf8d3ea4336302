"""The worker that parses what others wrote.

It extracts the text of web pages, and asks a graph in a file. Before it runs a query, it gives up opening anything: the
database has commands that read and write any file (LOAD FROM, COPY, EXPORT) or fetch code (INSTALL), also if it was
opened for reading, and no setting turns them off.
"""

import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from skillshelf.sandbox.worker import forbid_opening
from skillshelf.text import truncate
from skillshelf_skills.agentic_rag._errors import RagError
from skillshelf_skills.agentic_rag._limits import MAX_DEPTH, MAX_REASON
from skillshelf_skills.database import Rows, make_rows

PAGE_SECONDS = 10.0
"""For one page."""

_BUFFER_MEGABYTES = 256
_MIN_SPACE_MEGABYTES = 256
_MEGABYTE = 1024 * 1024
_INTERNAL_KEYS = frozenset({"_ID", "_LABEL", "_SRC", "_DST"})


def measure_space(file_size: int) -> int:
    """Return the megabytes of address space that the database takes for a file: a power of two, with room."""
    space = _MIN_SPACE_MEGABYTES
    while space * _MEGABYTE < 2 * file_size:
        space *= 2
    return space


def answer(request: Mapping[str, Any], data: Sequence[bytes]) -> dict[str, Any]:
    """Return the result of a request, or the error in its place."""
    try:
        result = _extract(data[0]) if request["action"] == "extract" else _ask_graph(request)
    except RagError as error:
        return {"error": error.reason, "reference": error.reference}
    return {"result": result}


# -- pages ------------------------------------------------------------------------------------------------------------


def encode_page(html: str) -> bytes:
    """Return a page as it is sent to the worker."""
    return html.encode("utf-8", "surrogatepass")


def _extract(page: bytes) -> dict[str, str] | None:
    """Return the title and the main text of a page as Markdown. None if it has none."""
    import trafilatura  # takes seconds on a busy machine, which are not the page's

    html = page.decode("utf-8", "surrogatepass")
    sys.setrecursionlimit(MAX_DEPTH)
    signal.setitimer(signal.ITIMER_REAL, PAGE_SECONDS)  # its signal ends the process
    try:
        text = trafilatura.extract(html, output_format="markdown", include_comments=False, include_tables=True)
        text = text or trafilatura.html2txt(html)
        if not text:
            return None
        metadata = trafilatura.extract_metadata(html)
        title = (metadata.title if metadata else None) or ""
    except MemoryError:
        raise
    except Exception as error:
        raise RagError(f"The page breaks the parser ({type(error).__name__}).") from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return {"title": title, "text": text}


# -- the graph --------------------------------------------------------------------------------------------------------


def _ask_graph(request: Mapping[str, Any]) -> Any:
    connection = _open_graph(request["path"], request["space_megabytes"], request["seconds"])
    _warm_up(connection)
    forbid_opening()
    if request["action"] == "describe":
        return _describe(connection)
    return _run_query(connection, request["cypher"], request["parameters"], request["limit"])


def _open_graph(path: str, space: int, seconds: float) -> Any:
    import ladybug

    try:
        database = ladybug.Database(
            path,
            read_only=True,
            buffer_pool_size=_BUFFER_MEGABYTES * _MEGABYTE,
            max_num_threads=1,
            max_db_size=space * _MEGABYTE,
        )
        connection = ladybug.Connection(database, num_threads=1)
    except RuntimeError as error:
        reason = truncate(str(error).partition("\n")[0], MAX_REASON)
        raise RagError(f"The file is not a graph that can be opened: {reason}") from None
    connection.set_query_timeout(max(1, round(seconds * 1000)))
    return connection


def _warm_up(connection: Any) -> None:
    """Have the library import what it needs for values of each kind. Afterwards no module can be opened."""
    values = {"text": "a", "whole": 1, "number": 1.5, "truth": True, "nothing": None}
    connection.execute(
        "RETURN $text, $whole, $number, $truth, $nothing, date('2026-01-01'), timestamp('2026-01-01 00:00:00'), "
        "interval('1 day'), CAST(1.5 AS DECIMAL(5, 2)), gen_random_uuid()",
        values,
    ).get_all()


def _run_query(connection: Any, cypher: str, parameters: Mapping[str, Any], limit: int) -> Rows:
    try:
        found = connection.execute(cypher, dict(parameters))
        if isinstance(found, list):
            raise RagError("Several statements came at once. Send one.", reference="cypher_templates.py")
        columns = found.get_column_names()
        return make_rows(columns, _iterate(found), limit)
    except (RuntimeError, OSError, TypeError, ValueError) as error:
        raise _explain(str(error)) from None


def _explain(message: str) -> RagError:
    """Return our error for the database's message, which names no kind of error that a program could rely on."""
    first = truncate(message.partition("\n")[0], MAX_REASON)
    if first == "Interrupted.":
        return RagError(
            "The query took too long, and was ended. Follow fewer relationships, or add LIMIT.",
            reference="cypher_templates.py",
        )
    if "Too many open files" in message:
        return RagError(
            "The query tried to open a file or a connection. It may only read the graph.",
            reference="cypher_templates.py",
        )
    return RagError(f"The graph refused the query: {first.rstrip('.')}.", reference="cypher_templates.py")


def _iterate(found: Any) -> Iterator[list[Any]]:
    while found.has_next():
        yield [_simplify(value) for value in found.get_next()]


def _simplify(value: Any) -> Any:
    """Return a value of the database with nodes, relationships and paths in the form that all graphs have."""
    if isinstance(value, list):
        return [_simplify(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "_NODES" in value and "_RELS" in value:
        return {"nodes": _simplify(value["_NODES"]), "relationships": _simplify(value["_RELS"])}
    if "_LABEL" not in value:
        return {key: _simplify(item) for key, item in value.items()}
    kind = "type" if "_SRC" in value else "label"
    properties = {key: _simplify(item) for key, item in value.items() if key not in _INTERNAL_KEYS and item is not None}
    return {kind: value["_LABEL"], "properties": properties}


def _describe(connection: Any) -> dict[str, Any]:
    nodes = []
    relationships = []
    for _, name, kind, *_ in connection.execute("CALL show_tables() RETURN *").get_all():
        quoted = str(name).replace("\\", "\\\\").replace("'", "\\'")
        if kind == "NODE":
            columns = connection.execute(f"CALL table_info('{quoted}') RETURN *").get_all()
            nodes.append({"label": name, "properties": [column[1] for column in columns]})
        elif kind == "REL":
            for start, end, *_ in connection.execute(f"CALL show_connection('{quoted}') RETURN *").get_all():
                relationships.append({"type": name, "start": start, "end": end})
    return {"nodes": nodes, "relationships": relationships}
