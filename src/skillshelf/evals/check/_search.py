"""Searching a text for a pattern that a case gives, without letting the search take forever."""

import asyncio
import json
import re
import subprocess
import sys
from typing import Annotated

from pydantic import AfterValidator

from skillshelf.errors import EvalError
from skillshelf.evals._limits import MAX_TEXT_SEARCHED_HERE, SEARCH_SECONDS
from skillshelf.evals._text import MAX_QUOTED
from skillshelf.evals.check._check import NonEmpty, Verdict
from skillshelf.text import truncate

_BRANCH = re.compile(r"[*+?{|]")
# A match cannot be stopped from outside its process.
_SEARCH_PROGRAM = "import json, re, sys; pattern, text = json.load(sys.stdin); print(bool(re.search(pattern, text)))"


def _check_regex(regex: str) -> str:
    try:
        re.compile(regex)
    except (re.error, RecursionError, OverflowError) as error:
        raise EvalError(
            f"{truncate(regex, MAX_QUOTED)!r} is not a regular expression: {error}", "Use the syntax of Python"
        ) from None
    return regex


Regex = Annotated[NonEmpty, AfterValidator(_check_regex)]


async def search_text(regex: str, text: str, subject: str) -> Verdict:
    """Return whether a pattern matches somewhere in a text, which the verdict calls `subject`.

    A search that takes longer than a few seconds is stopped, and the verdict is an error.
    """
    # With one repetition or choice a search is quadratic at worst.
    is_quick = len(_BRANCH.findall(regex)) <= 1 and len(text) <= MAX_TEXT_SEARCHED_HERE
    if is_quick:
        held = bool(re.search(regex, text))
    else:
        command = [sys.executable, "-I", "-S", "-c", _SEARCH_PROGRAM]
        task = f"The search for {truncate(regex, MAX_QUOTED)!r}"
        printed = await run_apart(command, json.dumps([regex, text]), task)
        if isinstance(printed, Verdict):
            return printed
        held = printed.strip() == "True"

    return Verdict(held, f"{subject}: {truncate(text, MAX_QUOTED)!r}")


async def run_apart(command: list[str], text: str, task: str) -> str | Verdict:
    """Give a text to a program and return what it prints, or the verdict that its task takes too long or fails."""
    try:
        done = await asyncio.to_thread(
            subprocess.run, command, input=text, text=True, capture_output=True, timeout=SEARCH_SECONDS, check=True
        )
    except subprocess.TimeoutExpired:
        advice = "write patterns without nested repetitions"
        return Verdict(False, error=f"{task} took more than {SEARCH_SECONDS:.0f} s: {advice}")
    except (subprocess.SubprocessError, OSError) as error:
        return Verdict(False, error=f"{task} failed: {error}")
    return str(done.stdout)
