"""What was answered: a text, a pattern."""

import asyncio
import json
import re
import subprocess
import sys

from skillshelf.errors import EvalError
from skillshelf.evals._trace import Trace
from skillshelf.evals.check._base import Check, Verdict
from skillshelf.evals.check._words import clip, refuse_empty

_SECONDS = 3.0
# With one repetition or choice a search is quadratic at worst, which this much text makes some milliseconds.
_SHORT = 4096
_BRANCHES = re.compile(r"[*+?{|]")
# A match cannot be stopped from outside its process.
_SEARCH = "import json, re, sys; pattern, text = json.load(sys.stdin); print(bool(re.search(pattern, text)))"


def response_contains(text: str, turn: int | None = None) -> Check:
    """The answer to the last message, or to the message of this number, has this text."""
    refuse_empty("response_contains", text=text)
    _refuse_turn("response_contains", turn)

    def look(trace: Trace) -> Verdict:
        answer = _answer(trace, turn)
        return answer if isinstance(answer, Verdict) else Verdict(text in answer, f"the answer: {clip(answer)!r}")

    return Check(f"response_contains {clip(text, 60)!r}{_at(turn)}", look)


def response_matches(regex: str, turn: int | None = None) -> Check:
    """The answer to the last message, or to the message of this number, has a match of this pattern.

    A pattern that takes longer than a few seconds is stopped, and the check counts as not made.
    """
    refuse_empty("response_matches", regex=regex)
    _refuse_turn("response_matches", turn)
    try:
        re.compile(regex)
    except (re.error, RecursionError, OverflowError) as error:
        raise EvalError(f"{clip(regex)!r} is no pattern: {error}", "It is a regular expression of Python") from None

    async def look(trace: Trace) -> Verdict:
        answer = _answer(trace, turn)
        if isinstance(answer, Verdict):
            return answer
        try:
            held = await _search(regex, answer)
        except (subprocess.SubprocessError, OSError) as error:
            slow = isinstance(error, subprocess.TimeoutExpired)
            why = (
                f"took more than {_SECONDS:.0f} s: write it without nested repetitions" if slow else f"failed: {error}"
            )
            return Verdict(False, error=f"The search for {clip(regex)!r} {why}")
        return Verdict(held, f"the answer: {clip(answer)!r}")

    return Check(f"response_matches {clip(regex, 60)!r}{_at(turn)}", look)


async def _search(regex: str, text: str) -> bool:
    if len(_BRANCHES.findall(regex)) <= 1 and len(text) <= _SHORT:
        return bool(re.search(regex, text))
    command = [sys.executable, "-I", "-S", "-c", _SEARCH]
    done = await asyncio.to_thread(
        subprocess.run, command, input=json.dumps([regex, text]), text=True, capture_output=True, timeout=_SECONDS
    )
    done.check_returncode()
    return str(done.stdout).strip() == "True"


def _refuse_turn(check: str, turn: int | None) -> None:
    if turn is not None and turn < 1:
        raise EvalError(f"{check}: turn is {turn}", "The first answer is 1; without a turn, the last is meant")


def _answer(trace: Trace, turn: int | None) -> str | Verdict:
    if turn is None:
        return trace.answer
    if turn <= len(trace.answers):
        return trace.answers[turn - 1]
    # The case says how many messages there are: that it has none of this number is its own fault.
    return Verdict(False, error=f"There is no answer {turn}: the case has {len(trace.answers)}.")


def _at(turn: int | None) -> str:
    return "" if turn is None else f" in answer {turn}"
