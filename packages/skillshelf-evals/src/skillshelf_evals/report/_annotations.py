"""The misses of a run as annotations on the lines of files where they can be fixed, for pull requests."""

from __future__ import annotations

import ast
import os
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from skillshelf.skillmd import MAX_FILE, Unreadable, decode, read
from skillshelf.skills import Diagnostic, Severity
from skillshelf.text import count_noun, truncate
from skillshelf_evals._coverage import Coverage
from skillshelf_evals._text import list_items
from skillshelf_evals.report._format import MAX_CASES_NAMED, MAX_REASON
from skillshelf_evals.report._gates import Judgement, judge_run
from skillshelf_evals.report._summary import CaseSummary, Fault, Miss, Summary

# GitHub shows ten annotations of a kind for each step. So one line of a file gets one, with this many cases.
TRIGGER_MISSED = "trigger-missed"
TRIGGER_FALSE = "trigger-false"
REFERENCE_MISSED = "reference-missed"
CASE_MISSED = "case-missed"
GATE_FAILED = "gate-failed"
# In this order: instructions that were not loaded could not be followed.
_FIXES = {
    TRIGGER_MISSED: "say in the description when to use it",
    TRIGGER_FALSE: "narrow the description",
    REFERENCE_MISSED: "say in the instructions when to load it",
    CASE_MISSED: "",
}
_LOCATION = re.compile(r"(.*?):(\d+)")
_DESCRIPTION = re.compile(r"\s*[\"']?description[\"']?\s*:", re.I)


@dataclass(frozen=True, slots=True)
class _Cause:
    """A fault of a skill. All cases that miss because of it share one annotation."""

    code: str
    skill: str
    reference: str = ""


def annotate(summary: Summary, judgement: Judgement | None = None) -> tuple[Diagnostic, ...]:
    """Return each miss on the line where it can be fixed, gaps in coverage as notes, and errors on their cases' lines.

    A miss is an error if it fails the run as it was judged, by default without a gate, and otherwise a note. A gate
    that failed is an error without a place.

    A missed trigger is annotated on the `description:`, a missed reference on the line that names it, and a case that
    was not followed on the instructions. If the skill's file is not known, the annotation is on the case.
    """
    cases_by_cause: dict[_Cause, list[CaseSummary]] = defaultdict(list)
    for case in summary.total.cases:
        for cause in _find_causes(case):
            cases_by_cause[cause].append(case)

    codes = list(_FIXES)
    skill_files = summary.run.skills
    judgement = judgement or judge_run(summary)
    failed = judgement.failed_cases
    notes = [
        Diagnostic("error", GATE_FAILED, result.line)
        for result in judgement.results
        if result.is_chosen and result.passed is False
    ]
    for cause, cases in sorted(cases_by_cause.items(), key=lambda item: codes.index(item[0].code)):
        notes += _annotate_cause(cause, cases, skill_files.get(cause.skill, ""), failed)
    notes += [_annotate_fault(fault, summary) for fault in summary.faults]
    for coverage in summary.coverage:
        notes += _annotate_gaps(coverage, skill_files.get(coverage.skill, ""))
    return tuple(notes)


def _find_causes(case: CaseSummary) -> list[_Cause]:
    """Return the first causes of a case's misses: later ones may only follow from them."""
    causes = [_cause_of(failure, case) for failure in case.main.failures]
    triggers = [cause for cause in causes if cause.code in (TRIGGER_MISSED, TRIGGER_FALSE)]
    references = [cause for cause in causes if cause.code == REFERENCE_MISSED]
    return list(dict.fromkeys(triggers or references or causes))


def _cause_of(failure: Miss, case: CaseSummary) -> _Cause:
    about = failure.about
    if about.kind == "skill_loaded":
        return _Cause(TRIGGER_FALSE if about.is_negated else TRIGGER_MISSED, about.skill)
    if about.kind == "reference_loaded" and not about.is_negated:
        return _Cause(REFERENCE_MISSED, about.skill, about.reference)
    return _Cause(CASE_MISSED, case.info.skill)


def _annotate_cause(
    cause: _Cause, cases: Sequence[CaseSummary], path: str, failed: Collection[str]
) -> Iterator[Diagnostic]:
    """Yield the annotations of a cause. Those of cases that have `failed` are errors."""
    fix = _FIXES[cause.code]
    if not path:
        for case in cases:
            message = f"{case.info.label} {_share_passed(case)}: {_list_reasons(case)}"
            yield Diagnostic(_rate_severity([case], failed), cause.code, message, *_place_of(case), fix)
        return

    lines = SkillLines(path, cause.skill)
    if cause.code == CASE_MISSED:
        line = lines.instructions
        message = "not followed"
        descriptions = [_describe_case(case) for case in cases[:MAX_CASES_NAMED]]
    else:
        line, message = _describe_loading(cause, lines)
        descriptions = [_describe_query(case) for case in cases[:MAX_CASES_NAMED]]

    message = f"{message}: {'; '.join(descriptions)}"
    if len(cases) > MAX_CASES_NAMED:
        message += f" and {len(cases) - MAX_CASES_NAMED} more"
    yield Diagnostic(_rate_severity(cases, failed), cause.code, message, path, line, fix)


def _rate_severity(cases: Sequence[CaseSummary], failed: Collection[str]) -> Severity:
    return "error" if any(case.info.id in failed for case in cases) else "info"


def _describe_loading(cause: _Cause, lines: SkillLines) -> tuple[int, str]:
    """Return the line to annotate and what is wrong with the loading."""
    if cause.code == REFERENCE_MISSED:
        return lines.find_reference(cause.reference), f"{cause.reference} is not loaded when it should be"
    if cause.code == TRIGGER_MISSED:
        return lines.description, "not loaded when it should be"
    return lines.description, "loaded when it should not be"


def _describe_query(case: CaseSummary) -> str:
    return f"{case.info.prompt or case.info.name!r:.80} ({_share_passed(case)})"


def _describe_case(case: CaseSummary) -> str:
    place = f"{case.info.location}, " if case.info.location else ""
    return f"{case.info.label} ({place}{_share_passed(case)}): {_list_reasons(case)}"


def _share_passed(case: CaseSummary) -> str:
    return f"passed {case.main.counts.passed} of {case.main.counts.trials}"


def _list_reasons(case: CaseSummary) -> str:
    reasons = [f"{miss.check}: {miss.reason}" for miss in case.main.misses[:MAX_CASES_NAMED]]
    return "; ".join(truncate(reason, MAX_REASON) for reason in reasons)


def _annotate_fault(fault: Fault, summary: Summary) -> Diagnostic:
    """Annotate an infrastructure error: it is not the skill's fault, but leaves open whether the skill works."""
    first = next(case for case in summary.total.cases if case.info.id == fault.cases[0])
    trials = f"{count_noun(fault.times, 'trial')} of {list_items(fault.cases, MAX_CASES_NAMED)}"
    message = f"{trials} could not be completed: {fault.message}"
    return Diagnostic("warning", "not-tried", message, *_place_of(first))


def _annotate_gaps(coverage: Coverage, path: str) -> Iterator[Diagnostic]:
    if not path:
        return
    if not coverage.loaded:
        yield Diagnostic("info", "coverage-gap", "no case ever loaded the skill", path, 1)
    if coverage.unloaded:
        number = f"{len(coverage.unloaded)} of {coverage.references} references"
        message = f"no case loaded {number}: {list_items(coverage.unloaded, MAX_CASES_NAMED)}"
        yield Diagnostic("info", "coverage-gap", message, path, 1)


def _place_of(case: CaseSummary) -> tuple[str, int]:
    match = _LOCATION.fullmatch(case.info.location)
    if match is None:
        return case.info.location, 0
    return match[1], int(match[2])


class SkillLines:
    """The lines of a skill's file, a SKILL.md or the module of a code skill, that annotations point to.

    Line 1 stands for a file that is gone, or does not have what is wanted.
    """

    def __init__(self, path: str, skill: str) -> None:
        self._text = _read_text(path)
        self._is_python = path.endswith(".py")
        self._class = _find_class(self._text, skill) if self._is_python else None

    @property
    def description(self) -> int:
        """The line of the description, which makes a model choose the skill."""
        if self._is_python:
            return self._find_assignment("description")
        head = self._text[: self._find_body()].splitlines()
        return next((number for number, line in enumerate(head, 1) if _DESCRIPTION.match(line)), 1)

    @property
    def instructions(self) -> int:
        """The first line of the instructions."""
        if self._is_python:
            return self._find_assignment("instructions")
        return self._text.count("\n", 0, self._find_body()) + 1

    def find_reference(self, name: str) -> int:
        """Return the line that names a reference, by its path or by its file name alone."""
        lines = self._text.splitlines()
        for wanted in (name, os.path.basename(name)):
            pattern = re.compile(rf"(?<![\w.-]){re.escape(wanted)}(?![\w-]|\.\w)")
            for number, line in enumerate(lines, 1):
                if pattern.search(line):
                    return number
        return 1

    def _find_body(self) -> int:
        """Return where the instructions begin in the text."""
        with suppress(Unreadable):
            return read(self._text).body_start
        return 0

    def _find_assignment(self, name: str) -> int:
        """Return the line of `name = …` in the skill's class, or that of the class."""
        if self._class is None:
            return 1
        for statement in self._class.body:
            if name in _assigned_names(statement):
                return statement.lineno
        return self._class.lineno


def _read_text(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return decode(file.read(MAX_FILE + 1)).removeprefix("\ufeff")
    except (OSError, Unreadable):
        return ""


def _find_class(text: str, skill: str) -> ast.ClassDef | None:
    """Return the class with this name of a skill, or else the first class with a description."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None

    described = None
    for node in ast.walk(tree):
        if not isinstance(node, ast.ClassDef):
            continue
        for statement in node.body:
            names = _assigned_names(statement)
            if "name" in names and _assigned_value(statement) == skill:
                return node
            if "description" in names and described is None:
                described = node

    return described


def _assigned_names(node: ast.stmt) -> list[str]:
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign):
        targets = [node.target]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _assigned_value(node: ast.stmt) -> object:
    value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
    return value.value if isinstance(value, ast.Constant) else None
