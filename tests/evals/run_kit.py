"""Synthetic runs: a case in a line, with as many trials on each arm as letters."""

from collections.abc import Iterable, Mapping

from skillshelf.agent.events import Event, ReferenceLoaded, SkillLoaded, ToolCalled, Usage
from skillshelf.evals.checks.base import Verdict
from skillshelf.evals.results import Arm, CaseInfo, CheckResult, Outcome, Run
from skillshelf.evals.trace import Trace
from skillshelf.listing import Entry
from skillshelf.listing.markup import render

_ARMS: tuple[Arm, ...] = ("with", "without", "old")


def system(*skills: str) -> str:
    """A system prompt that lists them."""
    return "You help.\n\n" + render([Entry(name, f"Does {name}.") for name in skills])


def loads(skill: str, *references: str) -> tuple[Event, ...]:
    """The model loads a skill, and these of its references."""
    events: list[Event] = [
        ToolCalled("1", "load_skill_instructions", {"skill_name": skill}),
        SkillLoaded(skill, "model", 100),
    ]
    for reference in references:
        events.append(ToolCalled("2", "load_skill_instructions", {"skill_name": skill, "reference": reference}))
        events.append(ReferenceLoaded(skill, reference, "model", 50))
    return tuple(events)


def outcome(
    case: str,
    letter: str,
    arm: Arm = "with",
    repeat: int = 0,
    events: Iterable[Event] = (),
    *,
    reason: str = "it is not there",
    answer: str = "Done.",
    cost: float | None = 0.0,
) -> Outcome:
    """`p` passed, `m` missed, `e` an infrastructure error."""
    tokens = (1000 if arm == "with" else 700) + 10 * len(case)
    usage = Usage(tokens, 100, 0, None if cost is None else cost + tokens / 1e5)
    error = "ModelHTTPError: 529 overloaded" if letter == "e" else ""
    trace = Trace(tuple(events), (answer,), (system("pdf", "csv"),), {}, (), usage, 1.5, error)
    checks = (
        CheckResult("tool_called('run_command')", Verdict(True, "called")),
        CheckResult("response_contains('total')", Verdict(letter != "m", "" if letter == "p" else reason)),
    )
    return Outcome(case, arm, repeat, () if error else checks, trace)


def case(name: str, skill: str = "pdf", should: bool | None = None, prompt: str = "") -> CaseInfo:
    case_id = f"{skill}/{name}" if skill else name
    return CaseInfo(case_id, name, skill, should, f"skills/{skill}/evals/cases.yaml:7", prompt or f"Do {name}.")


def run_of(
    rows: Mapping[CaseInfo, tuple[str, ...]],
    events: Mapping[str, Iterable[Event]] | None = None,
    run_id: str = "r1",
    skills: Mapping[str, str] | None = None,
) -> Run:
    """Each case with a word for each arm: `("ppm", "mmm")` is three trials with and three without the skill.

    `events`: those of the trials with the skill, by the id of the case.
    """
    outcomes = [
        outcome(info.id, letter, arm, at, (events or {}).get(info.id, ()) if arm == "with" else ())
        for info, words in rows.items()
        for arm, word in zip(_ARMS, words, strict=False)
        for at, letter in enumerate(word)
    ]
    repeats = max(len(word) for words in rows.values() for word in words)
    baseline = "none" if any(len(words) > 1 for words in rows.values()) else ""
    made = "2026-11-15T10:00:00Z"
    return Run(run_id, made, "scripted", tuple(rows), tuple(outcomes), dict(skills or {}), repeats, baseline)
