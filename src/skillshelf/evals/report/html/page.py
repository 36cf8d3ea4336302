"""The page: its sections in order, and the policy that lets nothing run but its own few lines."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from skillshelf.evals.report.html.charts import Dumbbell, Point, dumbbells, heat, rates, scatter
from skillshelf.evals.report.html.elements import Html, join, table, tag
from skillshelf.evals.report.html.trials import trials
from skillshelf.evals.report.summary import Group, Summary
from skillshelf.evals.report.terminal import headline
from skillshelf.evals.report.words import amount, chance, change, cost, ends, gain, name_of, percent, rate, seconds

_PAIRS = 60
_HOW = (
    "Rates are over trials; intervals are Wilson's at 95%, made wider where repeats of a case agree with each other. "
    "A gain is the mean of the cases' own differences, and settled only where its interval leaves out 0 and an exact "
    "test on the cases agrees. Infrastructure errors are neither passes nor misses and are in no rate. A trial that "
    "loads two skills counts in both columns of the matrix."
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
        yield "Pass rates", join([rates(rows), _tries(summary)])
    if summary.total.versus:
        yield "Gain", _gain(summary)
        points = _points(summary)
        if points:
            yield "Cost against gain", scatter(*points)
    if summary.total.arms:
        yield "Cost", _cost(summary)
    if summary.confusion:
        yield "Triggers", join([_triggers(summary), heat(summary.confusion)])
    if summary.coverage:
        yield "Coverage", _coverage(summary)
    if summary.faults:
        yield "Infrastructure errors", _faults(summary)
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


def _tries(summary: Summary) -> Html:
    rows = [
        (name_of(group.name), arm, str(one.k), percent(one.at), percent(one.all), str(one.cases))
        for group in summary.skills
        for arm, given in group.arms.items()
        for one in given.tries
    ]
    titles = ("skill", "arm", "k", "pass@k: one of k passes", "pass^k: all k pass", "cases")
    return table(titles, rows, "Several tries") if rows else Html("")


def _gain(summary: Summary) -> Html:
    rows, parts = [], []
    for group in (*summary.skills, summary.total):
        name = "all" if group is summary.total else name_of(group.name)
        for one in group.versus:
            found = one.difference
            if found:
                settled = one.settle.text if one.settle else ""
                rows.append((name, one.base, gain(found), found.verdict, chance(found.p), found.method, settled))
    titles = ("skill", "against", "gain [95%]", "verdict", "p", "test", "what would settle it")
    parts.append(table(titles, rows, "Paired differences"))
    for arm in (arm for arm in summary.total.arms if arm != "with"):
        given = [
            Dumbbell(case.info.id, old, new, arm)
            for case in summary.total.cases
            if arm in case.arms
            and (old := case.arms[arm].rate.value) is not None
            and (new := case.main.rate.value) is not None
        ]
        moved = sorted((one for one in given if one.new != one.base), key=lambda one: one.new - one.base)
        same = f"; {len(given) - len(moved)} are the same on both"
        more = f"; the first {_PAIRS} of {len(moved)}" if len(moved) > _PAIRS else ""
        parts.append(dumbbells(moved[:_PAIRS], f"Cases that differ, {arm} and with, losses first{same}{more}"))
    return join(parts)


def _points(summary: Summary) -> tuple[list[Point], str] | None:
    """In money where every price is known, else in tokens."""
    pairs = [(group.name, one) for group in summary.skills for one in group.versus[:1] if one.difference and one.tokens]
    # A price list that tells no difference, such as a scripted model's, tells nothing of cost.
    priced = all(one.cost is not None for _, one in pairs) and any(one.cost and one.cost.value for _, one in pairs)
    points = []
    for name, one in pairs:
        spent = one.cost if priced else one.tokens
        if spent and one.difference:
            points.append(Point(name_of(name), spent.value, one.difference.value, one.difference.interval))
    return (points, "$" if priced else "tokens") if points else None


def _cost(summary: Summary) -> Html:
    rows = []
    for group in (*summary.skills, summary.total):
        name = "all" if group is summary.total else name_of(group.name)
        compared = {one.base: one for one in group.versus}
        for arm, one in group.arms.items():
            less = compared.get(arm)
            rows.append(
                (
                    name,
                    arm,
                    amount(one.spent.input),
                    amount(one.spent.output),
                    amount(one.spent.cached),
                    seconds(one.spent.seconds),
                    cost(one.spent),
                    change(less.tokens) if less else "",
                    change(less.seconds, "s") if less else "",
                    change(less.cost, "$") if less else "",
                )
            )
    titles = ("skill", "arm", "input", "output", "cached", "time", "cost", "with: tokens", "with: time", "with: cost")
    return table(titles, rows, "What was spent, and what a trial with the skill takes more")


def _triggers(summary: Summary) -> Html:
    rows = []
    for group in summary.skills:
        one = group.trigger
        if one:
            f1 = f"{percent(one.f1)} {ends(one.f1_interval)}"
            rows.append((name_of(group.name), rate(one.precision), rate(one.recall), f1))
    return table(("skill", "precision [95%]", "recall [95%]", "F1 [95%]"), rows, "Precision and recall")


def _coverage(summary: Summary) -> Html:
    rows = []
    for one in summary.coverage:
        listed = tag("ul", *(tag("li", gap) for gap in one.gaps)) if one.gaps else "nothing"
        reached = f"{one.references - len(one.unloaded)} of {one.references}"
        rows.append((one.skill, reached, f"{one.sections - len(one.unread)} of {one.sections}", listed))
    return table(("skill", "references", "sections", "never loaded"), rows, "What the cases loaded of each skill")


def _faults(summary: Summary) -> Html:
    rows = [(one.message, str(one.times), ", ".join(one.cases[:10])) for one in summary.faults]
    return table(("what", "trials", "cases"), rows, "Trials that were none")


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
