"""Golden checks: a stored text that the answer, or a file of the workspace, must equal. `bless` stores new texts."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from skillshelf.evals._text import clip_quote, find_first_difference
from skillshelf.evals._trace import Trace
from skillshelf.evals.check._check import Check, NonEmpty, StoredPath, Verdict, built_in
from skillshelf.evals.check._stored import read_stored
from skillshelf.files import replace_file

if TYPE_CHECKING:
    from skillshelf.evals._case import Case
    from skillshelf.evals._results import Outcome


@built_in(describe=lambda path, file: f"{path} for {file}" if file else path)
def golden(trace: Trace, path: StoredPath, file: NonEmpty | None = None) -> Verdict:
    """Check that the last answer, or a file of the workspace, equals the text stored in `path`.

    Kinds of line endings and newlines at the end make no difference.
    """
    how_to_write = "write it, or let `skillshelf eval --update-golden` write it from a run, unless it is for `not`"
    try:
        stored = read_stored(path)
    except FileNotFoundError:
        return Verdict(False, error=f"{path} is missing; {how_to_write}.")
    except (OSError, ValueError) as error:
        return Verdict(False, error=f"{path} cannot be read: {error}; {how_to_write}.")

    text = _find_text(trace, file)
    if text is None:
        return Verdict(False, f"there is no text file {file} to compare")
    difference = find_first_difference(_normalize(text), _normalize(stored))
    if difference is None:
        return Verdict(True, f"it equals {path}")
    ours = _show_line(difference.ours)
    theirs = _show_line(difference.theirs)
    return Verdict(False, f"line {difference.number} is {ours}; {path} has {theirs}")


def _find_text(trace: Trace, file: str | None) -> str | None:
    """Return the text that a golden check compares; None if the trial left no such text."""
    if file is None:
        return trace.answer
    state = trace.files.get(file)
    return state.text if state else None


def _is_golden(check: Check) -> bool:
    return check.kind.name == "golden"


def _show_line(line: str | None) -> str:
    return "the end" if line is None else repr(clip_quote(line))


@dataclass(frozen=True, slots=True)
class Blessed:
    """The result of `bless`."""

    outcomes: tuple[Outcome, ...]
    """The outcomes given, with new verdicts of their golden checks."""
    written: tuple[str, ...]
    """The golden files that changed."""
    left: tuple[str, ...]
    """Why other golden files were left as they are, a sentence for each."""


def bless(cases: Sequence[Case], outcomes: Sequence[Outcome]) -> Blessed:
    """Store the golden texts of each case from its first trial that passed all other checks. Raises OSError.

    A trial that missed another check is not an example to follow. If two cases want different texts in one file, the
    file stays as it is, because one of them would always miss.
    """
    wanted: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    """The cases that want a text, by path and text."""
    left: list[str] = []
    for case in cases:
        goldens = [check for check in case.checks if _is_golden(check) and not check.is_negated]
        if not goldens:
            continue
        example = _find_example(case, outcomes)
        if example is None:
            left.append(f"{case.id}: no trial passed its other checks, so its golden files stay as they are")
            continue
        for check in goldens:
            text = _find_text(example.trace, check.arguments["file"])
            if text is not None:
                wanted[check.arguments["path"]][_normalize(text) + "\n"].append(case.id)

    written: list[str] = []
    for path, cases_by_text in wanted.items():
        if len(cases_by_text) > 1:
            left.append(_describe_conflict(path, cases_by_text))
            continue
        [text] = cases_by_text
        if not _is_stored(path, text):
            _write(path, text)
            written.append(path)

    checks = {case.id: case.checks for case in cases}
    looked_again = tuple(_look_again(outcome, checks[outcome.case]) for outcome in outcomes)
    return Blessed(looked_again, tuple(written), tuple(left))


def _find_example(case: Case, outcomes: Iterable[Outcome]) -> Outcome | None:
    """Return the first trial with the skill that passed every check but the golden ones."""
    for outcome in outcomes:
        if outcome.case != case.id or outcome.arm != "with" or outcome.trace.error:
            continue
        others = [
            result.verdict
            for check, result in zip(case.checks, outcome.checks, strict=True)
            if not _is_golden(check) or check.is_negated
        ]
        if all(verdict.passed and not verdict.error for verdict in others):
            return outcome
    return None


def _describe_conflict(path: str, cases_by_text: Mapping[str, Sequence[str]]) -> str:
    cases = list(dict.fromkeys(case for ids in cases_by_text.values() for case in ids))
    if len(cases) > 1:
        return f"{path}: {' and '.join(cases[:3])} want different texts in it, so it stays as it is"
    return f"{path}: {cases[0]} has two checks that want different texts in it, so it stays as it is"


def _look_again(outcome: Outcome, checks: Sequence[Check]) -> Outcome:
    if outcome.trace.error:
        return outcome
    results = []
    for check, result in zip(checks, outcome.checks, strict=True):
        if _is_golden(check):
            verdict = check.kind.function(outcome.trace, **check.arguments)
            assert isinstance(verdict, Verdict)
            result = replace(result, verdict=check.conclude(verdict, outcome.trace))
        results.append(result)

    return replace(outcome, checks=tuple(results))


def _is_stored(path: str, text: str) -> bool:
    try:
        return _normalize(text) == _normalize(read_stored(path))
    except (OSError, ValueError):
        return False


def _write(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    replace_file(path, text.encode(), 0o666)


def _normalize(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n")
