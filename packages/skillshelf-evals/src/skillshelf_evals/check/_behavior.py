"""Checks of the agent's behaviour: its answers, the tools and commands it ran, the tokens it spent."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from skillshelf.errors import EvalError
from skillshelf.text import truncate
from skillshelf_agent import SHELL
from skillshelf_agent.events import ToolCalled, ToolReturned
from skillshelf_evals._text import MAX_QUOTED, list_items
from skillshelf_evals._trace import Trace
from skillshelf_evals.check._check import NonEmpty, Verdict, built_in
from skillshelf_evals.check._search import Regex, search_text


def _check_turn(turn: int) -> int:
    if turn < 1:
        raise EvalError(f"turn is {turn}", "The first answer is 1; leave `turn` out for the last one")
    return turn


TurnNumber = Annotated[int, AfterValidator(_check_turn)]
NotNegative = Annotated[int, Field(ge=0)]
Dollars = Annotated[float, Field(ge=0, allow_inf_nan=False)]


def _describe_search(wanted: str, turn: int | None) -> str:
    shown = repr(truncate(wanted, 60))
    return shown if turn is None else f"{shown} in answer {turn}"


@built_in(describe=lambda text, turn: _describe_search(text, turn))
def response_contains(trace: Trace, text: NonEmpty, turn: TurnNumber | None = None) -> Verdict:
    """Check that the answer to the last message, or to the message of this number, contains a text."""
    answer = _find_answer(trace, turn)
    if isinstance(answer, Verdict):
        return answer
    return Verdict(text in answer, f"the answer: {truncate(answer, MAX_QUOTED)!r}")


@built_in(describe=lambda regex, turn: _describe_search(regex, turn))
async def response_matches(trace: Trace, regex: Regex, turn: TurnNumber | None = None) -> Verdict:
    """Check that a pattern matches somewhere in the answer to the last message, or to the message of this number.

    A search that takes longer than a few seconds is stopped, and the verdict is an error.
    """
    answer = _find_answer(trace, turn)
    if isinstance(answer, Verdict):
        return answer
    return await search_text(regex, answer, "the answer")


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


@built_in(describe=lambda text: repr(truncate(text, 60)))
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
    """True if a value has all that is wanted. Mappings may have more keys, at every depth; all else must be equal.

    A case file's lists and a call's are of different classes, so items are compared one by one.
    """
    if isinstance(wanted, Mapping):
        if not isinstance(given, Mapping):
            return False
        return all(key in given and is_part(value, given[key]) for key, value in wanted.items())
    if isinstance(wanted, list | tuple):
        if not isinstance(given, list | tuple) or len(wanted) != len(given):
            return False
        return all(map(is_part, wanted, given))
    return type(wanted) is type(given) and bool(wanted == given)  # True and 1 are different arguments


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
