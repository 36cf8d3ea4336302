"""A graph on a Neo4j server."""

import asyncio
import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from skillshelf.errors import MissingExtraError
from skillshelf.text import clean_line, truncate
from skillshelf_skills.agentic_rag._errors import RagError, SourceFailedError
from skillshelf_skills.agentic_rag._limits import MAX_REASON, MAX_SCHEMA_ROWS
from skillshelf_skills.agentic_rag._results import EdgeKind, GraphSchema, NodeKind
from skillshelf_skills.database import Parameter, Rows, make_rows

try:
    import neo4j
    from neo4j import exceptions
except ModuleNotFoundError as error:
    raise MissingExtraError("Neo4j", "rag-neo4j") from error

PASSWORD_VARIABLE = "NEO4J_PASSWORD"
_CONNECT_SECONDS = 10.0
_GRACE_SECONDS = 2.0
"""Beyond the time for connecting and for the query, in which a server that works has said that it ended the query."""
_READING = "r"
"""What the server calls a query that only reads."""
_REFUSED_OPERATORS = ("LoadCSV", "ProcedureCall", "Show", "Terminate")
"""Steps of a plan that reach beyond the graph: files and addresses, code on the server, its other sessions."""
# Without procedures, which a careful administrator does not allow. A sample suffices to write queries.
_NODES_QUERY = """
MATCH (n) WITH n LIMIT 2000
UNWIND labels(n) AS label UNWIND keys(n) AS key
RETURN label, collect(DISTINCT key) AS keys ORDER BY label
"""
_EDGES_QUERY = """
MATCH (a)-[r]->(b) WITH a, r, b LIMIT 2000
RETURN DISTINCT head(labels(a)) AS start, type(r) AS type, head(labels(b)) AS end ORDER BY type
"""


class Neo4jGraph:
    """A database of Neo4j. Each query is a transaction of its own, with access mode READ and a time limit.

    The server refuses to write in such a transaction. A query that a model wrote is explained first, and refused if the
    server's plan loads files, calls procedures or looks at the server. Connect as a user who may only read anyway.
    """

    def __init__(
        self,
        address: str,
        *,
        user: str = "",
        password: str | None = None,
        name: str = "graph",
        seconds: float = 15.0,
    ) -> None:
        """Connect to nothing yet.

        `address` is `neo4j://user@host:7687/database`, or `bolt://…`; `neo4j+s://…` is encrypted. The password comes
        from the environment variable NEO4J_PASSWORD unless it is given.
        """
        parts = urlsplit(address)
        self.name = name
        self._seconds = seconds
        self._user = user or unquote(parts.username or "")
        self._password = password
        self._database = unquote(parts.path.strip("/")) or None
        self._address = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"

    async def describe(self) -> GraphSchema:
        nodes = await self._run(_NODES_QUERY, {}, MAX_SCHEMA_ROWS, is_checked=False)
        edges = await self._run(_EDGES_QUERY, {}, MAX_SCHEMA_ROWS, is_checked=False)
        return GraphSchema(
            nodes=[NodeKind(label=str(label), properties=list(map(str, keys))) for label, keys in _pairs(nodes)],
            relationships=[
                EdgeKind(type=str(kind), start=str(start), end=str(end)) for start, kind, end in edges["rows"]
            ],
        )

    async def query(self, cypher: str, parameters: Mapping[str, Parameter], limit: int, *, is_template: bool) -> Rows:
        return await self._run(cypher, parameters, limit, is_checked=not is_template)

    async def _run(self, cypher: str, parameters: Mapping[str, Parameter], limit: int, *, is_checked: bool) -> Rows:
        try:
            async with (
                asyncio.timeout(_CONNECT_SECONDS + self._seconds + _GRACE_SECONDS),
                neo4j.AsyncGraphDatabase.driver(
                    self._address,
                    auth=self._credentials(),
                    connection_timeout=_CONNECT_SECONDS,
                    connection_acquisition_timeout=_CONNECT_SECONDS + self._seconds,
                    max_transaction_retry_time=0,
                    user_agent="skillshelf",
                    notifications_min_severity="OFF",
                ) as driver,
                driver.session(
                    database=self._database, default_access_mode=neo4j.READ_ACCESS, fetch_size=limit + 1
                ) as session,
                await session.begin_transaction(timeout=self._seconds) as transaction,
            ):
                if is_checked:
                    explained = await transaction.run(f"EXPLAIN {cypher}", dict(parameters))
                    _check_plan(await explained.consume())
                found = await transaction.run(cypher, dict(parameters))
                records = await found.fetch(limit + 1)
                columns = list(found.keys())
        except exceptions.AuthError:
            raise SourceFailedError(
                self.name,
                f"Neo4j refuses the user or the password. Tell the user: the password comes from {PASSWORD_VARIABLE}.",
            ) from None
        except exceptions.Neo4jError as error:
            raise self._explain(error) from None
        except TimeoutError:
            raise SourceFailedError(self.name, "Neo4j did not answer in time.") from None
        except (exceptions.DriverError, OSError, ValueError) as error:
            reason = truncate(clean_line(str(error)) or type(error).__name__, MAX_REASON)
            raise SourceFailedError(self.name, f"there is no connection to Neo4j: {reason}") from None
        return make_rows(columns, ([_simplify(value) for value in record.values()] for record in records), limit)

    def _credentials(self) -> tuple[str, str] | None:
        password = self._password if self._password is not None else os.environ.get(PASSWORD_VARIABLE)
        if password is None:
            return None
        return self._user or "neo4j", password

    def _explain(self, error: exceptions.Neo4jError) -> RagError | SourceFailedError:
        code = error.code or ""
        message = truncate(clean_line(error.message or ""), MAX_REASON).rstrip(".")
        if "TransactionTimedOut" in code or "Terminated" in code:
            return RagError(
                f"The query took longer than {self._seconds:g} seconds, and was ended. Follow fewer relationships, or "
                f"add LIMIT.",
                reference="cypher_templates.py",
            )
        if code.startswith("Neo.ClientError.Statement"):
            return RagError(f"The graph refused the query ({code}): {message}.", reference="cypher_templates.py")
        return SourceFailedError(self.name, f"Neo4j refused ({code}): {message}.")


def _check_plan(summary: neo4j.ResultSummary) -> None:
    """Raise RagError if the server's own plan for a query does more than read the graph."""
    if summary.query_type != _READING:
        raise RagError("The query would do more than read.", reference="cypher_templates.py")
    pending = [summary.plan or {}]
    while pending:
        step = pending.pop()
        operator = str(step.get("operatorType", ""))
        if operator.startswith(_REFUSED_OPERATORS):
            name = operator.partition("@")[0]
            raise RagError(
                f"The query reaches beyond the graph: its plan has the step {name}.", reference="cypher_templates.py"
            )
        pending += step.get("children", [])


def _simplify(value: Any) -> Any:
    """Return a value of the driver with nodes, relationships and paths in the form that all graphs have."""
    if isinstance(value, neo4j.graph.Node):
        return {"label": ":".join(sorted(value.labels)), "properties": _simplify(dict(value))}
    if isinstance(value, neo4j.graph.Relationship):
        return {"type": value.type, "properties": _simplify(dict(value))}
    if isinstance(value, neo4j.graph.Path):
        return {"nodes": _simplify(list(value.nodes)), "relationships": _simplify(list(value.relationships))}
    if isinstance(value, list):
        return [_simplify(item) for item in value]
    if isinstance(value, dict):
        return {key: _simplify(item) for key, item in value.items()}
    return value


def _pairs(rows: Rows) -> list[tuple[Any, Any]]:
    return [(label, keys) for label, keys in rows["rows"]]
