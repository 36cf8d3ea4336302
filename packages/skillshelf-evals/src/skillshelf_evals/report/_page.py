"""The report as an HTML page that needs nothing else.

Its content policy lets nothing run but its own few lines of script. Plots are inline SVG, so lines and letters keep
their size on a narrow screen. Their rows are those of a table: readers who cannot see the marks have the numbers.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

from skillshelf.text import clean, count_noun, truncate
from skillshelf_evals.report._format import (
    format_cost,
    format_count,
    format_errors,
    format_interval,
    format_percent,
    format_points,
    format_rate,
    format_seconds,
    skill_label,
)
from skillshelf_evals.report._summary import ArmSummary, Group, Summary, Versus
from skillshelf_evals.report._tables import (
    COUNTED,
    link_gain,
    link_rate,
    link_trials,
    make_tables,
    summary_line,
)
from skillshelf_evals.report._trials import list_trials
from skillshelf_evals.stats import Confusion, Counts, Queries, is_right

if TYPE_CHECKING:
    from jinja2 import Environment

MAX_TEXT = 2_000
"""Characters of a prompt or a reason outside of transcripts."""
MAX_PAIRS = 60
SHADES = 8


@cache
def _make_environment() -> Environment:
    """Return the environment of all pages: everything is escaped, and hidden characters are written out."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("skillshelf_evals.report", "html"),
        autoescape=True,
        finalize=_write_out_hidden,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    environment.filters |= {
        "across": _across,
        "place": "{:.2f}".format,
        "percent": format_percent,
        "points": format_points,
        "rate": format_rate,
        "skill_label": skill_label,
        "cut": lambda text: truncate(text, MAX_TEXT),
    }
    return environment


def _write_out_hidden(value: Any) -> Any:
    """Return a text with its hidden and control characters written out, so that nothing is shown that is not there."""
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return clean(value)
    return value


def _across(share: float) -> float:
    """Return the position of a share, with room at both ends, so that marks at 0 and 1 are whole."""
    return 3 + 94 * max(0.0, min(1.0, share))


@cache
def _read_own_file(name: str) -> str:
    from markupsafe import Markup

    return Markup(files("skillshelf_evals.report").joinpath("html", name).read_text(encoding="utf-8"))


def _hash_source(text: str) -> str:
    """Return the hash that allows an inline style or script in the Content-Security-Policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def render_page(summary: Summary) -> str:
    """Return the whole page. Texts of skills and answers are shown as text."""
    style = _read_own_file("style.css")
    script = _read_own_file("page.js")
    policy = (
        f"default-src 'none'; style-src '{_hash_source(style)}'; script-src '{_hash_source(script)}'; "
        # The pictures among the artefacts. The script makes no other, and none from elsewhere would be loaded.
        "img-src 'self'; base-uri 'none'; form-action 'none'"
    )
    trials = list_trials(summary)
    page: str = (
        _make_environment()
        .get_template("page.html.jinja")
        .render(
            policy=policy,
            style=style,
            script=script,
            run=summary.run,
            repeats=count_noun(summary.run.repeats, "repeat"),
            summary_line=summary_line(summary),
            cards=_make_cards(summary.total),
            groups=[group for group in summary.skills if group.arms],
            link_rate=link_rate,
            tables=make_tables(summary, is_full=True),
            pairs=[_plot_pairs(versus) for versus in summary.total.versus],
            heat=_plot_confusion(summary.confusion) if summary.confusion else None,
            skills=[group.name for group in summary.skills if group.name],
            arms=list(summary.total.arms),
            cases=trials.cases,
            cases_left_out=trials.cases_left_out,
            transcripts_left_out=trials.transcripts_left_out,
            data=trials.data,
        )
    )
    return page


class Card(NamedTuple):
    """A number at the top of the page."""

    name: str
    value: str
    note: str
    link: str = ""


def _make_cards(total: Group) -> list[Card]:
    cards = []
    arm = total.arms.get("with")
    if arm:
        cards += _make_live_cards(arm, total.versus)
        tokens = f"{format_count(total.spent.tokens)} tokens, {format_seconds(total.spent.seconds)}"
        cards.append(Card("spent", format_cost(total.spent), tokens, link_trials(live=True)))
    if total.scripted != Counts():
        share = f"{total.scripted.passed} of {total.scripted.trials}"
        errors = format_errors(total.scripted.errors) if total.scripted.errors else "not in any rate"
        cards.append(Card("scripted cases passed", share, errors, link_trials(live=False)))
    return cards


def _make_live_cards(arm: ArmSummary, comparisons: Sequence[Versus]) -> list[Card]:
    counts = arm.counts
    link = partial(link_trials, live=True, arm="with")
    trials = f"of {count_noun(counts.trials, 'trial')}"
    cards = [
        Card("pass rate", format_percent(arm.rate.value), format_interval(arm.rate.interval), link(status=COUNTED)),
        Card("missed", str(counts.missed), trials, link(status="missed")),
    ]
    if arm.flaky:
        repeated = f"of {count_noun(arm.flaky.total, 'repeated case')}"
        cards.append(Card("flaky", str(arm.flaky.passed), repeated, link(status=COUNTED, flaky=True)))
    cards.append(Card("infrastructure errors", str(counts.errors), "not in any rate", link(status="error")))
    for versus in comparisons:
        if versus.difference:
            gain = f"{format_points(versus.difference.value)} pp"
            gain_link = link_gain(None, versus.base)
            cards.append(Card(f"gain against {versus.base}", gain, versus.difference.verdict, gain_link))
    return cards


class Dumbbell(NamedTuple):
    """A case on two arms. A line to the right is a gain."""

    case: str
    base: float
    new: float
    link: str

    @property
    def direction(self) -> str:
        if self.new == self.base:
            return "even"
        return "gain" if self.new > self.base else "loss"


class PairPlot(NamedTuple):
    """The cases that differ between two arms, by the checks that the gain is over."""

    base: str
    compared: int
    dumbbells: Sequence[Dumbbell]
    caption: str


def _plot_pairs(versus: Versus) -> PairPlot:
    all_pairs = [
        Dumbbell(
            case=pair.case,
            base=pair.base[0] / pair.base[1],
            new=pair.new[0] / pair.new[1],
            link=link_trials(case=pair.case, arm=f"with,{versus.base}", status=COUNTED),
        )
        for pair in versus.pairs
    ]
    moved = [pair for pair in all_pairs if pair.new != pair.base]
    moved.sort(key=lambda pair: pair.new - pair.base)
    caption = f"Cases that differ, {versus.base} and with, losses first"
    caption += f"; {len(all_pairs) - len(moved)} are the same on both"
    if len(moved) > MAX_PAIRS:
        caption += f"; the first {MAX_PAIRS} of {len(moved)}"
    return PairPlot(versus.base, len(all_pairs), moved[:MAX_PAIRS], caption)


class HeatCell(NamedTuple):
    number: int
    kind: str
    shade: int
    label: str
    link: str


class HeatRow(NamedTuple):
    name: str
    cells: Sequence[HeatCell]
    trials: int
    link: str


class Heat(NamedTuple):
    """Which skills were loaded for which queries: the darker, the larger the share of the row."""

    columns: Sequence[str]
    rows: Sequence[HeatRow]


def _plot_confusion(confusion: Confusion) -> Heat:
    rows = []
    for row in confusion.rows:
        total = confusion.totals[row]
        cells = [
            _plot_cell(confusion.counts.get((row, column), 0), total, is_right(row, column), _link_queries(row, column))
            for column in confusion.columns
        ]
        rows.append(HeatRow(str(row), cells, total, _link_queries(row)))
    return Heat([column or "(none)" for column in confusion.columns], rows)


def _link_queries(row: Queries, loaded: str | None = None) -> str:
    return link_trials(skill=row.skill, trigger=row.should, loaded=loaded, live=True, arm="with", status=COUNTED)


def _plot_cell(number: int, total: int, right: bool | None, link: str) -> HeatCell:
    """Plot a cell of the matrix. A load that the case says nothing about has neither color, and is never dark."""
    shade = round(SHADES * number / total) if total else 0
    if right is None:
        return HeatCell(number, "open", 0, f"{number} of {total}", link)
    judgement = ", as it should be" if right else ", as it should not be"
    label = f"{number} of {total}{judgement if number else ''}"
    return HeatCell(number, "right" if right else "wrong", shade, label, link)
