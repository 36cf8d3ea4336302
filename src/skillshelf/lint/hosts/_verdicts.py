"""From the conditions of a skill to a verdict for each host, by measured behavior."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal, get_args

HostOutcome = Literal["loads", "warns", "truncates", "corrupts", "drops", "drops-silently", "crashes"]
OUTCOMES: tuple[HostOutcome, ...] = get_args(HostOutcome)
"""From the best to the worst."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How one host loads a skill."""

    host: str
    version: str
    makes: HostOutcome
    because: tuple[str, ...] = ()
    """The conditions that cause the outcome; empty if the host loads the skill."""


def judge(conditions: Sequence[str]) -> list[Verdict]:
    """Return a verdict for each host. Of several conditions, the one with the worst outcome counts."""
    best = OUTCOMES[0]
    verdicts = []
    for host, measured in load_measurements().items():
        outcomes = {code: measured["makes"][code] for code in conditions}
        worst = max(outcomes.values(), key=OUTCOMES.index, default=best)
        because: tuple[str, ...] = ()
        if worst != best:
            because = tuple(code for code in conditions if outcomes[code] == worst)
        verdicts.append(Verdict(host, measured["version"], worst, because))
    return verdicts


@cache
def load_measurements() -> dict[str, dict[str, Any]]:
    """Return for each host its version, its loader, and its outcome for each condition."""
    text = files("skillshelf.lint.hosts").joinpath("hosts.json").read_text(encoding="utf-8")
    measurements: dict[str, dict[str, Any]] = json.loads(text)
    return measurements
