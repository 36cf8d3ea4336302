"""Several descriptions of one skill, each tried on the same queries: what `skillshelf eval choose` has to do.

Each gets a copy of the skill's folder in which only the description is another. The copies are alike in all else, that
of the present description too, so that nothing but the words can make a difference.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from skillshelf.errors import EvalError
from skillshelf.evals._case import Case, Message
from skillshelf.evals._folders import LEFT_OUT, is_skill, skills_in
from skillshelf.evals._plan import Plan, Trial
from skillshelf.evals.check import trigger
from skillshelf.evals.formats import Row, parse_yaml, read_bytes, read_text
from skillshelf.skillmd import SkillText, Unreadable, decode, read, render
from skillshelf.sources import SKILL_FILES

LEAST = 2
"""Queries of each kind without which there is no choice: one to choose by and one to hold out."""
_ADVISED = 20
_LIST = "Write a YAML list, one description to an item: lines that begin with `- `"


@dataclass(frozen=True, slots=True)
class Present:
    """A skill as it is."""

    file: str
    """Its SKILL.md."""
    text: SkillText

    @property
    def name(self) -> str:
        return self.text.name

    @property
    def folder(self) -> str:
        return os.path.dirname(self.file)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A description, and the queries on a shelf where the skill has it."""

    number: int
    description: str
    cases: tuple[Case, ...]


def present_skill(folder: str) -> Present:
    """The skill in a folder. Raises EvalError."""
    if not is_skill(folder):
        raise EvalError(f"{folder} is no folder of a skill", "Give the folder that its SKILL.md is in")
    file = next(path for name in SKILL_FILES if os.path.isfile(path := os.path.join(os.path.abspath(folder), name)))
    try:
        return Present(file, read(decode(read_bytes(file)), os.path.basename(os.path.dirname(file))))
    except Unreadable as fault:
        note = fault.diagnostic
        raise EvalError(note.message, note.fix, file, note.line) from None


def read_descriptions(path: str, present: str) -> tuple[str, ...]:
    """All that there are to choose from, the `present` one first. Raises EvalError where `check` would complain."""
    value = parse_yaml(read_text(path), path)
    if not isinstance(value, Row) or not value:
        raise EvalError("it is no list of descriptions", _LIST, path, 1)
    known = {_words(present): "the skill has this description, which is tried in any case"}
    found = [present]
    for item, line in zip(value, value.lines, strict=True):
        if not isinstance(item, str):
            raise EvalError(f"the description is {item!r:.60}", "It must be text: put it in quotes", path, line)
        _refuse_faulty(item, path, line)
        if _words(item) in known:
            raise EvalError(known[_words(item)], "Remove it", path, line)
        known[_words(item)] = f"the description is the same as in line {line}"
        found.append(item.strip())
    return tuple(found)


def _words(text: str) -> str:
    return " ".join(text.split())


def _refuse_faulty(text: str, path: str, line: int) -> None:
    """What reading a SKILL.md with this description says against it, as `check` has it."""
    if not text.strip():
        raise EvalError("the description is empty", "Remove it", path, line)
    try:
        notes = read(render({"name": "skill", "description": text}, "Text.\n")).diagnostics
    except Unreadable as fault:
        notes = [fault.diagnostic]
    if notes:  # after the semicolon is what is done with a skill that has it
        raise EvalError(notes[0].message.partition(";")[0], notes[0].fix, path, line)


def queries_among(cases: Iterable[Case], skill: str) -> tuple[Case, ...]:
    """Those that say whether this skill should be loaded, and ask a model whether it is. Raises EvalError."""
    found = tuple(
        case for case in cases if case.should_trigger is not None and case.skill == skill and case.script is None
    )
    should = sum(case.should_trigger is True for case in found)
    if min(should, len(found) - should) < LEAST:
        raise EvalError(
            f"{skill} has too few queries to choose by: {should} that should load it and {len(found) - should} that "
            f"should not (cases with `should_trigger`, and without a script); {LEAST} of each are the least, since one "
            "half is chosen by and the other held out",
            f"{_ADVISED} and more can tell descriptions apart: a difference on fewer than 6 held-out queries can "
            'always be chance. Write them in evals/triggers.json: [{"query": …, "should_trigger": true}, …]',
        )
    return found


def query_of(case: Case) -> str:
    """What is said in it: it tells queries apart whatever they are called, and whatever is added before them."""
    return "\n".join(turn.text for turn in case.turns if isinstance(turn, Message))


def make_candidates(
    skill: Present, descriptions: Sequence[str], queries: Sequence[Case], stage: str
) -> tuple[Candidate, ...]:
    """`stage`: a folder for the copies of the skill. Raises EvalError."""
    found = []
    for number, description in enumerate(descriptions, 1):
        folder = os.path.join(stage, str(number), os.path.basename(skill.folder))
        _write_copy(skill, description, folder)
        # By its words, not by its number: a recording of it stays good when another one is put before it.
        mark = f"description {hashlib.sha256(description.encode()).hexdigest()[:8]}"
        found.append(Candidate(number, description, tuple(_case(one, mark, skill, folder) for one in queries)))
    return tuple(found)


def plan_of(candidates: Sequence[Candidate], repeats: int) -> Plan:
    """Query by query, so that a bad hour of a provider befalls all descriptions alike."""
    cases = tuple(case for row in zip(*(one.cases for one in candidates), strict=True) for case in row)
    trials = tuple(Trial(case, "with", repeat) for case in cases for repeat in range(1, repeats + 1))
    return Plan(cases, trials, repeats)


def _write_copy(skill: Present, description: str, folder: str) -> None:
    shutil.copytree(skill.folder, folder, symlinks=True, ignore=shutil.ignore_patterns(LEFT_OUT))
    file = os.path.join(folder, os.path.basename(skill.file))
    os.unlink(file)  # it may be a link, and what it leads to is the author's own
    with open(file, "wb") as out:
        out.write(render({**skill.text.values, "description": description}, skill.text.instructions).encode())


def _case(query: Case, mark: str, skill: Present, folder: str) -> Case:
    """A query on a shelf that has this copy of the skill. Other checks say nothing of a description, and may cost."""
    shelf = [one for given in query.skills for one in skills_in(given)]
    own = [os.path.realpath(one) == os.path.realpath(skill.folder) for one in shelf]
    if not any(own):
        raise EvalError(
            f"{query.location or query.id}: the skill {skill.name!r} is not on the case's shelf",
            "Add its folder to the case's `skills:`",
        )
    return replace(
        query,
        name=f"{query.name} ({mark})",
        checks=trigger(skill.name, query.should_trigger),
        skills=tuple(folder if is_own else one for one, is_own in zip(shelf, own, strict=True)),
    )
