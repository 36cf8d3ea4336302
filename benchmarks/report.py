"""The table: one row for each thing measured, as text, Markdown and JSON."""

from collections.abc import Sequence
from dataclasses import dataclass

HEADINGS = ("what", "ours", "against", "ratio", "target", "verdict")


@dataclass(frozen=True, slots=True)
class Row:
    """Ours, and what it is held against. The ratio is ours by the other: less is better, in every row."""

    what: str
    ours: float | None
    """None where it was not measured; `against` says why."""
    unit: str = "s"
    """s (seconds), B (bytes), or what is counted."""
    against: str = ""
    other: float | None = None
    most_ratio: float | None = None
    most: float | None = None
    """The limit on ours itself, where there is nothing to compare it with."""

    @property
    def ratio(self) -> float | None:
        return self.ours / self.other if self.ours is not None and self.other else None

    @property
    def verdict(self) -> str:
        if self.ours is None:
            return "not measured"
        value, limit = (self.ours, self.most) if self.most_ratio is None else (self.ratio, self.most_ratio)
        if value is None or limit is None:
            return ""
        return "met" if value <= limit else "missed"

    def cells(self) -> tuple[str, ...]:
        against = f"{self.against}: {amount(self.other, self.unit)}" if self.other is not None else self.against
        if self.most_ratio is not None:
            target = f"≤ {self.most_ratio:g}x"
        else:
            target = f"≤ {amount(self.most, self.unit)}" if self.most is not None else ""
        ours = amount(self.ours, self.unit) if self.ours is not None else ""
        return self.what, ours, against, times(self.ratio), target, self.verdict

    def plain(self) -> dict[str, object]:
        return {
            "what": self.what,
            "ours": self.ours,
            "unit": self.unit,
            "against": self.against,
            "other": self.other,
            "ratio": self.ratio,
            "most_ratio": self.most_ratio,
            "most": self.most,
            "verdict": self.verdict,
        }


def amount(value: float, unit: str) -> str:
    """Three digits, in the unit a person would choose."""
    if unit == "s":
        for name, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
            if value >= 0.9995 * size:
                return f"{_digits(value / size)} {name}"
        return f"{value * 1e9:.0f} ns"
    return f"{value:,.0f} {unit}"


def times(ratio: float | None) -> str:
    if ratio is None:
        return ""
    return f"{ratio:.2f}x" if ratio >= 0.095 else f"{ratio:.2g}x"


def _digits(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def aligned(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    lines = [headings, ["-" * width for width in widths], *rows]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def markdown(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
