"""The picture of docs/concepts/search.md: quality beside the baselines, and what a threshold holds back.

One SVG for light and dark pages: its colours follow the reader's setting.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from benchmarks.search.collections import Collection, Query
from benchmarks.search.measures import Answer, Quality
from benchmarks.search.presence import Presence
from benchmarks.search.tables import KINDS, Measured, silent_share

_WIDTH = 960
_HEIGHT = 400
_TOP = 78
_BOTTOM = 340
_BARS_LEFT = 50
_BARS_RIGHT = 520
_LINES_LEFT = 600
_LINES_RIGHT = 880
_THRESHOLDS = [at / 50 for at in range(51)]

# Colours that people with the common kinds of colour blindness tell apart.
_STYLE = """
  .page { fill: #ffffff } .text { fill: #24292f } .quiet { fill: #57606a } .grid { stroke: #d8dee4 }
  .m0 { fill: #b9c0c8 } .m1 { fill: #7d8590 } .m2 { fill: #e69f00 } .m3 { fill: #0072b2 }
  .l0 { stroke: #0072b2 } .l1 { stroke: #d55e00 } .l2 { stroke: #57606a } .t0 { fill: #0072b2 } .t1 { fill: #c04f00 }
  polyline { fill: none; stroke-width: 2 }
  @media (prefers-color-scheme: dark) {
    .page { fill: #1e2129 } .text { fill: #e6edf3 } .quiet { fill: #9ea7b3 } .grid { stroke: #3a414c }
    .m0 { fill: #4b535e } .m1 { fill: #848d97 } .m3 { fill: #56b4e9 }
    .l0 { stroke: #56b4e9 } .l1 { stroke: #f0883e } .l2 { stroke: #9ea7b3 } .t0 { fill: #56b4e9 } .t1 { fill: #f0883e }
  }
"""
_DASHES = ("2 3", "6 4", "10 3 2 3", "")


@dataclass(frozen=True)
class _Panel:
    left: float
    right: float

    def x(self, share: float) -> float:
        return self.left + share * (self.right - self.left)

    def y(self, percent: float) -> float:
        return _BOTTOM - percent / 100 * (_BOTTOM - _TOP)

    def draw_grid(self) -> list[str]:
        drawn: list[str] = []
        for percent in (0, 25, 50, 75, 100):
            y = self.y(percent)
            drawn.append(f'<line class="grid" x1="{self.left:.1f}" y1="{y:.1f}" x2="{self.right:.1f}" y2="{y:.1f}"/>')
            drawn.append(_text(self.left - 8, y + 4, f"{percent}", "quiet", "end"))
        return drawn


def draw(collection: Collection, methods: Sequence[Measured]) -> str:
    """Return the picture as SVG."""
    drawn = _draw_bars(collection, methods)
    ours = [method for method in methods if method.findings is not None]
    if ours and ours[-1].findings is not None:
        drawn += _draw_lines(ours[-1].title, ours[-1].findings.by_size, ours[-1].findings.threshold)
    label = "Left: how often the right skill comes first, by method. Right: queries without an answer, by threshold."
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" '
        f'font-family="system-ui, sans-serif" font-size="12" role="img" aria-label="{label}">\n'
        f"<style>{_STYLE}</style>\n"
        '<rect class="page" width="100%" height="100%"/>\n' + "\n".join(drawn) + "\n</svg>\n"
    )


def _draw_bars(collection: Collection, methods: Sequence[Measured]) -> list[str]:
    panel = _Panel(_BARS_LEFT, _BARS_RIGHT)
    drawn = [_text(_BARS_LEFT, 28, "The right skill comes first (hit@1, %)", "text", size=15), *panel.draw_grid()]
    groups = _choose_groups(collection, methods)
    slot = (_BARS_RIGHT - _BARS_LEFT) / max(1, len(groups))
    bar = 0.8 * slot / max(1, len(methods))
    for at, (title, answers_of) in enumerate(groups):
        left = _BARS_LEFT + at * slot + 0.1 * slot
        for number, method in enumerate(methods):
            rate = Quality(answers_of(method)).hit_rate
            y = panel.y(rate)
            drawn.append(
                f'<rect class="m{number % 4}" x="{left + number * bar:.1f}" y="{y:.1f}" width="{bar - 1:.1f}" '
                f'height="{_BOTTOM - y:.1f}"><title>{escape(f"{method.title}, {title}: {rate:.1f}")}</title></rect>'
            )
            if number == len(methods) - 1:
                drawn.append(_text(left + (number + 0.5) * bar, y - 4, f"{rate:.0f}", "text", "middle"))
        for line, words in enumerate(title.split(", ")):
            drawn.append(_text(left + 0.4 * slot, _BOTTOM + 18 + 14 * line, words, "quiet", "middle"))
    for number, method in enumerate(methods):
        x = _BARS_LEFT + 200 * (number // 2)
        y = 50 + 16 * (number % 2)
        drawn.append(f'<rect class="m{number % 4}" x="{x}" y="{y - 9}" width="10" height="10"/>')
        drawn.append(_text(x + 14, y, method.title, "text", size=11))
    return drawn


def _choose_groups(
    collection: Collection, methods: Sequence[Measured]
) -> list[tuple[str, Callable[[Measured], list[Answer]]]]:
    """Return the kinds of queries that the data has, and how to find a method's answers to them."""
    tests: dict[str, Callable[[Query], bool]] = {"all": lambda query: True}
    for kind, title in KINDS.items():
        tests[title] = lambda query, kind=kind: query.kind == kind
    tests["Chinese, Japanese"] = lambda query: query.is_cjk
    groups: list[tuple[str, Callable[[Measured], list[Answer]]]] = []
    for title, test in tests.items():
        chosen = [at for at, query in enumerate(collection.queries) if test(query)]
        if chosen:
            groups.append((title, lambda method, chosen=chosen: [method.whole[at] for at in chosen]))
    if all(method.metatool for method in methods):
        groups.append(("MetaTool", lambda method: method.metatool))
    return groups


def _draw_lines(title: str, by_size: dict[int, Presence], threshold: float) -> list[str]:
    panel = _Panel(_LINES_LEFT, _LINES_RIGHT)
    drawn = [
        _text(_LINES_LEFT, 28, "Queries without an answer, by threshold (%)", "text", size=15),
        _text(_LINES_LEFT, 46, "the right skill is missing: higher is better", "t0", size=11),
        _text(_LINES_LEFT, 60, "it is there: lower is better", "t1", size=11),
        *panel.draw_grid(),
    ]
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        drawn.append(_text(panel.x(share), _BOTTOM + 18, f"{share:g}", "quiet", "middle"))
    x = panel.x(threshold)
    drawn.append(f'<line class="grid" stroke-width="2" x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{_BOTTOM}"/>')
    drawn.append(_text(x, _BOTTOM + 34, f"as shipped: {threshold:g}", "quiet", "middle"))
    sizes = sorted(by_size)
    for number, size in enumerate(sizes):
        dash = _DASHES[number - len(sizes)]
        for kind, answers in enumerate((by_size[size].absent, by_size[size].present)):
            points = " ".join(f"{panel.x(at):.1f},{panel.y(100 * silent_share(answers, at)):.1f}" for at in _THRESHOLDS)
            drawn.append(f'<polyline class="l{kind}" stroke-dasharray="{dash}" points="{points}"/>')
        y = _TOP + 30 + 16 * number
        drawn.append(
            f'<polyline class="l2" stroke-dasharray="{dash}" '
            f'points="{_LINES_RIGHT + 6},{y - 4} {_LINES_RIGHT + 30},{y - 4}"/>'
        )
        drawn.append(_text(_LINES_RIGHT + 34, y, f"{size:,}", "quiet", size=11))
    drawn.append(_text(_LINES_RIGHT + 34, _TOP + 14, "skills", "quiet", size=11))
    drawn.append(_text(_LINES_RIGHT, _HEIGHT - 10, title, "quiet", "end", 11))
    return drawn


def _text(x: float, y: float, text: str, style: str, anchor: str = "start", size: int = 12) -> str:
    return (
        f'<text class="{style}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{escape(text)}</text>'
    )
