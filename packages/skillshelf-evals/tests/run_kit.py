"""Synthetic runs: one line for each case, one letter for each trial."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from skillshelf.listing import Entry
from skillshelf.listing._markup import render
from skillshelf_agent.events import Event, ReferenceLoaded, SkillLoaded, ToolCalled, Usage
from skillshelf_evals import CaseInfo, Check, CheckResult, Outcome, Run, Trace, Verdict, check
from skillshelf_evals._coverage import SkillContent
from skillshelf_evals._results import Arm

_ARMS: tuple[Arm, ...] = ("with", "without", "old")
_HOSTILE: tuple[tuple[str, Arm], ...] = (("m", "with"), ("p", "without"))


def system(*skills: str) -> str:
    """Return a system prompt that lists these skills."""
    return "You help.\n\n" + render([Entry(name, f"Does {name}.") for name in skills])


def loads(skill: str, *references: str) -> tuple[Event, ...]:
    """Return the events of a model that loads a skill and these of its references."""
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
    repeat: int = 1,
    events: Iterable[Event] = (),
    *,
    deciding: Check | None = None,
    reason: str = "it is not there",
    answer: str = "Done.",
    cost: float | None = 0.0,
) -> Outcome:
    """Return a trial that passed (`p`), missed (`m`), or had an infrastructure error (`e`).

    `deciding` is the only check, if it is given.
    """
    tokens = (1000 if arm == "with" else 700) + 10 * len(case)
    usage = Usage(tokens, 100, 0, None if cost is None else cost + tokens / 1e5)
    error = "ModelHTTPError: 529 overloaded" if letter == "e" else ""
    trace = Trace(tuple(events), (answer,), (system("pdf", "csv"),), {}, (), usage, 1.5, error)
    verdict = Verdict(letter != "m", "" if letter == "p" else reason)
    if error:
        checks: tuple[CheckResult, ...] = ()
    elif deciding:
        checks = (result(deciding, verdict),)
    else:
        called = result(check.tool_called("run_command"), Verdict(True, "called"))
        checks = (called, result(check.response_contains("total"), verdict))
    return Outcome(case, arm, repeat, checks, trace)


def result(made: Check, verdict: Verdict) -> CheckResult:
    return CheckResult(made.name, verdict, made.about)


def scripted_case(name: str) -> CaseInfo:
    """Return a case that ends the same way every time."""
    return replace(case(name), live=False)


def case(name: str, skill: str = "pdf", should: bool | None = None, prompt: str = "") -> CaseInfo:
    case_id = f"{skill}/{name}" if skill else name
    return CaseInfo(case_id, name, skill, should, f"skills/{skill}/evals/cases.yaml:7", prompt or f"Do {name}.")


def run_of(
    rows: Mapping[CaseInfo, tuple[str, ...]],
    events: Mapping[str, Iterable[Event]] | None = None,
    run_id: str = "r1",
    skills: Mapping[str, str] | None = None,
) -> Run:
    """Return a run with a word for each arm of a case: `("ppm", "mmm")` is three trials with the skill, three without.

    `events` holds those of the trials with the skill, by the id of the case.
    """
    outcomes = [
        outcome(
            info.id, letter, arm, at, (events or {}).get(info.id, ()) if arm == "with" else (), deciding=_trigger(info)
        )
        for info, words in rows.items()
        for arm, word in zip(_ARMS, words, strict=False)
        for at, letter in enumerate(word, 1)
    ]
    repeats = max(len(word) for words in rows.values() for word in words)
    baseline = "none" if any(len(words) > 1 for words in rows.values()) else ""
    made = "2026-11-15T10:00:00Z"
    return Run(run_id, made, "scripted", tuple(rows), tuple(outcomes), dict(skills or {}), repeats, baseline)


def _trigger(info: CaseInfo) -> Check | None:
    """Return the check that `should_trigger` stands for."""
    checks = check.trigger(info.skill, info.should_trigger)
    return checks[0] if checks else None


def hostile(text: str) -> Run:
    """Return a run with this text in every place that comes from outside."""
    info = CaseInfo(text + "1", text, text, True, text, text)
    other = replace(info, id=text + "2", should_trigger=None)
    events = (*loads(text, text), ReferenceLoaded(text, text, "model", 3), ToolCalled("1", text, {text: text}))
    outcomes = [
        outcome(one.id, letter, arm, 1, events, reason=text, answer=text)
        for one in (info, other)
        for letter, arm in _HOSTILE
    ]
    stray = replace(outcomes[0], repeat=2, trace=replace(outcomes[0].trace, error=text or "x", systems=(text,)))
    return Run(text, text, text, (info, other), (*outcomes, stray), {text: text}, 2, text)


TEXTS = {"pdf": SkillContent("# Forms\n", {"references/a.md": "# A\n", "references/b.md": "# B\n"})}


def sample(path: str = "skills/pdf/SKILL.md") -> Run:
    """Return a run of two skills with a baseline, an error, a stolen trigger and a false one."""
    rows = {
        case("fill"): ("ppp", "mmm"),
        case("merge"): ("ppm", "mmp"),
        case("split"): ("pep", "pmm"),
        case("sum", "csv"): ("ppp", "ppp"),
        case("ask", should=True, prompt="Fill in this form"): ("mmm",),
        case("leave", should=False, prompt="What is a PDF?"): ("mpp",),
    }
    events = {
        "pdf/fill": loads("pdf", "references/a.md"),
        "pdf/merge": loads("pdf"),
        "pdf/ask": loads("csv"),
        "pdf/leave": loads("pdf"),
        "csv/sum": loads("csv"),
    }
    return run_of(rows, events, skills={"pdf": path})
