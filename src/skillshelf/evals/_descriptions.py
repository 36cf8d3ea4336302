"""The choice between several descriptions of one skill, each tried on the same queries: `skillshelf eval choose`.

Each description gets a copy of the skill's folder that differs in nothing else. The current description gets a copy
too, so that only the words can make a difference.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from skillshelf.errors import EvalError
from skillshelf.evals._case import Case, Message
from skillshelf.evals._folders import EVALS_FOLDER, is_skill, skills_in
from skillshelf.evals._plan import Plan, Trial
from skillshelf.evals._results import Outcome
from skillshelf.evals.check import trigger
from skillshelf.evals.formats import YamlList, parse_document, read_bytes, read_text
from skillshelf.evals.stats import Choice, Difference, Pair, Rate, choose_best, difference, exact_rate, settle
from skillshelf.listing import Entry
from skillshelf.skillmd import SkillText, Unreadable, decode, read, render_skill
from skillshelf.sources import SKILL_FILES
from skillshelf.tokens import estimate

MIN_QUERIES = 2
"""The fewest queries of each kind that a choice needs: one to choose by and one to hold out."""
ADVISED_QUERIES = 20
_HOW_TO_LIST = "Write a YAML list, one description to an item: lines that begin with `- `"


@dataclass(frozen=True, slots=True)
class CurrentSkill:
    """A skill as it is now."""

    file: str
    """The path of its SKILL.md."""
    text: SkillText

    @property
    def name(self) -> str:
        return self.text.name

    @property
    def folder(self) -> str:
        return os.path.dirname(self.file)


@dataclass(frozen=True, slots=True)
class Variant:
    """A description, and the queries on a shelf where the skill has it."""

    number: int
    description: str
    cases: tuple[Case, ...]


def read_current_skill(folder: str) -> CurrentSkill:
    """Read the skill in a folder. Raises EvalError."""
    if not is_skill(folder):
        raise EvalError(f"{folder} is not the folder of a skill", "Give the folder that holds its SKILL.md")
    paths = [os.path.join(os.path.abspath(folder), name) for name in SKILL_FILES]
    file = next(path for path in paths if os.path.isfile(path))
    try:
        text = read(decode(read_bytes(file)), os.path.basename(os.path.dirname(file)))
    except Unreadable as fault:
        note = fault.diagnostic
        raise EvalError(note.message, note.fix, file, note.line) from None

    return CurrentSkill(file, text)


def read_descriptions(path: str, current: str) -> tuple[str, ...]:
    """Return the descriptions to choose from, the current one first.

    Raises EvalError for a description that is given twice, or that `skillshelf check` would complain about.
    """
    items = parse_document(read_text(path), path)
    if not isinstance(items, YamlList) or not items:
        raise EvalError("it is not a list of descriptions", _HOW_TO_LIST, path, 1)

    seen = {_normalize_space(current): "the skill has this description already, and it is always tried"}
    descriptions = [current]
    for item, line in zip(items, items.lines, strict=True):
        if not isinstance(item, str):
            raise EvalError(f"the description is {item!r:.60}", "It must be text: put it in quotes", path, line)
        _refuse_faulty(item, path, line)
        words = _normalize_space(item)
        if words in seen:
            raise EvalError(seen[words], "Remove it", path, line)
        seen[words] = f"the description is the same as in line {line}"
        descriptions.append(item.strip())

    return tuple(descriptions)


def _normalize_space(text: str) -> str:
    return " ".join(text.split())


def _refuse_faulty(description: str, path: str, line: int) -> None:
    """Raise EvalError if `skillshelf check` would complain about a skill with this description."""
    if not description.strip():
        raise EvalError("the description is empty", "Remove it", path, line)
    try:
        notes = read(render_skill({"name": "skill", "description": description}, "Text.\n")).diagnostics
    except Unreadable as fault:
        notes = (fault.diagnostic,)
    if notes:
        raise EvalError(f"`skillshelf check` would complain: {notes[0].message}", notes[0].fix, path, line)


def select_queries(cases: Iterable[Case], skill: str) -> tuple[Case, ...]:
    """Return the cases that ask a model whether it loads this skill. Raises EvalError if there are too few."""
    queries = tuple(
        case for case in cases if case.should_trigger is not None and case.skill == skill and case.script is None
    )
    positive = sum(case.should_trigger is True for case in queries)
    negative = len(queries) - positive
    if min(positive, negative) < MIN_QUERIES:
        raise EvalError(
            f"{skill} has too few queries to choose by: {positive} that should load it and {negative} that should not "
            f"(cases with `should_trigger`, and without a script). At least {MIN_QUERIES} of each are needed: one "
            "half to choose by, the other to hold out",
            f"{ADVISED_QUERIES} and more can tell descriptions apart: a difference on fewer than 6 held-out queries "
            'can always be chance. Write them in evals/triggers.json: [{"query": …, "should_trigger": true}, …]',
        )

    return queries


def make_variants(
    skill: CurrentSkill, descriptions: Sequence[str], queries: Sequence[Case], stage: str
) -> tuple[Variant, ...]:
    """Give each description a copy of the skill in the folder `stage`, and the queries on a shelf with this copy.

    Raises EvalError.
    """
    variants = []
    for number, description in enumerate(descriptions, 1):
        folder = os.path.join(stage, str(number), os.path.basename(skill.folder))
        _write_copy(skill, description, folder)
        # Named by its words, not by its number: a recording stays valid if another description is put before it.
        mark = f"description {hashlib.sha256(description.encode()).hexdigest()[:8]}"
        cases = tuple(_put_on_shelf(query, mark, skill, folder) for query in queries)
        variants.append(Variant(number, description, cases))
    return tuple(variants)


def plan_variants(variants: Sequence[Variant], repeats: int) -> Plan:
    """Plan the trials query by query, so that a provider's bad hour affects all descriptions alike."""
    rows = zip(*(variant.cases for variant in variants), strict=True)
    cases = tuple(case for row in rows for case in row)
    trials = tuple(Trial(case, "with", repeat) for case in cases for repeat in range(1, repeats + 1))
    return Plan(cases, trials, repeats)


def _write_copy(skill: CurrentSkill, description: str, folder: str) -> None:
    shutil.copytree(skill.folder, folder, symlinks=True, ignore=shutil.ignore_patterns(EVALS_FOLDER))
    path = os.path.join(folder, os.path.basename(skill.file))
    os.unlink(path)  # it may be a link, and its target belongs to the author
    text = render_skill({**skill.text.values, "description": description}, skill.text.instructions)
    with open(path, "wb") as file:
        file.write(text.encode())


def _put_on_shelf(query: Case, mark: str, skill: CurrentSkill, folder: str) -> Case:
    """Return a query on a shelf with this copy of the skill, and no other check: those would only add cost."""
    own_folder = os.path.realpath(skill.folder)
    shelf = [path for given in query.skills for path in skills_in(given)]
    changed = tuple(folder if os.path.realpath(path) == own_folder else path for path in shelf)
    if folder not in changed:
        raise EvalError(
            f"{query.location or query.id}: the skill {skill.name!r} is not on the case's shelf",
            "Add its folder to the case's `skills:`",
        )

    return replace(
        query,
        name=f"{query.name} ({mark})",
        checks=trigger(skill.name, query.should_trigger),
        skills=changed,
    )


Score = bool | None
"""True if the skill was loaded for a query as it should be; None if infrastructure errors left that open."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The results of one description."""

    number: int
    description: str
    tokens: int
    """About how many tokens it takes in the listing."""
    scores: tuple[Score, ...]
    """Query by query."""

    def rate_on(self, queries: Sequence[int]) -> Rate:
        """Return the share of these queries that the description got right."""
        passed = sum(bool(self.scores[index]) for index in queries)
        return exact_rate(passed, len(queries))


@dataclass(frozen=True, slots=True)
class ChoiceResult:
    """The best of several descriptions, and how each of them did."""

    skill: str
    queries: tuple[str, ...]
    """The ids of their cases."""
    standings: tuple[Standing, ...]
    """The current description first."""
    choice: Choice | None
    """None if infrastructure errors left too few queries."""
    gain: Difference | None = None
    """The best description's gain over the current one on the held-out queries; None if the current one is the best."""
    queries_to_settle: int | None = None
    """How many queries in all would settle the gain if it is as measured; None if it is settled, or none would."""

    @property
    def best(self) -> Standing | None:
        if self.choice is None:
            return None
        return self.standings[int(self.choice.best) - 1]

    @property
    def recommended(self) -> Standing | None:
        """The description to use: the current one, unless the best is better beyond chance. None without a choice."""
        if self.choice is None:
            return None
        if self.gain is not None and self.gain.verdict == "better":
            return self.best
        return self.standings[0]

    @property
    def left_out(self) -> int:
        """The number of queries that errors left without a score for at least one description."""
        scores_by_query = zip(*(standing.scores for standing in self.standings), strict=True)
        return sum(None in scores for scores in scores_by_query)


def decide(queries: Sequence[Case], variants: Sequence[Variant], outcomes: Sequence[Outcome]) -> ChoiceResult:
    """Choose the best description from the outcomes of `plan_variants`."""
    skill = queries[0].skill
    ids = tuple(case.id for case in queries)
    standings = tuple(_make_standing(skill, variant, outcomes) for variant in variants)
    choice = _choose(standings, queries)
    if choice is None or choice.best == "1":
        return ChoiceResult(skill, ids, standings, choice)

    current = standings[0]
    best = standings[int(choice.best) - 1]
    # Only held-out queries count: on the others, the best description was chosen for being better.
    pairs = [
        Pair(str(index), _count(current.scores[index]), _count(best.scores[index])) for index in choice.held_out_queries
    ]
    needed = settle(pairs)
    queries_to_settle = None
    if needed and needed.cases:
        held_out_share = len(choice.held_out_queries) / choice.naive.total
        queries_to_settle = round(needed.cases / held_out_share)
    return ChoiceResult(skill, ids, standings, choice, difference(pairs), queries_to_settle)


def find_majority(outcomes: Sequence[Outcome]) -> Score:
    """Return whether more than half of a query's trials passed; None if errors could change the answer."""
    passed = sum(outcome.status == "passed" for outcome in outcomes)
    missed = sum(outcome.status == "missed" for outcome in outcomes)
    if 2 * passed > len(outcomes):
        return True
    if 2 * missed >= len(outcomes):
        return False
    return None


def _make_standing(skill: str, variant: Variant, outcomes: Sequence[Outcome]) -> Standing:
    by_case: dict[str, list[Outcome]] = {case.id: [] for case in variant.cases}
    for outcome in outcomes:
        if outcome.case in by_case:
            by_case[outcome.case].append(outcome)
    tokens = estimate(Entry(skill, variant.description).render())
    scores = tuple(find_majority(trials) for trials in by_case.values())
    return Standing(variant.number, variant.description, tokens, scores)


def _choose(standings: Sequence[Standing], queries: Sequence[Case]) -> Choice | None:
    kinds = [case.should_trigger is True for case in queries]
    scored_kinds = [
        kind for index, kind in enumerate(kinds) if all(standing.scores[index] is not None for standing in standings)
    ]
    if min(scored_kinds.count(True), scored_kinds.count(False)) < MIN_QUERIES:
        return None
    scores = {str(standing.number): standing.scores for standing in standings}
    return choose_best(scores, [_query_text(query) for query in queries], kinds)


def _query_text(case: Case) -> str:
    """Return the messages of a query. They identify it whatever its name is, and whatever is added before it."""
    return "\n".join(turn.text for turn in case.turns if isinstance(turn, Message))


def _count(score: Score) -> tuple[int, int]:
    """Return a query's score as passes and trials."""
    return int(bool(score)), 1
