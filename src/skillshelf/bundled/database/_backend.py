"""What a database has to offer to the skill."""

from collections.abc import Sequence
from typing import Any, Protocol

from skillshelf.bundled.database._results import DescribedTable, Rows, Table


class Backend(Protocol):
    """A database. Each call is a connection of its own, so that no statement changes what the next one may do."""

    def list_tables(self) -> list[Table]: ...

    def describe_table(self, table: str) -> DescribedTable: ...

    def query(self, sql: str, parameters: Sequence[Any], limit: int) -> Rows:
        """Run one statement that reads. The database itself refuses one that writes."""
        ...

    def explain(self, sql: str, parameters: Sequence[Any]) -> str: ...

    def execute(self, sql: str, parameters: Sequence[Any]) -> int:
        """Run one statement that writes, and return the number of rows it changed."""
        ...
