"""Questions to a database in SQL. Other skills read PostgreSQL through this door, under the same limits."""

from typing import TYPE_CHECKING

from skillshelf.lazy import export_lazily
from skillshelf_skills.database._errors import DatabaseError
from skillshelf_skills.database._results import Parameter, Rows, make_rows

if TYPE_CHECKING:
    from skillshelf_skills.database._process import Postgres

__all__ = ["DatabaseError", "Parameter", "Postgres", "Rows", "make_rows"]

# Workers import this package, too, and need none of it.
__getattr__ = export_lazily(__name__, {"_process": ["Postgres"]})
