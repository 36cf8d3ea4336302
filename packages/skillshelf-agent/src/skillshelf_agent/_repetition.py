"""Notices a model that goes in circles: the same call, or the same few calls, again and again in one turn.

A call counts as the same if its tool and its arguments are equal. With equal results too, nothing moves any more, and
five rounds are enough to ask. Results that differ may be progress: a build that is watched, a page that is polled. So
then it takes twenty calls in a row, because a result can also differ by nothing but the time in it.
"""

import hashlib
import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_MAX_ROUNDS = 5
_MAX_SAME_CALLS = 20
_MAX_CYCLE = 3


@dataclass(frozen=True, slots=True)
class Repetition:
    """Calls that a model has made again and again."""

    calls: int
    """How many calls one round has: 1 for the same call over and over, 2 for two in turn."""
    rounds: int
    same_results: bool

    def __str__(self) -> str:
        calls = "the same call" if self.calls == 1 else f"the same {self.calls} calls in turn"
        results = ", with the same result each time" if self.same_results else ""
        return f"The model has made {calls} {self.rounds} times{results}."


@dataclass(frozen=True, slots=True)
class _PastCall:
    call: str
    result: str


class CallHistory:
    """The last calls of a turn."""

    def __init__(self) -> None:
        self._past: deque[_PastCall] = deque(maxlen=max(_MAX_ROUNDS * _MAX_CYCLE, _MAX_SAME_CALLS))

    def add(self, tool: str, arguments: Mapping[str, Any], result: object) -> None:
        digest = hashlib.sha256(repr(result).encode(errors="surrogatepass")).hexdigest()
        self._past.append(_PastCall(_name_call(tool, arguments), digest))

    def clear(self) -> None:
        """Start counting again."""
        self._past.clear()

    def find_repetition(self, tool: str, arguments: Mapping[str, Any]) -> Repetition | None:
        """Return the repetition that this call would go on with, if there has been enough of it."""
        call = _name_call(tool, arguments)
        past = list(self._past)
        for length in range(1, _MAX_CYCLE + 1):
            rounds = past[-length * _MAX_ROUNDS :]
            is_long_enough = len(rounds) == length * _MAX_ROUNDS
            if is_long_enough and rounds[0].call == call and _is_cycle(rounds, length):
                return Repetition(length, _MAX_ROUNDS, same_results=True)

        is_same = len(past) >= _MAX_SAME_CALLS and all(other.call == call for other in past[-_MAX_SAME_CALLS:])
        if is_same:
            return Repetition(1, _MAX_SAME_CALLS, same_results=False)
        return None


def _is_cycle(calls: list[_PastCall], length: int) -> bool:
    return all(call == calls[index % length] for index, call in enumerate(calls))


def _name_call(tool: str, arguments: Mapping[str, Any]) -> str:
    return json.dumps([tool, arguments], sort_keys=True, default=str)
