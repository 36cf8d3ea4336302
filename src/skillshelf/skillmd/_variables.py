"""The environment variables that a skill declares for its scripts."""

from collections.abc import Iterator, Mapping
from typing import Any

_MAX_VARIABLES = 20
_MAX_NAME = 128
# These steer programs. A skill that asks for one wants something other than a key.
_STEERING_NAMES = frozenset(
    {"PATH", "HOME", "SHELL", "ENV", "IFS", "CDPATH", "SHELLOPTS", "BASHOPTS", "PS4", "TMPDIR", "TMP", "TEMP", "LANG"}
)
_STEERING_PREFIXES = (
    *("LD_", "DYLD_", "LC_", "XDG_", "PYTHON", "RUBY", "PERL", "NODE_", "BASH_", "GIT_", "UV_", "PIP_", "NPM_"),
    *("SKILL_DIR", "SKILLSHELF_"),
)


def find_declared_variables(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the variables that a skill's metadata declare for its scripts.

    The format has no field for them, so `metadata` has: `env: NAME …`, or `requires: {env: […]}`, also below the name
    of a program, as OpenClaw writes it. Names that steer programs do not count.
    """
    names: dict[str, None] = {}
    for value in _find_declarations(metadata):
        words = value.replace(",", " ").split() if isinstance(value, str) else value
        for word in words if isinstance(words, list | tuple) else ():
            if isinstance(word, str) and _is_usable(word):
                names[word] = None
    return tuple(names)[:_MAX_VARIABLES]


def _is_usable(name: str) -> bool:
    is_name = name.isascii() and name.isidentifier() and len(name) <= _MAX_NAME
    upper = name.upper()
    return is_name and upper not in _STEERING_NAMES and not upper.startswith(_STEERING_PREFIXES)


def _find_declarations(metadata: Mapping[str, Any]) -> Iterator[Any]:
    yield metadata.get("env", "")
    for value in (metadata, *metadata.values()):
        if isinstance(value, Mapping):
            requires = value.get("requires")
            if isinstance(requires, Mapping):
                yield requires.get("env", "")
