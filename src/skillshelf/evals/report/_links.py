"""Addresses of trials on the HTML page, so that every number leads to the trials behind it.

An address is a fragment such as `#trials?skill=pdf&arm=with`. The page's script reads it and shows those trials alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote, urlencode

from skillshelf.evals._results import Arm, Status
from skillshelf.text import clean

COUNTED: tuple[Status, ...] = ("passed", "missed")
"""The trials that are in a rate."""


def link_trials(
    *,
    skill: str | None = None,
    arms: Sequence[str] = (),
    statuses: Sequence[Status] = (),
    case: str | None = None,
    trigger: bool | None = None,
    about: str | None = None,
    loaded: str | None = None,
    failed: str | None = None,
    stopped: str | None = None,
    fault: int | None = None,
    compared: str | None = None,
    live: bool | None = None,
    is_flaky: bool = False,
) -> str:
    """Return the address of the trials that meet every condition.

    `about` names a skill of which the case says whether it should be loaded. `loaded` names a skill that the trial
    loaded, and is empty for trials that loaded none. `failed` names a check that did not hold. `stopped` is why the
    trial ended early. `fault` is the number of an infrastructure error. `compared` is the arm that the case is compared
    with. Only live cases are in a rate.
    """
    conditions: dict[str, str | None] = {
        "skill": skill,
        "arm": ",".join(arms) or None,
        "status": ",".join(statuses) or None,
        "case": case,
        "trigger": None if trigger is None else _yes_or_no(trigger),
        "about": about,
        "loaded": loaded,
        "failed": failed,
        "stopped": stopped,
        "fault": None if fault is None else str(fault),
        "compared": compared,
        "live": None if live is None else _yes_or_no(live),
        "flaky": "yes" if is_flaky else None,
    }
    # The page shows names with hidden characters written out, and compares them so.
    given = {name: clean(value) for name, value in conditions.items() if value is not None}
    return f"#trials?{urlencode(given, quote_via=quote)}"


def link_rate(skill: str | None, arm: Arm) -> str:
    """Return the address of the trials that a pass rate is over. No skill means all of them."""
    return link_trials(skill=skill, live=True, arms=(arm,), statuses=COUNTED)


def link_gain(skill: str | None, base: str) -> str:
    """Return the address of the trials that a gain is over."""
    return link_trials(skill=skill, arms=("with", base), statuses=COUNTED, compared=base)


def _yes_or_no(value: bool) -> str:
    return "yes" if value else "no"
