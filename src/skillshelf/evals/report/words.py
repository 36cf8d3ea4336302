"""How numbers are written in every report."""

from __future__ import annotations

from skillshelf.evals.stats import Difference, Interval, Mean, Rate, Spent

SUITE = "(no skill)"
NOTHING = "–"


def percent(value: float | None) -> str:
    return NOTHING if value is None else f"{100 * value:.0f}%"


def ends(interval: Interval | None) -> str:
    """An interval of shares: `[12%, 34%]`."""
    return f"[{percent(interval.low)}, {percent(interval.high)}]" if interval else ""


def rate(given: Rate) -> str:
    return f"{percent(given.value)} {ends(given.interval)}".strip()


def points(value: float) -> str:
    """A difference of shares, in percentage points, with its sign."""
    shown = f"{100 * value:+.0f}".replace("-", "−")
    return "±0" if shown in ("+0", "−0") else shown


def gain(given: Difference | None) -> str:
    if given is None:
        return NOTHING
    return f"{points(given.value)} pp [{points(given.interval.low)}, {points(given.interval.high)}]"


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


def cost(given: Spent) -> str:
    """The price; `≥` where some of it is not known, nothing where none is."""
    if given.unpriced == given.trials:
        return NOTHING
    return money(given.cost) if given.priced else f"≥ {money(given.cost)}"


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
