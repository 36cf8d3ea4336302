"""What a run has to say about lines of files: for annotations in a pull request, through `cli.reports.github`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from skillshelf.descriptor import Diagnostic
from skillshelf.evals.report.tree import CaseSummary, Group, Summary
from skillshelf.evals.report.words import percent
from skillshelf.evals.stats import Coverage

# GitHub shows ten annotations of a kind for each step: one line of a file gets one, with this many queries.
_NAMED = 5
_LOCATION = re.compile(r"(.*?):(\d+)")
_DESCRIPTION = re.compile(r"\s*[\"']?description[\"']?\s*:", re.I)
# A frontmatter is no longer than this.
_LINES = 200


def blame(summary: Summary) -> tuple[Diagnostic, ...]:
    """Missed triggers on `description:`, cases that were not followed where they are written, gaps as notes."""
    found = [note for group in summary.skills for note in _group(group, summary.run.skills.get(group.name, ""))]
    found += [note for one in summary.coverage for note in _gaps(one, summary.run.skills.get(one.skill, ""))]
    return tuple(found)


def description_line(path: str) -> int:
    """The line of `description:` in a SKILL.md; 1 where there is none to be found."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = [line for _, line in zip(range(_LINES), file, strict=False)]
    except OSError:
        return 1
    return next((at for at, line in enumerate(lines, 1) if _DESCRIPTION.match(line)), 1)


def _group(group: Group, path: str) -> Iterator[Diagnostic]:
    missed = [case for case in group.cases if case.main.counts.missed]
    silent = [case for case in missed if path and _is_silent(case)]
    loud = [case for case in missed if path and case.info.should_trigger is False and _is_taken(case)]
    line = description_line(path) if silent or loud else 0
    if silent:
        message = f"not loaded where it should be: {_queries(silent)}"
        yield Diagnostic("error", "trigger-missed", message, path, line, "say in the description when to use it")
    if loud:
        message = f"loaded where it should not be: {_queries(loud)}"
        yield Diagnostic("error", "trigger-false", message, path, line, "narrow the description")
    told = {case.info.id for case in (*silent, *loud)}
    for case in missed:
        if case.info.id not in told:
            where, at = _place(case.info.location, path)
            yield Diagnostic("error", "case-missed", _reasons(case), where, at)


def _is_silent(case: CaseSummary) -> bool:
    """The skill was not loaded in a trial that missed, though the case or one of its checks wants it to be."""
    wanted = case.info.should_trigger or any(one.check.startswith("skill_loaded") for one in case.main.failures)
    missed = [one for one in case.main.outcomes if one.status == "missed"]
    return bool(wanted) and any(case.info.skill not in one.loaded for one in missed)


def _is_taken(case: CaseSummary) -> bool:
    return any(case.info.skill in one.loaded for one in case.main.outcomes if one.status == "missed")


def _queries(cases: Sequence[CaseSummary]) -> str:
    shown = [f"{case.info.prompt or case.info.name!r:.80} ({_share(case)})" for case in cases[:_NAMED]]
    rest = f" and {len(cases) - _NAMED} more" if len(cases) > _NAMED else ""
    return "; ".join(shown) + rest


def _share(case: CaseSummary) -> str:
    return f"passed {case.main.counts.passed} of {case.main.counts.trials}"


def _reasons(case: CaseSummary) -> str:
    reasons = "; ".join(f"{one.check}: {one.reason}" for one in case.main.failures[:_NAMED])
    return f"{case.info.id} {_share(case)}, {percent(case.main.rate.value)}: {reasons}"


def _place(location: str, path: str) -> tuple[str, int]:
    match = _LOCATION.fullmatch(location)
    if match:
        return match[1], int(match[2])
    return (location, 0) if location else (path, 1)


def _gaps(coverage: Coverage, path: str) -> Iterator[Diagnostic]:
    if not path:
        return
    if not coverage.loaded:
        yield Diagnostic("info", "coverage-gap", "no case ever loaded the skill", path, 1)
    if coverage.unloaded:
        names = ", ".join(coverage.unloaded[:_NAMED]) + (" …" if len(coverage.unloaded) > _NAMED else "")
        message = f"no case loaded {len(coverage.unloaded)} of {coverage.references} references: {names}"
        yield Diagnostic("info", "coverage-gap", message, path, 1)
