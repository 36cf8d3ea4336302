"""`--update-golden`: what a run gave becomes what is right, where the rest of the run says that it was."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from skillshelf.evals.check._base import Check, Verdict
from skillshelf.evals.check._golden import Golden, store, text_for

if TYPE_CHECKING:
    from skillshelf.evals._case import Case
    from skillshelf.evals._results import Outcome


@dataclass(frozen=True, slots=True)
class Blessed:
    """What came of it."""

    outcomes: tuple[Outcome, ...]
    """As they were, but for what the golden checks say now."""
    written: tuple[str, ...]
    left: tuple[str, ...]
    """The texts that were not stored, and why, a sentence for each."""


def bless(cases: Sequence[Case], outcomes: Sequence[Outcome]) -> Blessed:
    """Store the golden texts of each case from its first trial that passed all other checks. Raises OSError.

    A trial that missed something else is no model for the next ones; and of two cases that want different texts in one
    file, one would always miss.
    """
    wanted: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    left = []
    for case in cases:
        if not any(map(_is_learnt, case.checks)):
            continue
        good = _good(case, outcomes)
        if good is None:
            left.append(f"{case.id}: no trial passed its other checks, so that its golden files stay as they are")
            continue
        for path, text in (one for check in case.checks if (one := text_for(check, good.trace))):
            wanted[path][text].append(case.id)
    left += [_quarrel(path, texts) for path, texts in wanted.items() if len(texts) > 1]
    settled = [(path, *texts) for path, texts in wanted.items() if len(texts) == 1]
    written = tuple(path for path, text in settled if store(path, text))
    checks = {case.id: case.checks for case in cases}
    return Blessed(tuple(_looked_again(one, checks[one.case]) for one in outcomes), written, tuple(left))


def _good(case: Case, outcomes: Iterable[Outcome]) -> Outcome | None:
    """The first trial with the skill of which everything but the golden texts is right."""
    for one in outcomes:
        if (one.case, one.arm) != (case.id, "with") or one.trace.error:
            continue
        made = zip(case.checks, one.checks, strict=True)
        if all(_is_learnt(check) or (result.verdict.passed and not result.verdict.error) for check, result in made):
            return one
    return None


def _is_learnt(check: Check) -> bool:
    return isinstance(check, Golden) and not check.negated


def _quarrel(path: str, texts: Mapping[str, Sequence[str]]) -> str:
    cases = list(dict.fromkeys(case for ids in texts.values() for case in ids))
    who = " and ".join(cases[:3]) if len(cases) > 1 else f"{cases[0]} has two checks that"
    return f"{path}: {who} want different texts in it, so that it stays as it is"


def _looked_again(outcome: Outcome, checks: Sequence[Check]) -> Outcome:
    if outcome.trace.error:
        return outcome
    results = []
    for check, result in zip(checks, outcome.checks, strict=True):
        found = check.look(outcome.trace) if isinstance(check, Golden) else result.verdict
        results.append(replace(result, verdict=found) if isinstance(found, Verdict) else result)
    return replace(outcome, checks=tuple(results))
