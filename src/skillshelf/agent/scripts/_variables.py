"""Environment variables that a skill declares: asked for once, and given to its scripts alone."""

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import NamedTuple

_MAX_VALUE = 32 * 1024


@dataclass(frozen=True, slots=True)
class VariableRequest:
    """A question to the user for the value of an environment variable."""

    name: str
    skill: str
    in_environment: bool
    """True if the agent's own environment has the variable, so that a yes is enough."""


AskVariable = Callable[[VariableRequest], Awaitable[str | None]]
"""Returns the value, or None if the user does not give one."""


class GivenVariables(NamedTuple):
    """The variables that a script gets."""

    values: dict[str, str]
    missing: list[str]
    """The names of declared variables that the user did not give."""


class VariableStore:
    """The values that the user gave in this session. They are in memory only."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, str, str], str] = {}

    async def collect(self, skill: str, tree: str, names: tuple[str, ...], ask: AskVariable | None) -> GivenVariables:
        """Return the variables for a skill with this content.

        Each is asked for once. Other content of the same skill is asked about again.
        """
        values: dict[str, str] = {}
        missing: list[str] = []
        for name in names:
            key = (skill, tree, name)
            if key not in self._values and ask is not None:
                value = await ask(VariableRequest(name, skill, name in os.environ))
                if value and len(value) <= _MAX_VALUE and "\0" not in value:
                    self._values[key] = value
            if key in self._values:
                values[name] = self._values[key]
            else:
                missing.append(name)
        return GivenVariables(values, missing)
