"""Checks of the agent's behaviour: its answers, the tools it called, the files it wrote, the tokens it spent."""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from skillshelf.agent import SHELL
from skillshelf.agent.events import ToolCalled, ToolReturned
from skillshelf.errors import EvalError
from skillshelf.evals._text import clip_quote, list_items
from skillshelf.evals._trace import Trace
from skillshelf.evals.check._check import NonEmpty, Verdict, built_in
from skillshelf.text import clip

SEARCH_SECONDS = 3.0
# With one repetition or choice a search is quadratic at worst: some milliseconds for this much text.
MAX_TEXT_SEARCHED_HERE = 4096
_BRANCH = re.compile(r"[*+?{|]")
# A match cannot be stopped from outside its process.
_SEARCH_PROGRAM = "import json, re, sys; pattern, text = json.load(sys.stdin); print(bool(re.search(pattern, text)))"


def _check_turn(turn: int) -> int:
    if turn < 1:
        raise EvalError(f"turn is {turn}", "The first answer is 1; leave `turn` out for the last one")
    return turn


def _check_regex(regex: str) -> str:
    try:
        re.compile(regex)
    except (re.error, RecursionError, OverflowError) as error:
        raise EvalError(
            f"{clip_quote(regex)!r} is not a regular expression: {error}", "Use the syntax of Python"
        ) from None
    return regex


TurnNumber = Annotated[int, AfterValidator(_check_turn)]
Regex = Annotated[NonEmpty, AfterValidator(_check_regex)]
NotNegative = Annotated[int, Field(ge=0)]
Dollars = Annotated[float, Field(ge=0, allow_inf_nan=False)]


def _describe_search(wanted: str, turn: int | None) -> str:
    shown = repr(clip(wanted, 60))
    return shown if turn is None else f"{shown} in answer {turn}"


@built_in(describe=lambda text, turn: _describe_search(text, turn))
def response_contains(trace: Trace, text: NonEmpty, turn: TurnNumber | None = None) -> Verdict:
    """Check that the answer to the last message, or to the message of this number, contains a text."""
    answer = _find_answer(trace, turn)
    if isinstance(answer, Verdict):
        return answer
    return Verdict(text in answer, f"the answer: {clip_quote(answer)!r}")


@built_in(describe=lambda regex, turn: _describe_search(regex, turn))
async def response_matches(trace: Trace, regex: Regex, turn: TurnNumber | None = None) -> Verdict:
    """Check that a pattern matches somewhere in the answer to the last message, or to the message of this number.

    A search that takes longer than a few seconds is stopped, and the verdict is an error.
    """
    answer = _find_answer(trace, turn)
    if isinstance(answer, Verdict):
        return answer
    try:
        held = await _search(regex, answer)
    except subprocess.TimeoutExpired:
        advice = f"took more than {SEARCH_SECONDS:.0f} s: write it without nested repetitions"
        return Verdict(False, error=f"The search for {clip_quote(regex)!r} {advice}")
    except (subprocess.SubprocessError, OSError) as error:
        return Verdict(False, error=f"The search for {clip_quote(regex)!r} failed: {error}")

    return Verdict(held, f"the answer: {clip_quote(answer)!r}")


async def _search(regex: str, text: str) -> bool:
    is_quick = len(_BRANCH.findall(regex)) <= 1 and len(text) <= MAX_TEXT_SEARCHED_HERE
    if is_quick:
        return bool(re.search(regex, text))

    command = [sys.executable, "-I", "-S", "-c", _SEARCH_PROGRAM]
    done = await asyncio.to_thread(
        subprocess.run,
        command,
        input=json.dumps([regex, text]),
        text=True,
        capture_output=True,
        timeout=SEARCH_SECONDS,
    )
    done.check_returncode()
    return str(done.stdout).strip() == "True"


def _find_answer(trace: Trace, turn: int | None) -> str | Verdict:
    """Return the answer to look at, or a verdict with the error that there is none."""
    if turn is None:
        return trace.answer
    if turn <= len(trace.answers):
        return trace.answers[turn - 1]
    # The case decides how many messages there are, so a missing answer is the case's own fault.
    return Verdict(False, error=f"There is no answer {turn}: the case has {len(trace.answers)}.")


@built_in(describe=lambda name, arguments: f"{name} {arguments}" if arguments else name)
def tool_called(trace: Trace, name: NonEmpty, arguments: dict[str, Any] | None = None) -> Verdict:
    """Check that the model called the tool with these arguments, among others. A refused call does not count."""
    calls = [event for event in trace.events if isinstance(event, ToolCalled)]
    problems = {event.id: _problem_of(event) for event in trace.events if isinstance(event, ToolReturned)}
    held = False
    shown = []
    for call in calls:
        problem = problems.get(call.id, "")
        if call.name == name and is_part(arguments or {}, call.arguments) and problem != "refused":
            held = True
        note = f" ({problem})" if problem else ""
        shown.append(f"{call.name} {call.arguments}{note}")

    return Verdict(held, f"tools called: {list_items(shown)}")


@built_in(describe=lambda text: repr(clip(text, 60)))
def command_run(trace: Trace, text: NonEmpty) -> Verdict:
    """Check that the model ran a command that contains this text. A refused command does not count."""
    refused = {event.id for event in trace.events if isinstance(event, ToolReturned) and event.refused}
    commands = []
    for event in trace.events:
        if isinstance(event, ToolCalled) and event.name == SHELL and event.id not in refused:
            commands.append(str(event.arguments.get("command", "")))
    return Verdict(any(text in command for command in commands), f"commands run: {list_items(commands)}")


def _problem_of(event: ToolReturned) -> str:
    """Return how a call went wrong, or an empty text. A tool that failed may have had an effect all the same."""
    if event.ok:
        return ""
    return "refused" if event.refused else "failed"


def is_part(wanted: Any, given: Any) -> bool:
    """True if a value has all that is wanted. Mappings may have more keys, at every depth; all else must be equal."""
    if isinstance(wanted, Mapping):
        if not isinstance(given, Mapping):
            return False
        return all(key in given and is_part(value, given[key]) for key, value in wanted.items())
    return type(wanted) is type(given) and bool(wanted == given)  # True and 1 are different arguments


@built_in(describe=lambda path, text: f"{path} {clip(text, 40)!r}")
def file_contains(trace: Trace, path: NonEmpty, text: NonEmpty) -> Verdict:
    """Check that a file of the workspace contains this text after the trial."""
    state = trace.files.get(path)
    if state is None:
        changed = [path for path, state in trace.files.items() if state.changed]
        return Verdict(False, f"there is no file {path}; changed: {list_items(changed)}")
    if state.text is None:
        return Verdict(False, error=f"{path} is not text, or too long to search.")
    return Verdict(text in state.text, f"{path} is: {clip_quote(state.text)!r}")


@built_in()
def file_exists(trace: Trace, path: NonEmpty) -> Verdict:
    """Check that the workspace has this file after the trial. `*` stands for any part of a name: `reports/*.json`."""
    held = any(_fits(name, path) for name in trace.files)
    return Verdict(held, f"created or changed: {list_items(list(trace.changed_files))}")


def _fits(path: str, pattern: str) -> bool:
    """True if each part of a path fits that of a pattern."""
    parts = path.split("/")
    wanted = pattern.removeprefix("./").split("/")
    return len(parts) == len(wanted) and all(map(fnmatchcase, parts, wanted))


@built_in()
def file_unchanged(trace: Trace, path: NonEmpty) -> Verdict:
    """Check that a file of the case is as the case wrote it."""
    if path in trace.removed:
        return Verdict(False, f"{path} is gone")
    if path not in trace.files:
        return Verdict(False, error=f"The case has no file {path} that could change.")
    if trace.files[path].changed:
        return Verdict(False, f"{path} changed, or is new")
    return Verdict(True, f"{path} is as it was")


@built_in()
def max_tokens(trace: Trace, tokens: NotNegative) -> Verdict:
    """Check that the model calls of the trial took no more tokens than this, input and output together."""
    used = trace.usage.input + trace.usage.output
    return Verdict(used <= tokens, f"{used:,} tokens of at most {tokens:,}")


@built_in()
def max_cost(trace: Trace, dollars: Dollars) -> Verdict:
    """Check that the model calls of the trial cost no more than this, in US dollars."""
    cost = trace.usage.cost
    if cost is None:
        return Verdict(False, error="The price of this model is not known.")
    return Verdict(cost <= dollars, f"${cost:.4f} of at most ${dollars:.4f}")
