"""Finding where JSON breaks its schema.

A schema may hold patterns, and a match cannot be stopped from outside its process. So this file is also a program: it
reads `[schema, value]` from standard input and prints the result. It imports nothing of skillshelf, to start quickly.
"""

import json
import sys
from typing import Any


def find_fault(schema: dict[str, Any], value: Any) -> dict[str, str]:
    """Return the first fault, as `at` and `message`; the `unresolved` reference of the schema; or nothing."""
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


if __name__ == "__main__":
    print(json.dumps(find_fault(*json.load(sys.stdin))))
