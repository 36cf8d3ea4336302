"""How numbers are written in every report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from math import ceil, floor
from typing import Any

from skillshelf.text import count_noun
from skillshelf_evals._text import format_money
from skillshelf_evals.stats import Confusion, Counts, Difference, Interval, Mean, Rate, Spending

NO_SKILL = "(no skill)"
MAX_REASON = 200
"""Characters of a reason in a table or an annotation. The page has the rest."""
MAX_CASES_NAMED = 5
NO_VALUE = "–"


# `run.json` has the trials in full, and what a check is about is for annotations alone.
_FIELDS_LEFT_OUT = frozenset({"run", "outcomes", "about"})


def skill_label(skill: str) -> str:
    """Return the name of a skill, or words for cases that belong to none."""
    return skill or NO_SKILL


def format_errors(errors: int) -> str:
    """Return the number of infrastructure errors as it stands beside a rate."""
    return f"{count_noun(errors, 'infrastructure error')} apart"


def format_scripted(counts: Counts) -> str:
    """Return how many scripted cases pass. They have no rate: no model was asked."""
    text = f"{counts.passed} of {count_noun(counts.trials, 'scripted case')} passed"
    return f"{text}, {format_errors(counts.errors)}" if counts.errors else text


def format_percent(value: float | None) -> str:
    """Return a share in whole per cent. Only none and all are written 0% and 100%."""
    if value is None:
        return NO_VALUE
    whole = f"{100 * value:.0f}"
    if whole == "100" and value < 1:
        return ">99%"
    if whole == "0" and value > 0:
        return "<1%"
    return f"{whole}%"


def format_interval(interval: Interval | None) -> str:
    """Return an interval of shares: `[12%, 34%]`."""
    if interval is None:
        return ""
    low, high = _round_outwards(interval)
    return f"[{low}%, {high}%]"


def format_rate(rate: Rate) -> str:
    """Return a rate with its interval: `80% [49%, 95%]`."""
    return f"{format_percent(rate.value)} {format_interval(rate.interval)}".strip()


def _round_outwards(interval: Interval) -> tuple[int, int]:
    """Return the ends in whole hundredths, never narrower: a thousand passes do not make 100% the lower end.

    The last bit of a float must not cost a whole point.
    """
    return floor(100 * interval.low + 1e-9), ceil(100 * interval.high - 1e-9)


def format_points(value: float) -> str:
    """Return a difference of shares in percentage points, with its sign."""
    points = f"{100 * value:+.0f}".replace("-", "−")
    return "±0" if points in ("+0", "−0") else points


def format_gain(difference: Difference | None) -> str:
    """Return a difference with its interval: `+20 pp [+5, +33]`."""
    if difference is None:
        return NO_VALUE
    low, high = _round_outwards(difference.interval)
    return f"{format_points(difference.value)} pp [{format_points(low / 100)}, {format_points(high / 100)}]"


def format_p(p: float) -> str:
    return "<0.001" if p < 0.0005 else f"{p:.3f}"


def format_count(value: float) -> str:
    """Return a number of things, short: `1.2k`."""
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if abs(value) >= size:
            return f"{value / size:.1f}{unit}".replace("-", "−")
    return f"{value:.0f}".replace("-", "−")


def format_seconds(value: float) -> str:
    return f"{value:.1f} s" if abs(value) < 100 else f"{value / 60:.1f} min"


def format_cost(spending: Spending) -> str:
    """Return the cost; with `≥` if some prices are not known, and a dash if none is."""
    if spending.unpriced == spending.trials:
        return NO_VALUE
    if spending.is_priced:
        return format_money(spending.cost)
    return f"≥ {format_money(spending.cost)}"


def format_change(mean: Mean | None, unit: str = "") -> str:
    """Return the mean difference of an amount, with its interval. The unit is `$`, `s` or empty."""
    if mean is None:
        return NO_VALUE
    value = _format_signed(mean.value, unit)
    if mean.interval is None:
        return value
    return f"{value} [{_format_signed(mean.interval.low, unit)}, {_format_signed(mean.interval.high, unit)}]"


def _format_signed(value: float, unit: str) -> str:
    sign = "−" if value < 0 else "+"
    if unit == "$":
        return f"{sign}{format_money(abs(value))}"
    if unit == "s":
        return f"{sign}{abs(value):.1f} s"
    return f"{sign}{format_count(abs(value))}"


def to_plain(value: Any) -> Any:
    """Return the numbers of a report as JSON values."""
    if isinstance(value, Confusion):
        return _confusion_as_json(value)
    if is_dataclass(value) and not isinstance(value, type):
        return _fields_as_json(value)
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [to_plain(item) for item in value]
    return value


def _fields_as_json(value: Any) -> dict[str, Any]:
    plain = {}
    for field in fields(value):
        if field.name not in _FIELDS_LEFT_OUT:
            plain[field.name] = to_plain(getattr(value, field.name))

    if isinstance(value, Rate):
        plain["value"] = value.value
    if isinstance(value, Difference):
        plain["verdict"] = value.verdict
    return plain


def _confusion_as_json(confusion: Confusion) -> list[dict[str, Any]]:
    rows = []
    for row in confusion.rows:
        loaded = [
            {"skill": column or None, "trials": confusion.counts[row, column]}
            for column in confusion.columns
            if (row, column) in confusion.counts
        ]
        rows.append(
            {
                "skill": row.skill,
                "should_trigger": row.should,
                "trials": confusion.totals[row],
                "loaded": loaded,
            }
        )
    return rows
