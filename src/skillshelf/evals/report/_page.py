"""The report as an HTML page that needs nothing else.

Its content policy lets nothing run but its own few lines of script.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

from skillshelf.evals.report._format import (
    format_change,
    format_cost,
    format_count,
    format_errors,
    format_interval,
    format_percent,
    format_points,
    format_rate,
    format_seconds,
)
from skillshelf.evals.report._plots import plot_confusion, plot_costs, plot_pairs, rate_rows
from skillshelf.evals.report._summary import ArmSummary, Group, Summary, Versus
from skillshelf.evals.report._tables import (
    COUNTED,
    labelled_groups,
    link_gain,
    link_rate,
    link_trials,
    page_tables,
    skill_of,
    summary_line,
)
from skillshelf.evals.report._trials import list_trials
from skillshelf.evals.stats import Counts
from skillshelf.tables import Cell, Column, Table
from skillshelf.text import clean, count_noun, truncate

if TYPE_CHECKING:
    from jinja2 import Environment

MAX_TEXT = 2_000
"""Characters of a prompt or a reason outside of transcripts."""
MAX_FLAKY = 60
_EXPLANATION = (
    "Rates are over trials. Their intervals, at 95%, are for cases like these: each case is one observation, however "
    "often it was repeated. Interval ends are rounded outwards. A gain is the mean of the cases' own differences. An "
    "exact test on the cases settles it, corrected for the number of rows, and its interval inverts that test. "
    "Against trials without the skill, checks of whether it is loaded are left out. A scripted case "
    "is tried once, with the skill, and is in no rate and no gain. Infrastructure errors are neither "
    "passes nor misses and are not in any rate. A trial that "
    "loads two skills counts in both columns of the matrix. If a skill should not be loaded, a load of another is "
    "neither right nor wrong."
)


@cache
def make_environment() -> Environment:
    """Return the environment of all pages: everything is escaped, and hidden characters are written out."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("skillshelf.evals.report", "html"),
        autoescape=True,
        finalize=_write_out_hidden,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "across": _across,
        "place": "{:.2f}".format,
        "percent": format_percent,
        "points": format_points,
        "anchor": _anchor,
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


def _anchor(title: str) -> str:
    return title.lower().replace(" ", "-")


def find_style() -> str:
    return _read_own_file("style.css")


def find_script() -> str:
    return _read_own_file("page.js")


@cache
def _read_own_file(name: str) -> str:
    from markupsafe import Markup

    return Markup(files("skillshelf.evals.report").joinpath("html", name).read_text(encoding="utf-8"))


def embed_json(value: Any) -> str:
    """Return JSON that cannot end the element that holds it, whatever its texts are."""
    from markupsafe import Markup

    text = json.dumps(value, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def hash_source(text: str) -> str:
    """Return the hash that allows an inline style or script in the Content-Security-Policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def render_page(summary: Summary) -> str:
    """Return the whole page. Texts of skills and answers are shown as text."""
    style = find_style()
    script = find_script()
    policy = (
        f"default-src 'none'; style-src '{hash_source(style)}'; script-src '{hash_source(script)}'; "
        # The pictures among the artefacts. The script makes no other, and none from elsewhere would be loaded.
        "img-src 'self'; base-uri 'none'; form-action 'none'"
    )
    trials = list_trials(summary)
    page: str = (
        make_environment()
        .get_template("page.html.jinja")
        .render(
            policy=policy,
            style=style,
            script=script,
            run=summary.run,
            repeats=count_noun(summary.run.repeats, "repeat"),
            summary_line=summary_line(summary),
            cards=_make_cards(summary.total),
            rates=rate_rows(summary),
            flaky=_flaky_table(summary),
            tables=page_tables(summary),
            pairs=[plot_pairs(versus) for versus in summary.total.versus],
            costs_and_gains=plot_costs(summary),
            costs=_cost_table(summary),
            heat=plot_confusion(summary.confusion) if summary.confusion else None,
            skills=[group.name for group in summary.skills if group.name],
            arms=list(summary.total.arms),
            cases=trials.cases,
            cases_left_out=trials.cases_left_out,
            transcripts_left_out=trials.transcripts_left_out,
            data=embed_json(trials.data),
            explanation=_EXPLANATION,
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
    rate_link = link_rate(None, "with") if counts.trials else ""
    missed_link = link_trials(live=True, arms=("with",), statuses=("missed",)) if counts.missed else ""
    errors_link = link_trials(live=True, arms=("with",), statuses=("error",)) if counts.errors else ""
    cards = [
        Card("pass rate", format_percent(arm.rate.value), format_interval(arm.rate.interval), rate_link),
        Card("missed", str(counts.missed), f"of {count_noun(counts.trials, 'trial')}", missed_link),
    ]
    if arm.flaky:
        flaky_link = link_trials(live=True, arms=("with",), statuses=COUNTED, is_flaky=True) if arm.flaky.passed else ""
        cards.append(
            Card("flaky", str(arm.flaky.passed), f"of {count_noun(arm.flaky.total, 'repeated case')}", flaky_link)
        )
    cards.append(Card("infrastructure errors", str(counts.errors), "not in any rate", errors_link))
    for versus in comparisons:
        if versus.difference:
            gain = f"{format_points(versus.difference.value)} pp"
            link = link_gain(None, versus.base)
            cards.append(Card(f"gain against {versus.base}", gain, versus.difference.verdict, link))
    return cards


def _flaky_table(summary: Summary) -> Table:
    """Return the cases that passed sometimes and missed sometimes, the least reliable first."""
    flaky = [
        (case.info, arm, trials.counts, trials.rate)
        for case in summary.total.cases
        for arm, trials in case.arms.items()
        if trials.counts.passed and trials.counts.missed
    ]
    flaky.sort(key=lambda found: (found[1] != "with", found[2].passed / found[2].trials))
    rows = []
    for info, arm, counts, rate in flaky[:MAX_FLAKY]:
        link = link_trials(case=info.id, arms=(arm,), statuses=COUNTED)
        passed = Cell(f"{counts.passed} of {counts.trials}", link=link)
        rows.append((info.label, arm, passed, format_rate(rate)))

    notes = []
    if len(flaky) > MAX_FLAKY:
        notes.append(f"the first {MAX_FLAKY} of {len(flaky)}")
    titles = ("case", "arm", "passed", "rate of this case [95%]")
    return Table("Flaky cases: they passed sometimes", [Column(title) for title in titles], rows, notes)


def _cost_table(summary: Summary) -> Table:
    rows: list[Sequence[str | Cell]] = []
    for label, group in labelled_groups(summary):
        versus_by_arm = {versus.base: versus for versus in group.versus}
        for arm, numbers in group.arms.items():
            changes = ("", "", "")
            versus = versus_by_arm.get(arm)
            if versus:
                changes = (
                    format_change(versus.tokens),
                    format_change(versus.seconds, "s"),
                    format_change(versus.cost, "$"),
                )
            spent = numbers.spent
            amounts = [format_count(count) for count in (spent.input, spent.output, spent.cached)]
            amounts += [format_seconds(spent.seconds), format_cost(spent)]
            link = link_trials(skill=skill_of(group, summary), live=True, arms=(arm,))
            rows.append((label, Cell(arm, link=link), *amounts, *changes))

    titles = ("skill", "arm", "input", "output", "cached", "time", "cost", "with: tokens", "with: time", "with: cost")
    return Table("Usage, and how much more a trial with the skill takes", [Column(title) for title in titles], rows)
