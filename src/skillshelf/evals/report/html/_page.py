"""The page: its sections in order, and the policy that lets nothing run but its own few lines."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from skillshelf.evals.report._terminal import headline
from skillshelf.evals.report._tree import Group, Summary
from skillshelf.evals.report._words import amount, cost, ends, gain, name_of, percent, seconds
from skillshelf.evals.report.html._charts import heat, rates, scatter
from skillshelf.evals.report.html._elements import Html, join, tag
from skillshelf.evals.report.html._tables import (
    cost_points,
    cost_table,
    coverage_table,
    fault_table,
    gain_section,
    tries_table,
    trigger_table,
)
from skillshelf.evals.report.html._trials import trials

_HOW = (
    "Rates are over trials; intervals are Wilson's at 95%, made wider where repeats of a case agree with each "
    "other, and rounded outwards. A gain is the mean of the cases' own differences, and settled only where its "
    "interval leaves out 0 and an exact test on the cases agrees; against trials without the skill, checks of "
    "whether it is loaded are left out. Infrastructure errors are neither passes nor misses and are in no rate. A "
    "trial that loads two skills counts in both columns of the matrix; where a skill should not be loaded, a load "
    "of another is neither right nor wrong."
)


def page(summary: Summary) -> str:
    """The whole page. Whatever a skill or an answer holds is shown as text."""
    style, script = _own("style.css"), _own("fold.js")
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
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
    facts = f"{run.model} · {run.started} · {run.repeats} repeats" + (
        f" · against {run.baseline}" if run.baseline else ""
    )
    header = tag("header", tag("h1", f"Evals {run.id}"), tag("p", facts, class_="quiet"), tag("p", headline(summary)))
    sections = list(_sections(summary))
    links = tag("nav", *(tag("a", title, href=f"#{_anchor(title)}") for title, _ in sections), aria_label="Sections")
    body = [tag("section", tag("h2", title, id=_anchor(title)), inner) for title, inner in sections]
    main = tag("main", _cards(summary.total), *body, tag("footer", tag("p", _HOW, class_="quiet")))
    document = tag("html", head, tag("body", header, links, main, tag("script", script)), lang="en")
    return f"<!doctype html>\n{document}\n"


@cache
def _own(name: str) -> Html:
    return Html(files("skillshelf.evals.report.html").joinpath(name).read_text(encoding="utf-8"))


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _anchor(title: str) -> str:
    return title.lower().replace(" ", "-")


def _sections(summary: Summary) -> Iterator[tuple[str, Html]]:
    rows = [(name_of(group.name), arm, one.rate) for group in summary.skills for arm, one in group.arms.items()]
    if rows:
        yield "Pass rates", join([rates(rows), tries_table(summary)])
    if summary.total.versus:
        yield "Gain", gain_section(summary)
        points = cost_points(summary)
        if points:
            yield "Cost against gain", scatter(*points)
    if summary.total.arms:
        yield "Cost", cost_table(summary)
    if summary.confusion:
        yield "Triggers", join([trigger_table(summary), heat(summary.confusion)])
    if summary.coverage:
        yield "Coverage", coverage_table(summary)
    if summary.faults:
        yield "Infrastructure errors", fault_table(summary)
    yield "Cases", join([_buttons(), trials(summary.total.cases)])


def _cards(total: Group) -> Html:
    arm = total.arms.get("with")
    if arm is None:
        return tag("p", "Nothing was tried.")
    cards = [
        ("pass rate", percent(arm.rate.value), ends(arm.rate.interval)),
        ("missed", str(arm.counts.missed), f"of {arm.counts.trials} trials"),
        ("infrastructure errors", str(arm.counts.errors), "in no rate"),
    ]
    for one in total.versus:
        if one.difference:
            cards.append((f"gain against {one.base}", gain(one.difference).partition(" [")[0], one.difference.verdict))
    cards.append(("spent", cost(arm.spent), f"{amount(arm.spent.tokens)} tokens, {seconds(arm.spent.seconds)}"))
    shown = [
        tag("li", tag("span", name, class_="quiet"), tag("strong", value), tag("span", note, class_="quiet"))
        for name, value, note in cards
    ]
    return tag("ul", *shown, class_="cards")


def _buttons() -> Html:
    """Shown by the script that they need."""
    return tag(
        "p",
        tag("button", "Unfold all", type="button", data_fold="open"),
        tag("button", "Fold all", type="button", data_fold="close"),
        tag("button", "Only what missed", type="button", data_fold="missed", aria_pressed="false"),
        class_="buttons",
        hidden=True,
    )
