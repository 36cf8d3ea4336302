"""How each operation grows with the number of skills: the points, their table, and a picture of them."""

import math
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

from benchmarks.clock import best, cpu
from benchmarks.ours import listing_clock, reload_clock, search_clock, shelf_of
from benchmarks.report import amount, times

Points = Mapping[str, Mapping[int, float]]
"""Seconds by operation and number of skills."""

# Colours that people with the common kinds of colour blindness tell apart, dark enough for text on white.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#444444", "#a67c00")
_WIDTH, _HEIGHT = 860, 520
_LEFT, _RIGHT, _TOP, _BOTTOM = 80, 230, 50, 60
_LABEL_HEIGHT = 17


def measure(folder: str, rounds: int) -> dict[str, float]:
    """CPU seconds of each operation on one collection; wall time for the reload, which is short."""
    shelf_of(folder, cache=True)
    shelf = shelf_of(folder)
    few = min(3, rounds)
    return {
        "cold scan": best(rounds, lambda: cpu(lambda: shelf_of(folder)))[0],
        "warm start": best(rounds, lambda: cpu(lambda: shelf_of(folder, cache=True)))[0],
        "sweep: reload()": best(rounds, lambda: cpu(shelf.reload))[0],
        "listing, first time": best(few, listing_clock(folder))[0],
        "search": best(rounds, search_clock(folder))[0],
        "reload of one file": best(20 * rounds, reload_clock(folder))[0],
    }


def table(points: Points) -> tuple[list[str], list[list[str]]]:
    """Headings and rows. The last column is linear growth where it says 1x."""
    sizes = sorted({size for line in points.values() for size in line})
    small, large = sizes[-min(3, len(sizes))], sizes[-1]
    headings = ["", *(f"{size:,}" for size in sizes), f"{large:,} against {small:,}, per skill"]
    rows = [
        [
            operation,
            *(amount(line[size], "s") for size in sizes),
            times(line[large] / line[small] * small / large),
        ]
        for operation, line in points.items()
    ]
    return headings, rows


class _Axes:
    """Both logarithmic."""

    def __init__(self, points: Points) -> None:
        sizes = [size for line in points.values() for size in line]
        seconds = [value for line in points.values() for value in line.values()]
        self.x = range(math.floor(math.log10(min(sizes))), math.ceil(math.log10(max(sizes))) + 1)
        self.y = range(math.floor(math.log10(min(seconds))), math.ceil(math.log10(max(seconds))) + 1)

    def at(self, size: float, seconds: float) -> tuple[float, float]:
        across = (math.log10(size) - self.x[0]) / (self.x[-1] - self.x[0])
        up = (math.log10(seconds) - self.y[0]) / (self.y[-1] - self.y[0])
        return _LEFT + across * (_WIDTH - _LEFT - _RIGHT), _HEIGHT - _BOTTOM - up * (_HEIGHT - _TOP - _BOTTOM)

    def draw(self) -> list[str]:
        left, bottom = self.at(10.0 ** self.x[0], 10.0 ** self.y[0])
        right, top = self.at(10.0 ** self.x[-1], 10.0 ** self.y[-1])
        drawn = []
        for power in self.x:
            x = self.at(10.0**power, 10.0 ** self.y[0])[0]
            drawn += [_line(x, bottom, x, top), _text(x, bottom + 22, f"{10**power:,}", "middle")]
        for power in self.y:
            y = self.at(10.0 ** self.x[0], 10.0**power)[1]
            drawn += [_line(left, y, right, y), _text(left - 10, y + 4, _power(power), "end")]
        drawn.append(_text((left + right) / 2, _HEIGHT - 14, "skills", "middle"))
        return drawn


def svg(points: Points) -> str:
    """Log-log, each line named at its end, on white so that it can be read on a dark page too."""
    axes = _Axes(points)
    drawn = axes.draw()
    ends = []
    for colour, (operation, line) in zip(_COLOURS, points.items(), strict=True):
        path = [axes.at(size, line[size]) for size in sorted(line)]
        corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in path)
        drawn.append(f'<polyline points="{corners}" fill="none" stroke="{colour}" stroke-width="2.5"/>')
        drawn += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>' for x, y in path]
        ends.append((path[-1], f"{operation}, {amount(line[max(line)], 's')}", colour))
    drawn += _labels(ends)
    title = "Time by number of skills, both axes logarithmic"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" '
        f'font-family="system-ui, sans-serif" font-size="13" role="img" aria-label="{title}">\n'
        f'<rect width="100%" height="100%" fill="#ffffff"/>\n'
        + "\n".join([_text(_LEFT, 28, title, "start", "#24292f", 15), *drawn])
        + "\n</svg>\n"
    )


def _labels(ends: Sequence[tuple[tuple[float, float], str, str]]) -> list[str]:
    """From the top down, each pushed below the one before where they would overlap."""
    drawn, lowest = [], 0.0
    for (x, y), label, colour in sorted(ends):
        lowest = max(y, lowest + _LABEL_HEIGHT)
        drawn.append(_text(x + 12, lowest + 4, label, "start", colour))
    return drawn


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#d8dee4"/>'


def _text(x: float, y: float, text: str, anchor: str, colour: str = "#57606a", size: int = 13) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" font-size="{size}">{escape(text)}</text>'
    )


def _power(power: int) -> str:
    """10 to the power, in seconds, without the digits that `amount` gives."""
    unit = next((unit for unit in (0, -3, -6) if power >= unit), -9)
    return f"{10 ** (power - unit)} {dict(zip((0, -3, -6, -9), ('s', 'ms', 'µs', 'ns'), strict=True))[unit]}"
