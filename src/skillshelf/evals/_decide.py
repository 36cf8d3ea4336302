"""From the trials of several descriptions to which of them is best, and how far that can be trusted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from skillshelf.evals._candidates import LEAST, Candidate, query_of
from skillshelf.evals._case import Case
from skillshelf.evals._results import Outcome
from skillshelf.evals.stats import Choice, Difference, Pair, Rate, choose_best, difference, settle, wilson
from skillshelf.listing import Entry
from skillshelf.tokens import estimate

Score = bool | None
"""Of a query: whether the skill was loaded as it should be; None where infrastructure errors left it open."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How one description did."""

    number: int
    description: str
    tokens: int
    """That it takes in the listing, about."""
    scores: tuple[Score, ...]
    """Query by query."""

    def on(self, queries: Sequence[int]) -> Rate:
        return wilson(sum(bool(self.scores[at]) for at in queries), len(queries))


@dataclass(frozen=True, slots=True)
class Decision:
    """What came of a choice."""

    skill: str
    queries: tuple[str, ...]
    """The ids of their cases."""
    standings: tuple[Standing, ...]
    """The present description first."""
    choice: Choice | None
    """None where infrastructure errors left too few queries."""
    gain: Difference | None = None
    """Of the best over the present one, on the queries held out; None where the present one is the best."""
    enough: int | None = None
    """Queries in all that would settle the gain, if it is as seen and not settled yet."""

    @property
    def best(self) -> Standing | None:
        return self.standings[int(self.choice.best) - 1] if self.choice else None

    @property
    def left_out(self) -> int:
        """Queries that errors left without a score, for one description at least."""
        return sum(None in scores for scores in zip(*(one.scores for one in self.standings), strict=True))


def decide(queries: Sequence[Case], candidates: Sequence[Candidate], outcomes: Sequence[Outcome]) -> Decision:
    """`outcomes`: of the plan of these candidates."""
    skill, names = queries[0].skill, tuple(case.id for case in queries)
    standings = tuple(_standing(skill, one, outcomes) for one in candidates)
    choice = _choice(standings, queries)
    if choice is None or choice.best == "1":
        return Decision(skill, names, standings, choice)
    best, present = standings[int(choice.best) - 1], standings[0]
    # On those held out alone: on the others the best was chosen for being better.
    pairs = [Pair(str(at), _single(present.scores[at]), _single(best.scores[at])) for at in choice.held]
    found, further = difference(pairs), settle(pairs)
    share = len(choice.held) / choice.naive.total
    enough = round(further.cases / share) if further and further.cases else None
    return Decision(skill, names, standings, choice, found, enough)


def majority(outcomes: Sequence[Outcome]) -> Score:
    """Whether more than half of a query's trials were right; None where errors could turn that."""
    passed, missed = (sum(one.status == status for one in outcomes) for status in ("passed", "missed"))
    if 2 * passed > len(outcomes):
        return True
    return False if 2 * missed >= len(outcomes) else None


def _standing(skill: str, candidate: Candidate, outcomes: Sequence[Outcome]) -> Standing:
    own: dict[str, list[Outcome]] = {case.id: [] for case in candidate.cases}
    for outcome in outcomes:
        if outcome.case in own:
            own[outcome.case].append(outcome)
    tokens = estimate(Entry(skill, candidate.description).render())
    return Standing(candidate.number, candidate.description, tokens, tuple(map(majority, own.values())))


def _choice(standings: Sequence[Standing], queries: Sequence[Case]) -> Choice | None:
    kinds = [case.should_trigger is True for case in queries]
    whole = [kind for at, kind in enumerate(kinds) if all(one.scores[at] is not None for one in standings)]
    if min(whole.count(True), whole.count(False)) < LEAST:
        return None
    return choose_best({str(one.number): one.scores for one in standings}, [*map(query_of, queries)], kinds)


def _single(score: Score) -> tuple[int, int]:
    return int(bool(score)), 1
