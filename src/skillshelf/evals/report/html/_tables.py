"""The sections of the page that are tables, and the rows of its plots."""

from __future__ import annotations

from skillshelf.evals.report._tree import Group, Summary
from skillshelf.evals.report._versus import Versus
from skillshelf.evals.report._words import (
    NOTHING,
    amount,
    chance,
    change,
    cost,
    ends,
    gain,
    name_of,
    percent,
    rate,
    seconds,
)
from skillshelf.evals.report.html._charts import Dumbbell, Point, dumbbells
from skillshelf.evals.report.html._elements import Html, join, table, tag

_PAIRS = 60


def _groups(summary: Summary) -> list[tuple[str, Group]]:
    """Each skill, and all of them where there are several."""
    found = [(name_of(group.name), group) for group in summary.skills]
    return [*found, ("all", summary.total)] if len(found) > 1 else found


def tries_table(summary: Summary) -> Html:
    """A row for each arm: of several numbers of tries, what they come to."""
    arms = [(name_of(group.name), arm, one) for group in summary.skills for arm, one in group.arms.items() if one.tries]
    rows = [
        (
            skill,
            arm,
            " · ".join(f"{one.k}: {percent(one.at)}" for one in given.tries),
            " · ".join(f"{one.k}: {percent(one.all)}" for one in given.tries),
        )
        for skill, arm, given in arms
    ]
    titles = ("skill", "arm", "pass@k: one of k passes", "pass^k: all k pass")
    return table(titles, rows, "Several tries") if rows else Html("")


def gain_section(summary: Summary) -> Html:
    rows = []
    for name, group in _groups(summary):
        for one in group.versus:
            found = one.difference
            said = (gain(found), found.verdict, chance(found.p), found.method) if found else (NOTHING,) * 4
            cases = one.account or str(len(one.pairs))
            rows.append((name, one.base, *said, cases, one.settle.text if one.settle else ""))
    titles = ("skill", "against", "gain [95%]", "verdict", "p", "test", "cases", "what would settle it")
    return join([table(titles, rows, "Paired differences"), *map(_pairs, summary.total.versus)])


def _pairs(against: Versus) -> Html:
    """What each case does on both sides, by the checks that the gain is over."""
    given = [
        Dumbbell(one.case, one.base[0] / one.base[1], one.new[0] / one.new[1], against.base) for one in against.pairs
    ]
    moved = sorted((one for one in given if one.new != one.base), key=lambda one: one.new - one.base)
    if not moved:
        return tag("p", f"Of {len(given)} cases, none differs between {against.base} and with.", class_="quiet")
    same = f"; {len(given) - len(moved)} are the same on both"
    more = f"; the first {_PAIRS} of {len(moved)}" if len(moved) > _PAIRS else ""
    return dumbbells(moved[:_PAIRS], f"Cases that differ, {against.base} and with, losses first{same}{more}")


def cost_points(summary: Summary) -> tuple[list[Point], str] | None:
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


def cost_table(summary: Summary) -> Html:
    rows = []
    for name, group in _groups(summary):
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


def trigger_table(summary: Summary) -> Html:
    rows = []
    for group in summary.skills:
        one = group.trigger
        if one:
            f1 = f"{percent(one.f1)} {ends(one.f1_interval)}"
            rows.append((name_of(group.name), rate(one.precision), rate(one.recall), f1))
    return table(("skill", "precision [95%]", "recall [95%]", "F1 [95%]"), rows, "Precision and recall")


def coverage_table(summary: Summary) -> Html:
    rows = []
    for one in summary.coverage:
        listed = tag("ul", *(tag("li", gap) for gap in one.gaps)) if one.gaps else "nothing"
        reached = f"{one.references - len(one.unloaded)} of {one.references}"
        rows.append((one.skill, reached, f"{one.sections - len(one.unread)} of {one.sections}", listed))
    return table(("skill", "references", "sections", "never loaded"), rows, "What the cases loaded of each skill")


def fault_table(summary: Summary) -> Html:
    rows = [(one.message, str(one.times), ", ".join(one.cases[:10])) for one in summary.faults]
    return table(("what", "trials", "cases"), rows, "Trials that were none")
