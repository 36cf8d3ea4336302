"""A choice between descriptions, told: `skillshelf eval choose`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from skillshelf.evals._descriptions import MIN_QUERIES, Decision, Standing
from skillshelf.evals._text import clip
from skillshelf.evals.report._words import chance, ends, gain, percent, rate
from skillshelf.evals.stats import Choice, Rate
from skillshelf.tables import Column, Table

_FIRST_WORDS = 40
_BEYOND = {"better": "better beyond chance", "worse": "worse beyond chance", "open": "which may be chance"}


def choice_table(decision: Decision) -> Table:
    """Each description in a row; without its scores where there is no choice to compare them on."""
    choice = decision.choice
    rows = []
    for one in decision.standings:
        scores = ["–", "–"]
        if choice:
            chosen, held = one.rate_on(choice.choosing_queries), one.rate_on(choice.held_out_queries)
            scores = [f"{chosen.passed}/{chosen.total}", f"{held.passed}/{held.total}  {rate(held)}"]
        words = clip(" ".join(one.description.split()), _FIRST_WORDS)
        rows.append((str(one.number), _mark(one, decision), str(one.tokens), *scores, words))
    columns = [Column("#", True), Column(""), *(Column(title, True) for title in ("tokens", "to choose by"))]
    columns += [Column("held out [95%]", True), Column("description")]
    return Table(f"Descriptions of {decision.skill}", tuple(columns), tuple(rows))


def _mark(one: Standing, decision: Decision) -> str:
    return ", ".join(["present"] * (one.number == 1) + ["best"] * (one is decision.best))


def choice_verdict(decision: Decision) -> Iterator[str]:
    """In plain words, a line for each thing that is to be known."""
    choice, best = decision.choice, decision.best
    if choice is None or best is None:
        yield (
            f"Undecided: infrastructure errors left {_queries(decision.left_out)} without a score, and of those that "
            f"should load the skill and of those that should not, {MIN_QUERIES} each are needed."
        )
        return
    which = "The present description" if best.number == 1 else f"Description {best.number}"
    yield (
        f"{which} is the best on the {_queries(len(choice.choosing_queries))} to choose by: right on "
        f"{choice.chosen_on.passed}{_tied(decision, choice)}."
    )
    yield (
        f"On the {len(choice.held_out_queries)} held out, which had no say in it: {rate(choice.held_out)}. Over all "
        f"{choice.naive.total}, corrected for having been chosen: {percent(choice.corrected)} "
        f"{ends(choice.corrected_interval)}."
    )
    much = round(100 * choice.flattery)
    flattered = f"flatters by {much} pp" if much > 0 else "does not flatter"
    yield f"The best score on all of them, {percent(choice.naive.value)}, {flattered}."
    yield _against_present(decision)
    if decision.left_out:
        yield f"Left out for all descriptions: {_queries(decision.left_out)} without a score for some, by errors."


def _tied(decision: Decision, choice: Choice) -> str:
    alike = (
        sum(one.rate_on(choice.choosing_queries).passed == choice.chosen_on.passed for one in decision.standings) - 1
    )
    rule = "a tie changes nothing" if choice.best == "1" else "the first of these is taken"
    return f", as {alike} of the others; {rule}" if alike else ""


def _against_present(decision: Decision) -> str:
    found = decision.gain
    if found is None:
        return "There is nothing to change."
    more = f"; about {decision.queries_to_settle} queries in all would settle it" if decision.queries_to_settle else ""
    return (
        f"Against the present description, on those held out: {gain(found)}, p {chance(found.p)}, "
        f"{_BEYOND[found.verdict]}{more}."
    )


def _queries(number: int) -> str:
    return "1 query" if number == 1 else f"{number} queries"


def choice_as_json(decision: Decision) -> dict[str, Any]:
    """For programs."""
    found = decision.gain
    return {
        "skill": decision.skill,
        "queries": [{"case": case, "part": _part(at, decision.choice)} for at, case in enumerate(decision.queries)],
        "left_out": decision.left_out,
        "best": decision.best.number if decision.best else None,
        **(_scores(decision.choice) if decision.choice else {}),
        "gain": {**asdict(found), "verdict": found.verdict} if found else None,
        "queries_to_settle": decision.queries_to_settle,
        "descriptions": [_facts(one, decision.choice) for one in decision.standings],
    }


def _part(at: int, choice: Choice | None) -> str:
    """Which part of the choice a query had."""
    if choice and at in choice.choosing_queries:
        return "choosing"
    return "held_out" if choice and at in choice.held_out_queries else "left_out"


def _scores(choice: Choice) -> dict[str, Any]:
    return {
        "chosen_on": _rate(choice.chosen_on),
        "held_out": _rate(choice.held_out),
        "corrected": {"value": choice.corrected, "interval": asdict(choice.corrected_interval)},
        "naive": _rate(choice.naive),
        "flattery": choice.flattery,
    }


def _facts(one: Standing, choice: Choice | None) -> dict[str, Any]:
    on = (
        {
            "chosen_on": _rate(one.rate_on(choice.choosing_queries)),
            "held_out": _rate(one.rate_on(choice.held_out_queries)),
        }
        if choice
        else {}
    )
    return {**asdict(one), **on}


def _rate(given: Rate) -> dict[str, Any]:
    return {**asdict(given), "value": given.value}
