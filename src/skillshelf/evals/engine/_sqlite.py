"""SQLite connections on which DBOS can keep its timestamps, whichever SQLite this Python was built with.

From Python 3.12 on, DBOS takes the time from `unixepoch('subsec')`. SQLite knows that modifier since 3.42 and returns
NULL before, which the tables of DBOS refuse. Debian 12 has 3.40.
"""

import sqlite3
import time
from typing import Any

URL_PREFIX = "sqlite:///"
_KNOWS_SUBSEC = (3, 42, 0)
_SUBSEC = "subsec"


class DbosConnection(sqlite3.Connection):
    """A connection whose `unixepoch('subsec')` is the time, on an old SQLite too."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if sqlite3.sqlite_version_info >= _KNOWS_SUBSEC:
            return

        self.create_function("unixepoch", 1, _unixepoch)
        # The tables name the function in their defaults, which some builds of SQLite allow for built-in functions only.
        self.execute("PRAGMA trusted_schema = ON")


def engine_arguments(url: str) -> dict[str, Any]:
    """Return the SQLAlchemy engine arguments that DBOS needs for a database."""
    if not url.startswith(URL_PREFIX):
        return {}
    return {"connect_args": {"factory": DbosConnection}}


def _unixepoch(modifier: object) -> float:
    if modifier != _SUBSEC:
        raise ValueError(f"unixepoch({modifier!r}) needs SQLite 3.42; here only unixepoch({_SUBSEC!r}) is known")
    return time.time()
