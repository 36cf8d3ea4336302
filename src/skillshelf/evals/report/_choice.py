"""The report of a choice between descriptions: `skillshelf eval choose`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from skillshelf.evals._descriptions import MIN_QUERIES, ChoiceResult, Standing
from skillshelf.evals.report._format import format_gain, format_interval, format_p, format_percent, format_rate
from skillshelf.evals.stats import Choice, Difference, Rate
from skillshelf.tables import Column, Table
from skillshelf.text import clip

CHOICE_FILE = "choice.json"
"""The file in the folder of a choice, which is above the folders of its runs."""
MAX_DESCRIPTION = 40
_CERTAINTY = {"better": "better beyond chance", "worse": "worse beyond chance", "open": "which may be chance"}


def choice_table(decision: ChoiceResult) -> Table:
    """Return a table of the descriptions, with their scores if there is a choice to compare them on."""
    choice = decision.choice
    rows = []
    for standing in decision.standings:
        chosen_on = "–"
        held_out = "–"
        if choice:
            choosing_rate = standing.rate_on(choice.choosing_queries)
            held_out_rate = standing.rate_on(choice.held_out_queries)
            chosen_on = f"{choosing_rate.passed}/{choosing_rate.total}"
            held_out = f"{held_out_rate.passed}/{held_out_rate.total}  {format_rate(held_out_rate)}"
        description = clip(" ".join(standing.description.split()), MAX_DESCRIPTION)
        mark = _mark_standing(standing, decision)
        rows.append((str(standing.number), mark, str(standing.tokens), chosen_on, held_out, description))

    columns = (
        Column("#", right=True),
        Column(""),
        Column("tokens", right=True),
        Column("to choose by", right=True),
        Column("held out [95%]", right=True),
        Column("description"),
    )
    return Table(f"Descriptions of {decision.skill}", columns, rows)


def _mark_standing(standing: Standing, decision: ChoiceResult) -> str:
    marks = []
    if standing.number == 1:
        marks.append("current")
    if standing is decision.best:
        marks.append("best")
    return ", ".join(marks)


def choice_verdict(decision: ChoiceResult) -> Iterator[str]:
    """Yield the result of a choice in sentences."""
    choice = decision.choice
    best = decision.best
    if choice is None or best is None:
        yield (
            f"Undecided: infrastructure errors left {_count_queries(decision.left_out)} without a score. At least "
            f"{MIN_QUERIES} are needed of those that should load the skill, and of those that should not."
        )
        return

    name = "The current description" if best.number == 1 else f"Description {best.number}"
    choosing = _count_queries(len(choice.choosing_queries))
    yield (
        f"{name} is the best on the {choosing} to choose by: right on "
        f"{choice.chosen_on.passed}{_describe_tie(decision, choice)}."
    )
    yield (
        f"On the {len(choice.held_out_queries)} held out, which had no influence on it: "
        f"{format_rate(choice.held_out)}. Over all {choice.naive.total}, corrected for the choice: "
        f"{format_percent(choice.corrected)} {format_interval(choice.corrected_interval)}."
    )
    points = round(100 * choice.flattery)
    flattery = f"flatters by {points} pp" if points > 0 else "does not flatter"
    yield f"The best score on all of them, {format_percent(choice.naive.value)}, {flattery}."
    if decision.gain:
        yield _compare_with_current(decision, decision.gain)
    if decision.recommended is decision.standings[0]:
        yield _advise_to_keep(decision)
    if decision.left_out:
        yield f"Left out for all descriptions: {_count_queries(decision.left_out)} without a score for some, by errors."


def _describe_tie(decision: ChoiceResult, choice: Choice) -> str:
    passes = [standing.rate_on(choice.choosing_queries).passed for standing in decision.standings]
    others = passes.count(choice.chosen_on.passed) - 1
    if not others:
        return ""
    rule = "a tie changes nothing" if choice.best == "1" else "the first of these is taken"
    return f", like {others} of the others; {rule}"


def _compare_with_current(decision: ChoiceResult, gain: Difference) -> str:
    needed = ""
    if decision.queries_to_settle:
        needed = f"; about {decision.queries_to_settle} queries in all would settle it"
    return (
        f"Against the current description, on those held out: {format_gain(gain)}, p {format_p(gain.p)}, "
        f"{_CERTAINTY[gain.verdict]}{needed}."
    )


def _advise_to_keep(decision: ChoiceResult) -> str:
    if decision.gain is None:
        return "Keep yours: no other description did better."
    best = f"description {decision.best.number}" if decision.best else "the other"
    return f"Keep yours: {best} is not better beyond chance."


def _count_queries(number: int) -> str:
    return "1 query" if number == 1 else f"{number} queries"


def choice_as_json(decision: ChoiceResult) -> dict[str, Any]:
    """Return a choice for `--json`."""
    choice = decision.choice
    gain = decision.gain
    queries = [{"case": case, "part": _part_of(index, choice)} for index, case in enumerate(decision.queries)]
    return {
        "skill": decision.skill,
        "queries": queries,
        "left_out": decision.left_out,
        "best": decision.best.number if decision.best else None,
        "recommended": decision.recommended.number if decision.recommended else None,
        **(_scores_as_json(choice) if choice else {}),
        "gain": {**asdict(gain), "verdict": gain.verdict} if gain else None,
        "queries_to_settle": decision.queries_to_settle,
        "descriptions": [_standing_as_json(standing, choice) for standing in decision.standings],
    }


def _part_of(index: int, choice: Choice | None) -> str:
    """Return which part of the choice a query belongs to."""
    if choice and index in choice.choosing_queries:
        return "choosing"
    if choice and index in choice.held_out_queries:
        return "held_out"
    return "left_out"


def _scores_as_json(choice: Choice) -> dict[str, Any]:
    return {
        "chosen_on": _rate_as_json(choice.chosen_on),
        "held_out": _rate_as_json(choice.held_out),
        "corrected": {"value": choice.corrected, "interval": asdict(choice.corrected_interval)},
        "naive": _rate_as_json(choice.naive),
        "flattery": choice.flattery,
    }


def _standing_as_json(standing: Standing, choice: Choice | None) -> dict[str, Any]:
    if choice is None:
        return asdict(standing)
    return {
        **asdict(standing),
        "chosen_on": _rate_as_json(standing.rate_on(choice.choosing_queries)),
        "held_out": _rate_as_json(standing.rate_on(choice.held_out_queries)),
    }


def _rate_as_json(rate: Rate) -> dict[str, Any]:
    return {**asdict(rate), "value": rate.value}
