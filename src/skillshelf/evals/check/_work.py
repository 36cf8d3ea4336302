"""What was done: tools called, files written, tokens and money spent."""

from collections.abc import Mapping
from typing import Any

from skillshelf.agent.events import ToolCalled, ToolReturned
from skillshelf.errors import EvalError
from skillshelf.evals._trace import Trace
from skillshelf.evals.check._base import Check, Verdict
from skillshelf.evals.check._words import clip, refuse_empty, some

# What the gate and a skill's own policy answer in the place of a tool. A tool that ran and failed says something else.
_REFUSALS = (
    "is not allowed: the policy is",
    "needs the person's approval",
    "The person did not allow this call",
    "is blocked by the policy of its skill",
)


def tool_called(name: str, arguments: Mapping[str, Any] | None = None) -> Check:
    """The model called the tool, with these arguments among others. A call that was refused does not count."""
    refuse_empty("tool_called", name=name)
    wanted = dict(arguments or {})

    def look(trace: Trace) -> Verdict:
        found = [event for event in trace.events if isinstance(event, ToolCalled)]
        ended = {event.id: _ended(event) for event in trace.events if isinstance(event, ToolReturned)}
        held = any(
            one.name == name and is_part(wanted, one.arguments) and ended.get(one.id) != "refused" for one in found
        )
        said = [f"{one.name} {one.arguments}{_aside(ended.get(one.id, ''))}" for one in found]
        return Verdict(held, f"tools called: {some(said)}")

    return Check(f"tool_called {name} {wanted or ''}".rstrip(), look)


def _ended(event: ToolReturned) -> str:
    """How a call ended, where it did not end well. A tool that failed may have done something all the same."""
    if event.ok:
        return ""
    return "refused" if any(words in event.text for words in _REFUSALS) else "failed"


def _aside(ended: str) -> str:
    return f" ({ended})" if ended else ""


def is_part(wanted: Any, given: Any) -> bool:
    """Whether a value has all that is wanted: a mapping may have more keys, at every depth; all else is equal."""
    if isinstance(wanted, Mapping):
        return isinstance(given, Mapping) and all(
            key in given and is_part(value, given[key]) for key, value in wanted.items()
        )
    return type(wanted) is type(given) and bool(wanted == given)  # True is no 1 here


def file_contains(path: str, text: str) -> Check:
    """A file of the workspace has this text after the trial."""
    refuse_empty("file_contains", path=path, text=text)

    def look(trace: Trace) -> Verdict:
        state = trace.files.get(path)
        if state is None:
            return Verdict(False, f"there is no file {path}; changed: {some(_changed(trace))}")
        if state.text is None:
            return Verdict(False, error=f"{path} is no text, or too long to look into.")
        return Verdict(text in state.text, f"{path} is: {clip(state.text)!r}")

    return Check(f"file_contains {path} {clip(text, 40)!r}", look)


def file_unchanged(path: str) -> Check:
    """A file that the case put there is as it was."""
    refuse_empty("file_unchanged", path=path)

    def look(trace: Trace) -> Verdict:
        if path in trace.removed:
            return Verdict(False, f"{path} is gone")
        if path not in trace.files:
            return Verdict(False, error=f"The case has no file {path} that could change.")
        changed = trace.files[path].changed
        return Verdict(not changed, f"{path} {'changed, or is new' if changed else 'is as it was'}")

    return Check(f"file_unchanged {path}", look)


def max_tokens(tokens: int) -> Check:
    """The model calls of the trial took no more than this, input and output together."""
    if type(tokens) is not int or tokens < 0:  # not isinstance: True is an int
        raise EvalError(f"max_tokens is {tokens!r}", "It is a whole number of tokens")

    def look(trace: Trace) -> Verdict:
        used = trace.usage.input + trace.usage.output
        return Verdict(used <= tokens, f"{used:,} tokens of at most {tokens:,}")

    return Check(f"max_tokens {tokens}", look)


def max_cost(dollars: float) -> Check:
    """The model calls of the trial cost no more than this, in US dollars."""
    if isinstance(dollars, bool) or not isinstance(dollars, int | float) or dollars < 0:
        raise EvalError(f"max_cost is {dollars!r}", "It is a number of US dollars, such as 0.05")

    def look(trace: Trace) -> Verdict:
        cost = trace.usage.cost
        if cost is None:
            return Verdict(False, error="What this model costs is not known.")
        return Verdict(cost <= dollars, f"${cost:.4f} of at most ${dollars:.4f}")

    return Check(f"max_cost {dollars}", look)


def _changed(trace: Trace) -> list[str]:
    return [path for path, state in trace.files.items() if state.changed]
