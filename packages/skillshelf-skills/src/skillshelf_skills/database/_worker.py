"""The worker that runs one statement. What a request says about the database decides which kind it is."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from skillshelf_skills.database._errors import DatabaseError, StatementRefusedError, TooSlowError


def answer(request: Mapping[str, Any], data: Sequence[bytes]) -> dict[str, Any]:
    """Return the result of a database's method, or its error."""
    try:
        database = _open_database(request)
        return {"result": getattr(database, request["method"])(*request["arguments"])}
    except TooSlowError as error:
        return _describe("too-slow", str(error), error.code)
    except StatementRefusedError as error:
        return _describe("refused", error.reason, error.code)
    except DatabaseError as error:
        return _describe("failed", str(error), error.code)


def _open_database(request: Mapping[str, Any]) -> Any:
    if "path" in request:
        from skillshelf_skills.database._sqlite import SqliteFile

        return SqliteFile(request["path"], request["seconds"])

    # Through the pipe: the environment that a program starts with can be read by others.
    os.environ.update(request["environment"])
    from skillshelf_skills.database._postgres import PostgresServer

    return PostgresServer(request["address"], request["seconds"])


def _describe(error: str, message: str, code: str) -> dict[str, Any]:
    return {"error": error, "message": message, "code": code}
