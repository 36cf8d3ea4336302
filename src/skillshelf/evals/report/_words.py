"""How numbers are written in every report."""

from __future__ import annotations

import re
from math import ceil, floor

from skillshelf.evals.stats import Difference, Interval, Mean, Rate, Spending

SUITE = "(no skill)"
NOTHING = "–"
STOPPED = "stopped"
"""Before what ended a trial that counts."""


def percent(value: float | None) -> str:
    """Whole per cent; 0 and 100 are kept for none and all."""
    if value is None:
        return NOTHING
    shown = f"{100 * value:.0f}"
    if shown == "100" and value < 1:
        return ">99%"
    return "<1%" if shown == "0" and value > 0 else f"{shown}%"


def ends(interval: Interval | None) -> str:
    """An interval of shares: `[12%, 34%]`."""
    if interval is None:
        return ""
    low, high = _outwards(interval)
    return f"[{low}%, {high}%]"


def _outwards(interval: Interval) -> tuple[int, int]:
    """In whole hundredths, never narrower than it is: of a thousand passes, 100% would not be the lower end.

    What floats add in the last place is not to cost a whole point.
    """
    return floor(100 * interval.low + 1e-9), ceil(100 * interval.high - 1e-9)


def rate(given: Rate) -> str:
    return f"{percent(given.value)} {ends(given.interval)}".strip()


def points(value: float) -> str:
    """A difference of shares, in percentage points, with its sign."""
    shown = f"{100 * value:+.0f}".replace("-", "−")
    return "±0" if shown in ("+0", "−0") else shown


def gain(given: Difference | None) -> str:
    if given is None:
        return NOTHING
    low, high = _outwards(given.interval)
    return f"{points(given.value)} pp [{points(low / 100)}, {points(high / 100)}]"


def chance(p: float) -> str:
    return "<0.001" if p < 0.0005 else f"{p:.3f}"


def amount(value: float) -> str:
    """A number of things, short: `1.2k`."""
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if abs(value) >= size:
            return f"{value / size:.1f}{unit}".replace("-", "−")
    return f"{value:.0f}".replace("-", "−")


def apart(errors: int) -> str:
    """Infrastructure errors, as they are told beside any rate; nothing where there are none."""
    return f"{errors} infrastructure error{'s' if errors > 1 else ''} apart" if errors else ""


def money(value: float | None) -> str:
    if value is None:
        return NOTHING
    return f"${value:.2f}" if abs(value) >= 1 else f"${value:.4f}"


def seconds(value: float) -> str:
    return f"{value:.1f} s" if abs(value) < 100 else f"{value / 60:.1f} min"


def cost(given: Spending) -> str:
    """The price; `≥` where some of it is not known, nothing where none is."""
    if given.unpriced == given.trials:
        return NOTHING
    return money(given.cost) if given.is_priced else f"≥ {money(given.cost)}"


def change(given: Mean | None, unit: str = "") -> str:
    """A mean difference of an amount, with its interval."""
    if given is None:
        return NOTHING
    inner = f" [{_signed(given.interval.low, unit)}, {_signed(given.interval.high, unit)}]" if given.interval else ""
    return _signed(given.value, unit) + inner


def _signed(value: float, unit: str) -> str:
    sign = "−" if value < 0 else "+"
    size = abs(value)
    shown = money(size) if unit == "$" else f"{size:.1f}" if unit == "s" else amount(size)
    return f"{sign}{shown}{' s' if unit == 's' else ''}"


def name_of(skill: str) -> str:
    return skill or SUITE


_TWICE = re.compile(r"(\w+): (?=\1: )")
_SHORT_SCRIPT = re.compile(r"(?:AssertionError: )?The script has (\d+) steps, and the model was called (\d+) times\.?")


def fault(error: str) -> str:
    """What kept a trial from being one, in words for the author: not the class of what was raised, twice."""
    twice = _TWICE.match(error)
    told = error[twice.end() :] if twice else error
    short = _SHORT_SCRIPT.fullmatch(told)
    if short:
        steps = f"{short[1]} step{'s' if short[1] != '1' else ''}"
        return f"The case's script is too short: it has {steps}, and the model was called {short[2]} times."
    return told.removeprefix("EvalError: ")
