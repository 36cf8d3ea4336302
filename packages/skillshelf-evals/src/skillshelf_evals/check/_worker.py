"""The worker that matches patterns of a case, alone or in a JSON schema: a match cannot be stopped from outside.

It imports nothing of skillshelf, to start quickly.
"""

import re
from collections.abc import Sequence
from typing import Any


def answer(request: dict[str, Any], data: Sequence[bytes]) -> Any:
    """Return whether a `regex` matches in a `text`, or where a `value` breaks a `schema`."""
    if "regex" in request:
        return bool(re.search(request["regex"], request["text"]))
    return find_fault(request["schema"], request["value"])


def find_fault(schema: dict[str, Any], value: Any) -> dict[str, str]:
    """Return the first fault of JSON under a schema, as `at` and `message`, or nothing.

    If the schema refers to something that is not in it, return that as `unresolved`.
    """
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    # The default registry would fetch schemas from the network.
    validator = validator_for(schema, default=Draft202012Validator)(schema, registry=Registry())
    try:
        fault = next(validator.iter_errors(value), None)
    except Unresolvable as error:
        return {"unresolved": str(error.ref)}
    return {"at": fault.json_path, "message": fault.message} if fault else {}
