"""Questions to a database in SQL. Other skills read PostgreSQL through this door, under the same limits."""

from typing import TYPE_CHECKING

from skillshelf._lazy import export_lazily

if TYPE_CHECKING:
    from skillshelf.bundled.database._errors import DatabaseError
    from skillshelf.bundled.database._postgres import Postgres
    from skillshelf.bundled.database._results import Parameter, Rows
    from skillshelf.bundled.database._rows import make_rows

__all__ = ["DatabaseError", "Parameter", "Postgres", "Rows", "make_rows"]

__getattr__ = export_lazily(
    __name__,
    {
        "_errors": ["DatabaseError"],
        "_postgres": ["Postgres"],
        "_results": ["Parameter", "Rows"],
        "_rows": ["make_rows"],
    },
    extra="database",
)
