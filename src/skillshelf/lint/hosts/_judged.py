"""From conditions to a verdict for each host, by the table."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal, get_args

Makes = Literal["loads", "warns", "truncates", "corrupts", "drops", "drops-silently", "crashes"]
WORDS: tuple[Makes, ...] = get_args(Makes)
"""From the best to the worst."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one host makes of a skill."""

    host: str
    version: str
    makes: Makes
    because: tuple[str, ...] = ()
    """The conditions that make it no better; empty where it loads."""


def judge(found: Sequence[str]) -> list[Verdict]:
    """A verdict for each host. Of several conditions, the one that it copes with worst counts."""
    verdicts = []
    for host, measured in table().items():
        made = {code: measured["makes"][code] for code in found}
        worst = max(made.values(), key=WORDS.index, default=WORDS[0])
        because = tuple(code for code in found if made[code] == worst != WORDS[0])
        verdicts.append(Verdict(host, measured["version"], worst, because))
    return verdicts


@cache
def table() -> dict[str, dict[str, Any]]:
    """What was measured: for each host its version, its loader, and what it made of each condition."""
    text = files("skillshelf.lint.hosts").joinpath("hosts.json").read_text(encoding="utf-8")
    read_back: dict[str, dict[str, Any]] = json.loads(text)
    return read_back
