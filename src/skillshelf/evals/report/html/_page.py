"""The page: its sections in order, and a policy that lets nothing run but its own few lines of script."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from skillshelf.evals.report._format import (
    NO_VALUE,
    format_change,
    format_cost,
    format_count,
    format_gain,
    format_interval,
    format_p,
    format_percent,
    format_points,
    format_rate,
    format_seconds,
    skill_label,
)
from skillshelf.evals.report._summary import Group, Summary, Versus
from skillshelf.evals.report._tables import labelled_groups, summary_line
from skillshelf.evals.report.html._charts import (
    CostPoint,
    Dumbbell,
    plot_confusion,
    plot_costs,
    plot_dumbbells,
    plot_rates,
)
from skillshelf.evals.report.html._elements import Html, join, table, tag
from skillshelf.evals.report.html._trials import render_cases

MAX_PAIRS = 60
MAX_FAULT_CASES = 10
_EXPLANATION = (
    "Rates are over trials. Their intervals, at 95%, are for cases like these: each case is one observation, however "
    "often it was repeated. Interval ends are rounded outwards. A gain is the mean of the cases' own differences. An "
    "exact test on the cases settles it, corrected for the number of rows, and its interval inverts that test. "
    "Against trials without the skill, checks of whether it is loaded are left out. Infrastructure errors are neither "
    "passes nor misses and are not in any rate. A trial that "
    "loads two skills counts in both columns of the matrix. If a skill should not be loaded, a load of another is "
    "neither right nor wrong."
)


def render_page(summary: Summary) -> str:
    """Return the whole page. Texts of skills and answers are shown as text."""
    style = _read_own_file("style.css")
    script = _read_own_file("fold.js")
    policy = (
        f"default-src 'none'; style-src '{_hash_source(style)}'; script-src '{_hash_source(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    run = summary.run
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"Evals {run.id}"),
        tag("style", style),
    )
    facts = f"{run.model} · {run.started} · {run.repeats} repeats"
    if run.baseline:
        facts += f" · against {run.baseline}"
    header = tag(
        "header", tag("h1", f"Evals {run.id}"), tag("p", facts, class_="quiet"), tag("p", summary_line(summary))
    )
    sections = list(_render_sections(summary))
    links = [tag("a", title, href=f"#{_anchor(title)}") for title, _ in sections]
    main = tag(
        "main",
        _render_cards(summary.total),
        *(tag("section", tag("h2", title, id=_anchor(title)), content) for title, content in sections),
        tag("footer", tag("p", _EXPLANATION, class_="quiet")),
    )
    body = tag("body", header, tag("nav", *links, aria_label="Sections"), main, tag("script", script))
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


@cache
def _read_own_file(name: str) -> Html:
    return Html(files("skillshelf.evals.report.html").joinpath(name).read_text(encoding="utf-8"))


def _hash_source(text: str) -> str:
    """Return the hash that allows an inline style or script in the Content-Security-Policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _anchor(title: str) -> str:
    return title.lower().replace(" ", "-")


def _render_sections(summary: Summary) -> Iterator[tuple[str, Html]]:
    """Yield the title and content of each section that has something to show."""
    rates = [
        (skill_label(group.name), arm, numbers.rate) for group in summary.skills for arm, numbers in group.arms.items()
    ]
    if rates:
        yield "Pass rates", join([plot_rates(rates), _tries_table(summary)])
    if summary.total.versus:
        yield "Gain", _render_gain(summary)
        costs = _plot_costs_of(summary)
        if costs:
            yield "Cost against gain", costs
    if summary.total.arms:
        yield "Cost", _cost_table(summary)
    if summary.confusion:
        yield "Triggers", join([_trigger_table(summary), plot_confusion(summary.confusion)])
    if summary.coverage:
        yield "Coverage", _coverage_table(summary)
    if summary.faults:
        yield "Infrastructure errors", _fault_table(summary)
    yield "Cases", join([_render_buttons(), render_cases(summary.total.cases)])


def _render_cards(total: Group) -> Html:
    arm = total.arms.get("with")
    if arm is None:
        return tag("p", "Nothing was tried.")
    cards = [
        ("pass rate", format_percent(arm.rate.value), format_interval(arm.rate.interval)),
        ("missed", str(arm.counts.missed), f"of {arm.counts.trials} trials"),
        ("infrastructure errors", str(arm.counts.errors), "not in any rate"),
    ]
    for versus in total.versus:
        if versus.difference:
            gain = f"{format_points(versus.difference.value)} pp"
            cards.append((f"gain against {versus.base}", gain, versus.difference.verdict))

    tokens = f"{format_count(arm.spent.tokens)} tokens, {format_seconds(arm.spent.seconds)}"
    cards.append(("spent", format_cost(arm.spent), tokens))
    items = [
        tag("li", tag("span", name, class_="quiet"), tag("strong", value), tag("span", note, class_="quiet"))
        for name, value, note in cards
    ]
    return tag("ul", *items, class_="cards")


def _render_buttons() -> Html:
    """Return the buttons for the list of cases. The script that they need shows them."""
    return tag(
        "p",
        tag("button", "Unfold all", type="button", data_fold="open"),
        tag("button", "Fold all", type="button", data_fold="close"),
        tag("button", "Only misses", type="button", data_fold="missed", aria_pressed="false"),
        class_="buttons",
        hidden=True,
    )


def _tries_table(summary: Summary) -> Html:
    """Return pass@k and pass^k for each arm; nothing if no case was repeated."""
    rows = []
    for group in summary.skills:
        for arm, numbers in group.arms.items():
            if numbers.tries:
                at = " · ".join(f"{tries.k}: {format_percent(tries.at)}" for tries in numbers.tries)
                all_of = " · ".join(f"{tries.k}: {format_percent(tries.all)}" for tries in numbers.tries)
                rows.append((skill_label(group.name), arm, at, all_of))

    if not rows:
        return Html("")
    return table(("skill", "arm", "pass@k: one of k passes", "pass^k: all k pass"), rows, "Several tries")


def _render_gain(summary: Summary) -> Html:
    rows = []
    for label, group in labelled_groups(summary):
        for versus in group.versus:
            found = versus.difference
            gain = (NO_VALUE, NO_VALUE, NO_VALUE, NO_VALUE)
            if found:
                gain = (format_gain(found), found.verdict, format_p(found.corrected_p), found.method)
            cases = versus.account or str(len(versus.pairs))
            needed = versus.settle.text if versus.settle else ""
            rows.append((label, versus.base, *gain, cases, needed))

    headings = ("skill", "against", "gain [95%]", "verdict", "p", "test", "cases", "what would settle it")
    plots = [_plot_pairs(versus) for versus in summary.total.versus]
    return join([table(headings, rows, "Paired differences"), *plots])


def _plot_pairs(versus: Versus) -> Html:
    """Plot the cases that differ between the arms, by the checks that the gain is over."""
    dumbbells = [
        Dumbbell(pair.case, pair.base[0] / pair.base[1], pair.new[0] / pair.new[1], versus.base)
        for pair in versus.pairs
    ]
    moved = [dumbbell for dumbbell in dumbbells if dumbbell.new != dumbbell.base]
    if not moved:
        return tag("p", f"Of {len(dumbbells)} cases, none differs between {versus.base} and with.", class_="quiet")
    moved.sort(key=lambda dumbbell: dumbbell.new - dumbbell.base)
    caption = f"Cases that differ, {versus.base} and with, losses first"
    caption += f"; {len(dumbbells) - len(moved)} are the same on both"
    if len(moved) > MAX_PAIRS:
        caption += f"; the first {MAX_PAIRS} of {len(moved)}"
    return plot_dumbbells(moved[:MAX_PAIRS], caption)


def _plot_costs_of(summary: Summary) -> Html | None:
    """Plot cost against gain: in money if every price is known, else in tokens."""
    comparisons = [(group.name, versus) for group in summary.skills for versus in group.versus[:1] if versus.difference]
    costs = [versus.cost for _, versus in comparisons]
    # Prices without any difference, such as those of a scripted model, say nothing about cost.
    is_priced = None not in costs and any(cost and cost.value for cost in costs)
    points = []
    for name, versus in comparisons:
        cost = versus.cost if is_priced else versus.tokens
        if cost and versus.tokens and versus.difference:
            found = versus.difference
            points.append(CostPoint(skill_label(name), cost.value, found.value, found.interval))

    if not points:
        return None
    return plot_costs(points, "$" if is_priced else "tokens")


def _cost_table(summary: Summary) -> Html:
    rows = []
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
            rows.append(
                (
                    label,
                    arm,
                    format_count(spent.input),
                    format_count(spent.output),
                    format_count(spent.cached),
                    format_seconds(spent.seconds),
                    format_cost(spent),
                    *changes,
                )
            )

    headings = (
        "skill",
        "arm",
        "input",
        "output",
        "cached",
        "time",
        "cost",
        "with: tokens",
        "with: time",
        "with: cost",
    )
    return table(headings, rows, "Usage, and how much more a trial with the skill takes")


def _trigger_table(summary: Summary) -> Html:
    rows = []
    for group in summary.skills:
        score = group.trigger
        if score:
            f1 = f"{format_percent(score.f1)} {format_interval(score.f1_interval)}"
            rows.append((skill_label(group.name), format_rate(score.precision), format_rate(score.recall), f1))
    return table(("skill", "precision [95%]", "recall [95%]", "F1 [95%]"), rows, "Precision and recall")


def _coverage_table(summary: Summary) -> Html:
    rows = []
    for coverage in summary.coverage:
        references = f"{coverage.references - len(coverage.unloaded)} of {coverage.references}"
        sections = f"{coverage.sections - len(coverage.unread)} of {coverage.sections}"
        gaps: Html | str = "nothing"
        if coverage.gaps:
            gaps = tag("ul", *(tag("li", gap) for gap in coverage.gaps))
        rows.append((coverage.skill, references, sections, gaps))
    return table(("skill", "references", "sections", "never loaded"), rows, "Parts of each skill that the cases loaded")


def _fault_table(summary: Summary) -> Html:
    rows = [(fault.message, str(fault.times), ", ".join(fault.cases[:MAX_FAULT_CASES])) for fault in summary.faults]
    return table(("what", "trials", "cases"), rows, "Trials that could not be made")
