"""What a run has to say about lines of files: for annotations in a pull request, through `cli.reports.github`."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from skillshelf.descriptor import Diagnostic
from skillshelf.evals._text import clip
from skillshelf.evals.report._about import about
from skillshelf.evals.report._lines import Lines
from skillshelf.evals.report._tree import CaseSummary, Fault, Summary
from skillshelf.evals.report._words import STOPPED
from skillshelf.evals.stats import Coverage

# GitHub shows ten annotations of a kind for each step: one line of a file gets one, with this many cases.
_NAMED = 5
_LONG = 200
_LOCATION = re.compile(r"(.*?):(\d+)")
_MISSED, _FALSE, _REFERENCE, _FOLLOWED = "trigger-missed", "trigger-false", "reference-missed", "case-missed"
# In this order: what was not loaded could not be followed.
_FIXES = {
    _MISSED: "say in the description when to use it",
    _FALSE: "narrow the description",
    _REFERENCE: "say in the instructions when to load it",
    _FOLLOWED: "",
}


@dataclass(frozen=True, slots=True)
class _Cause:
    """What is wrong with a skill; with several cases it is one annotation."""

    code: str
    skill: str
    reference: str = ""


def blame(summary: Summary) -> tuple[Diagnostic, ...]:
    """Each miss on the line that can mend it, gaps as notes, and what could not be tried where it is written.

    A missed trigger is a matter of `description:`, a missed reference of the line that names it, a case that was not
    followed of the instructions. Where the skill's file is not known, the case's own line is the place.
    """
    found: dict[_Cause, list[CaseSummary]] = defaultdict(list)
    for case in summary.total.cases:
        for cause in _causes(case):
            found[cause].append(case)
    ordered = sorted(found.items(), key=lambda item: list(_FIXES).index(item[0].code))
    notes = [note for cause, cases in ordered for note in _notes(cause, cases, summary.run.skills.get(cause.skill, ""))]
    notes += [_untried(fault, summary) for fault in summary.faults]
    notes += [note for one in summary.coverage for note in _gaps(one, summary.run.skills.get(one.skill, ""))]
    return tuple(notes)


def _causes(case: CaseSummary) -> list[_Cause]:
    """Of a case that missed, those that come first: the rest may be no more than what follows from them."""
    found = []
    for failure in case.main.failures:
        what = about(failure.check)
        if what and what.kind == "skill_loaded":
            found.append(_Cause(_FALSE if what.negated else _MISSED, what.skill))
        elif what and what.kind == "reference_loaded" and not what.negated:
            found.append(_Cause(_REFERENCE, what.skill, what.reference))
        else:
            found.append(_Cause(_FOLLOWED, case.info.skill))
    triggers = [one for one in found if one.code in (_MISSED, _FALSE)]
    references = [one for one in found if one.code == _REFERENCE]
    return list(dict.fromkeys(triggers or references or found))


def _notes(cause: _Cause, cases: Sequence[CaseSummary], path: str) -> Iterator[Diagnostic]:
    if not path:
        for case in cases:
            message = f"{case.info.id} {_share(case)}: {_reasons(case)}"
            yield Diagnostic("error", cause.code, message, *_place(case), _FIXES[cause.code])
        return
    line, words = _told(cause, Lines(path, cause.skill))
    tell = _account if cause.code == _FOLLOWED else _query
    more = f" and {len(cases) - _NAMED} more" if len(cases) > _NAMED else ""
    message = f"{words}: {'; '.join(map(tell, cases[:_NAMED]))}{more}"
    yield Diagnostic("error", cause.code, message, path, line, _FIXES[cause.code])


def _told(cause: _Cause, lines: Lines) -> tuple[int, str]:
    if cause.code == _REFERENCE:
        return lines.reference(cause.reference), f"{cause.reference} is not loaded where it should be"
    if cause.code == _FOLLOWED:
        return lines.instructions, "not followed"
    missed = cause.code == _MISSED
    return lines.description, "not loaded where it should be" if missed else "loaded where it should not be"


def _query(case: CaseSummary) -> str:
    return f"{case.info.prompt or case.info.name!r:.80} ({_share(case)})"


def _account(case: CaseSummary) -> str:
    where = f"{case.info.location}, " if case.info.location else ""
    return f"{case.info.id} ({where}{_share(case)}): {_reasons(case)}"


def _share(case: CaseSummary) -> str:
    return f"passed {case.main.counts.passed} of {case.main.counts.trials}"


def _reasons(case: CaseSummary) -> str:
    found = [f"{STOPPED}: {one.reason}" for one in case.main.stops]
    found += [f"{one.check}: {one.reason}" for one in case.main.failures]
    return "; ".join(clip(one, _LONG) for one in found[:_NAMED])


def _untried(fault: Fault, summary: Summary) -> Diagnostic:
    """No fault of the skill, and still nobody knows whether it works."""
    first = next(case for case in summary.total.cases if case.info.id == fault.cases[0])
    number = f"{fault.times} trial{'s' if fault.times > 1 else ''}"
    names = ", ".join(fault.cases[:_NAMED]) + (" …" if len(fault.cases) > _NAMED else "")
    return Diagnostic("warning", "not-tried", f"{number} of {names} could not be made: {fault.message}", *_place(first))


def _place(case: CaseSummary) -> tuple[str, int]:
    match = _LOCATION.fullmatch(case.info.location)
    return (match[1], int(match[2])) if match else (case.info.location, 0)


def _gaps(coverage: Coverage, path: str) -> Iterator[Diagnostic]:
    if not path:
        return
    if not coverage.loaded:
        yield Diagnostic("info", "coverage-gap", "no case ever loaded the skill", path, 1)
    if coverage.unloaded:
        names = ", ".join(coverage.unloaded[:_NAMED]) + (" …" if len(coverage.unloaded) > _NAMED else "")
        message = f"no case loaded {len(coverage.unloaded)} of {coverage.references} references: {names}"
        yield Diagnostic("info", "coverage-gap", message, path, 1)
