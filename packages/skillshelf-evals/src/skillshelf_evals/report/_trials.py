"""The trials of a page: the list of cases, and the block of data that the page's script searches and draws.

Transcripts are drawn on demand. A text that occurs often, such as a system prompt or the instructions of a skill, is
stored once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, get_args

from skillshelf.shelf import LOAD_TOOL
from skillshelf.text import clean, count_noun, to_json, truncate
from skillshelf_agent.events import (
    Event,
    Failed,
    Finished,
    LoadRepeated,
    Notice,
    ReferenceDenied,
    ReferenceLoaded,
    SkillInvoked,
    SkillLoaded,
    SkillsReloaded,
    Text,
    Thinking,
    ToolCalled,
    ToolReturned,
)
from skillshelf_evals._artefacts import ARTEFACTS_FOLDER, NO_ARTEFACTS, Artefacts
from skillshelf_evals._coverage import list_offered
from skillshelf_evals._results import CheckResult, Outcome
from skillshelf_evals._text import format_money
from skillshelf_evals._trace import CommandRun, FileState, Trace
from skillshelf_evals.report._format import MAX_REASON, format_count, format_seconds
from skillshelf_evals.report._summary import (
    ARMS,
    STOPPED,
    CaseStatus,
    CaseSummary,
    Miss,
    Summary,
    find_error,
    find_stop,
)
from skillshelf_evals.report._tables import format_case_rate, link_trials

MAX_TEXT = 4_000
"""Characters of one text in a transcript."""
MAX_STEPS = 200
MAX_SIZE = 12_000_000
"""Characters of all transcripts of a page. With more, phones no longer open it."""
_STEP_SIZE = 60
_COPY_PATH = re.compile(rf"{ARTEFACTS_FOLDER}/[A-Za-z0-9_-][A-Za-z0-9._-]*/[A-Za-z0-9_-][A-Za-z0-9._-]*")

StepKind = Literal["system", "user", "assistant", "thinking", "tool", "skill", "file", "command", "notice", "error"]
MAX_TRIALS = 10_000
"""Rows on a page. `run.json` has the others."""


@dataclass(frozen=True, slots=True)
class Step:
    """A part of a transcript."""

    kind: StepKind
    title: str
    text: str = ""
    result: str | None = None
    """The answer of a tool."""
    ok: bool = True
    """False for a call that failed or was refused."""


def list_steps(trace: Trace) -> list[Step]:
    """Return a trial as a reader follows it: prompts, messages, calls with their results, loads, changed files, and the
    commands of checks."""
    steps = [*_describe_systems(trace.systems), *_describe_turns(trace), *_describe_files(trace)]
    steps += [_describe_command(run) for run in trace.command_runs]
    if len(steps) <= MAX_STEPS:
        return steps
    half = MAX_STEPS // 2
    left_out = len(steps) - 2 * half
    note = Step("notice", f"{count_noun(left_out, 'step')} left out here: run.json has them")
    return [*steps[:half], note, *steps[-half:]]


def _describe_systems(systems: Sequence[str]) -> Iterator[Step]:
    """Yield the system prompt, and its later versions with the number of the call that they begin with."""
    last = None
    for number, system in enumerate(systems, 1):
        if system == last:
            continue
        last = system
        yield Step("system", "System prompt" if number == 1 else f"System prompt from call {number} on", system)
        names = [f"{name} (in full)" if is_in_full else name for name, is_in_full in list_offered(system)]
        yield Step("skill", f"Listed: {', '.join(names)}" if names else "No skill is listed", ok=bool(names))


def _describe_turns(trace: Trace) -> list[Step]:
    """Return the messages of the user, each with the events that follow it."""
    steps: list[Step] = []
    open_calls: dict[str, int] = {}
    messages = list(trace.messages)
    is_new_turn = True
    for event in trace.events:
        if is_new_turn and messages:
            steps.append(Step("user", "User", messages.pop(0)))
        is_new_turn = isinstance(event, Finished | Failed)
        if isinstance(event, ToolCalled):
            open_calls[event.id] = len(steps)
        if isinstance(event, ToolReturned) and event.id in open_calls:
            number = open_calls.pop(event.id)
            steps[number] = replace(steps[number], result=event.text, ok=event.ok)
        elif isinstance(event, Text | Thinking):
            _add_piece(steps, event)
        else:
            steps += _describe_event(event, steps)
    return [*steps, *(Step("user", "User", message) for message in messages)]


def _add_piece(steps: list[Step], event: Text | Thinking) -> None:
    """Append a piece of an answer to the step before it, if that is of the same kind."""
    kind: StepKind = "assistant" if isinstance(event, Text) else "thinking"
    if steps and steps[-1].kind == kind:
        steps[-1] = replace(steps[-1], text=steps[-1].text + event.text)
    else:
        steps.append(Step(kind, "Model" if kind == "assistant" else "Reasoning", event.text))


def _describe_event(event: Event, steps: Sequence[Step]) -> Iterator[Step]:
    match event:
        case ToolCalled(name=name, arguments=arguments):
            yield Step("tool", name, _write_arguments(arguments))
        case ToolReturned(name=name, text=text, ok=ok):
            yield Step("tool", name, result=text, ok=ok)
        case SkillInvoked(skill=skill, text=text):
            yield Step("skill", f"The user invoked {skill}", text)
        case SkillLoaded(skill=skill, by=by, size=size):
            yield Step("skill", f"{skill} loaded by the {by}, {size:,} bytes")
        case ReferenceLoaded(skill=skill, reference=reference, by=by, size=size):
            yield Step("skill", f"{skill} / {reference} loaded by the {by}, {size:,} bytes")
        case LoadRepeated(skill=skill, reference=reference, by=by):
            yield Step("skill", f"{skill}{f' / {reference}' if reference else ''} loaded again by the {by}")
        case ReferenceDenied(skill=skill, reference=reference, reason=reason):
            yield Step("skill", f"{skill} / {reference} not loaded: {reason}", ok=False)
        case SkillsReloaded(added=added, changed=changed, removed=removed):
            parts = [("added", added), ("changed", changed), ("removed", removed)]
            yield Step("skill", "Skills " + "; ".join(f"{word}: {', '.join(names)}" for word, names in parts if names))
        case Notice(text=text):
            yield Step("notice", "Notice", text)
        case Failed(message=message):
            yield Step("error", "The turn ended early", message, ok=False)
        case Finished(text=text) if not _ends_with(steps, text):
            yield Step("assistant", "Model", text)


def _write_arguments(arguments: dict[str, Any]) -> str:
    """Return the arguments of a call, each on its own lines, with texts as they are."""
    lines = []
    for name, value in arguments.items():
        text = value if isinstance(value, str) else to_json(value)
        lines.append(f"{name}:\n{text}" if "\n" in text else f"{name}: {text}")
    return "\n".join(lines)


def _ends_with(steps: Sequence[Step], text: str) -> bool:
    """True if the pieces of an answer that were shown already are all of it."""
    return not text or (bool(steps) and steps[-1].kind == "assistant" and steps[-1].text.strip() == text.strip())


def _describe_files(trace: Trace) -> Iterator[Step]:
    for path, state in trace.changed_files.items():
        yield Step("file", f"{path} written, {state.size:,} bytes", _show_content(state))
    for path in trace.removed:
        yield Step("file", f"{path} removed")


def _describe_command(run: CommandRun) -> Step:
    """Return a command of a check. Which exit code is right is the check's to say, so none is marked as bad."""
    outputs = [run.stdout, f"standard error:\n{run.stderr}" if run.stderr else ""]
    if run.cut:
        outputs.append(f"({run.cut:,} characters before that were not kept)")
    is_bad = bool(run.error) or run.timed_out or run.too_long
    return Step(
        "command", f"A command of a check {run.ending}", run.command, "\n".join(filter(None, outputs)), ok=not is_bad
    )


def _show_content(state: FileState) -> str:
    return "(not text, or too long to keep)" if state.text is None else state.text


class TranscriptBook:
    """The trials of a page as plain values, with every text stored once and a limit for all of them."""

    def __init__(self, max_size: int = MAX_SIZE) -> None:
        self.texts: list[str] = []
        self.left_out = 0
        """Trials for whose transcripts there was no room."""
        self._numbers: dict[str, int] = {}
        self._room = max_size

    def describe(self, outcome: Outcome) -> dict[str, Any]:
        """Return the checks and the steps of a trial. The steps are None if there is no room for them."""
        steps = [_trim(step) for step in list_steps(outcome.trace)]
        needed = self._measure(steps)
        if needed > self._room:
            self.left_out += 1
            plain_steps = None
        else:
            self._room -= needed
            plain_steps = [self._step_as_json(step) for step in steps]
        problem = find_error(outcome)
        return {
            "problem": self._add(show_text(problem)) if problem else None,
            "checks": [self._check_as_json(result) for result in outcome.checks],
            "steps": plain_steps,
            **_artefacts_as_json(outcome.artefacts),
        }

    def _measure(self, steps: Sequence[Step]) -> int:
        """Return how many more characters the page has with these steps."""
        new = {text for step in steps for text in (step.title, step.text, step.result) if text} - self._numbers.keys()
        return sum(map(len, new)) + _STEP_SIZE * len(steps)

    def _step_as_json(self, step: Step) -> dict[str, Any]:
        plain: dict[str, Any] = {"kind": step.kind, "title": self._add(step.title)}
        if step.text:
            plain["text"] = self._add(step.text)
        if step.result is not None:
            plain["result"] = self._add(step.result)
        if not step.ok:
            plain["bad"] = True
        return plain

    def _check_as_json(self, result: CheckResult) -> dict[str, Any]:
        verdict = result.verdict
        state = "held"
        if verdict.error:
            state = "error"
        elif not verdict.passed:
            state = "missed"
        reason = verdict.error or verdict.reason
        return {"name": self._add(show_text(result.name)), "state": state, "reason": self._add(show_text(reason))}

    def _add(self, text: str) -> int:
        """Return the number of a text, after adding it if it is new."""
        number = self._numbers.get(text)
        if number is None:
            number = self._numbers[text] = len(self.texts)
            self.texts.append(text)
        return number


def _artefacts_as_json(artefacts: Artefacts) -> dict[str, Any]:
    """Return the files that a trial left, if it left any, with links to their copies beside the page."""
    if artefacts == NO_ARTEFACTS:
        return {}
    files = []
    for file in artefacts.files:
        # A run that was read from a file could name any address here.
        if not _COPY_PATH.fullmatch(file.path):
            continue
        view = file.view if _COPY_PATH.fullmatch(file.view) else ""
        files.append(
            {
                "name": clean(file.name),
                "path": file.path,
                "view": view,
                "size": file.size,
                "is_image": file.kind == "image",
                "by_check": file.by_check,
            }
        )
    left_out = [f"{count_noun(one.files, 'file')} not kept: {clean(one.reason)}" for one in artefacts.left_out]
    return {"artefacts": files, "left_out": left_out}


def _trim(step: Step) -> Step:
    result = None if step.result is None else show_text(step.result)
    return replace(step, title=show_text(step.title), text=show_text(step.text), result=result)


def show_text(text: str) -> str:
    """Return a text as a page shows it: truncated, and with hidden characters written out. run.json has all of it."""
    return clean(truncate(text, MAX_TEXT))


class TrialRow(NamedTuple):
    """A trial in the list of its case."""

    number: int
    """Its place in the run, from 1."""
    arm: str
    repeat: int
    status: str
    way: str
    why: str
    spent: str


class CaseView(NamedTuple):
    """A case as the page shows it."""

    number: int
    summary: CaseSummary
    share: str
    facts: Sequence[str]
    misses: Sequence[tuple[Miss, str]]
    """Why trials missed, each with the address of these trials."""
    trials: Sequence[TrialRow]


class TrialList(NamedTuple):
    """The cases of a page with their trials, and the data behind them."""

    cases: Sequence[CaseView]
    cases_left_out: int
    transcripts_left_out: int
    data: dict[str, Any]


def list_trials(summary: Summary) -> TrialList:
    """Return the cases with their trials: misses first, then flaky ones, errors, and the rest."""
    order = get_args(CaseStatus)
    ordered = sorted(summary.total.cases, key=lambda case: order.index(case.status))
    # Frozen outcomes hold dictionaries, so they are known by their identity.
    numbers = {id(outcome): number for number, outcome in enumerate(summary.run.outcomes, 1)}
    book = TranscriptBook()
    faults = {fault.message: number for number, fault in enumerate(summary.faults, 1)}
    compared = {versus.base: {pair.case for pair in versus.pairs} for versus in summary.total.versus}

    views: list[CaseView] = []
    plain_cases: list[dict[str, Any]] = []
    plain_trials: list[dict[str, Any]] = []
    room = MAX_TRIALS
    for case in ordered:
        outcomes = [outcome for arm in ARMS if arm in case.arms for outcome in case.arms[arm].outcomes]
        room -= len(outcomes)
        if room < 0:
            break
        rows = [_describe_trial(numbers[id(outcome)], outcome, case.info.skill) for outcome in outcomes]
        for row, outcome in zip(rows, outcomes, strict=True):
            plain_trials.append(
                {
                    "number": row.number,
                    "case": len(views),
                    "arm": row.arm,
                    "repeat": row.repeat,
                    "status": row.status,
                    "spent": row.spent,
                    "loaded": [clean(name) for name in sorted(outcome.loaded)],
                    "fault": faults.get(find_error(outcome), 0) if row.status == "error" else 0,
                    "stopped": clean(find_stop(outcome)),
                    **book.describe(outcome),
                }
            )
        plain_cases.append(_case_as_json(case, [base for base, cases in compared.items() if case.info.id in cases]))
        views.append(_describe_case(len(views) + 1, case, rows))

    data = {"texts": book.texts, "cases": plain_cases, "trials": plain_trials}
    return TrialList(views, len(ordered) - len(views), book.left_out, data)


def _case_as_json(case: CaseSummary, compared: Sequence[str]) -> dict[str, Any]:
    info = case.info
    trigger = None
    if info.should_trigger is not None:
        trigger = "yes" if info.should_trigger else "no"
    return {
        "id": clean(info.id),
        "label": clean(info.label),
        "skill": clean(info.skill),
        "prompt": show_text(info.prompt),
        "trigger": trigger,
        "live": "yes" if info.live else "no",
        "compared": list(compared),
        "flaky": [arm for arm, trials in case.arms.items() if trials.counts.passed and trials.counts.missed],
    }


def _describe_case(number: int, case: CaseSummary, rows: Sequence[TrialRow]) -> CaseView:
    counts = case.main.counts
    share = f"{counts.passed} of {counts.trials}"
    if counts.errors:
        share += f", {count_noun(counts.errors, 'error')}"
    facts = [case.info.location, format_case_rate(case), *_describe_usage(case)]
    return CaseView(
        number=number,
        summary=case,
        share=share,
        facts=[fact for fact in facts if fact],
        misses=[(miss, _link_miss(case.info.id, miss)) for miss in case.main.misses],
        trials=rows,
    )


def _link_miss(case: str, miss: Miss) -> str:
    if miss.check == STOPPED:
        return link_trials(case=case, arm="with", status="missed", stopped=miss.reason)
    return link_trials(case=case, arm="with", failed=miss.check)


def _describe_usage(case: CaseSummary) -> list[str]:
    """Return the usage of a trial on each arm."""
    texts = []
    for arm in ARMS:
        spent = case.arms[arm].spent if arm in case.arms else None
        if spent and spent.trials:
            tokens = format_count(spent.tokens / spent.trials)
            texts.append(f"{arm}: {tokens} tokens, {format_seconds(spent.seconds / spent.trials)} a trial")
    return texts


def _describe_trial(number: int, outcome: Outcome, skill: str) -> TrialRow:
    usage = outcome.trace.usage
    spent = f"{format_count(usage.input + usage.output)} tokens, {format_seconds(outcome.trace.seconds)}"
    if outcome.judging:
        spent += f", judge {format_count(outcome.judging.input + outcome.judging.output)} tokens"
    if outcome.usage.cost is not None:
        spent += f", {format_money(outcome.usage.cost)}"
    return TrialRow(
        number=number,
        arm=outcome.arm,
        repeat=outcome.repeat,
        status=outcome.status,
        way="" if outcome.arm == "without" else " › ".join(trace_way(outcome, skill)),
        why=truncate(" ".join(_explain_trial(outcome).split()), MAX_REASON),
        spent=spent,
    )


def _explain_trial(outcome: Outcome) -> str:
    """Return why a trial did not pass, or ended early: the error, or the checks that did not hold."""
    if outcome.status == "error":
        return find_error(outcome)
    reasons = [f"{result.name}: {result.verdict.reason}" for result in outcome.failed]
    reasons += [f"{result.name}: {result.verdict.error}" for result in outcome.checks if result.verdict.error]
    if find_stop(outcome):
        reasons.insert(0, f"{STOPPED}: {find_stop(outcome)}")
    return "; ".join(reasons)


def trace_way(outcome: Outcome, skill: str) -> list[str]:
    """Return how far the skill under test came in a trial: offered, selected, loaded, followed.

    If the case belongs to no skill, any skill counts. Instructions that the listing shows in full are loaded with it.
    """
    listed: dict[str, bool] = {}
    for system in outcome.trace.systems:
        listed |= list_offered(system)
    is_in_full = listed.get(skill, False) if skill else any(listed.values())

    is_selected = False
    is_loaded = is_in_full
    for event in outcome.trace.events:
        match event:
            case ToolCalled(name=name, arguments=arguments) if name == LOAD_TOOL:
                is_selected |= not skill or arguments.get("skill_name") == skill
            case SkillInvoked(skill=found):
                is_selected |= found == skill or not skill
            case SkillLoaded(skill=found) | ReferenceLoaded(skill=found) | LoadRepeated(skill=found):
                is_loaded |= found == skill or not skill

    reached = {
        "offered": skill in listed if skill else bool(listed),
        "selected": is_selected,
        "loaded in the listing" if is_in_full else "loaded": is_loaded,
        "followed": is_loaded and outcome.status == "passed",
    }
    return [lane for lane, is_reached in reached.items() if is_reached]
