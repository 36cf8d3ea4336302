"""The process that runs one statement: `python -I -m skillshelf.bundled.database._sqlite_worker`."""

from collections.abc import Mapping
from typing import Any

from skillshelf.bundled._worker import serve_request
from skillshelf.bundled.database._errors import DatabaseError, StatementRefusedError, TooSlowError
from skillshelf.bundled.database._sqlite import SqliteFile


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result of a method of SqliteFile, or its error."""
    file = SqliteFile(request["path"], request["seconds"])
    try:
        return {"result": getattr(file, request["method"])(*request["arguments"])}
    except TooSlowError as error:
        return _describe("too-slow", str(error), error.code)
    except StatementRefusedError as error:
        return _describe("refused", error.reason, error.code)
    except DatabaseError as error:
        return _describe("failed", str(error), error.code)
    except MemoryError:
        megabytes = request["memory_megabytes"]
        return _describe("refused", f"it needs more than {megabytes} MB of memory.", "SQLITE_NOMEM")


def _describe(error: str, message: str, code: str) -> dict[str, Any]:
    return {"error": error, "message": message, "code": code}


if __name__ == "__main__":
    serve_request(answer)
