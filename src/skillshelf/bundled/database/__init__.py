"""Questions to a database in SQL. Other skills read PostgreSQL through this door, under the same limits."""

from typing import TYPE_CHECKING

from skillshelf._lazy import export_lazily
from skillshelf.bundled.database._errors import DatabaseError
from skillshelf.bundled.database._results import Parameter, Rows, make_rows

if TYPE_CHECKING:
    from skillshelf.bundled.database._postgres import Postgres

__all__ = ["DatabaseError", "Parameter", "Postgres", "Rows", "make_rows"]

# Only PostgreSQL needs a library, which takes 0.14 s to import.
__getattr__ = export_lazily(__name__, {"_postgres": ["Postgres"]}, extra="database")
