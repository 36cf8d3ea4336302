"""Searching a text for a pattern that a case gives, without letting the search take forever."""

import re
from typing import Annotated, Any

from pydantic import AfterValidator

from skillshelf.errors import EvalError
from skillshelf.sandbox import WorkerError, WorkerLimits, call_worker
from skillshelf.text import truncate
from skillshelf_evals._limits import MAX_TEXT_SEARCHED_HERE, SEARCH_SECONDS
from skillshelf_evals._text import MAX_QUOTED
from skillshelf_evals.check import _worker
from skillshelf_evals.check._check import NonEmpty, Verdict

_BRANCH = re.compile(r"[*+?{|]")


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
        task = f"The search for {truncate(regex, MAX_QUOTED)!r}"
        found = await run_apart({"regex": regex, "text": text}, task)
        if isinstance(found, Verdict):
            return found
        held = bool(found)

    return Verdict(held, f"{subject}: {truncate(text, MAX_QUOTED)!r}")


async def run_apart(request: dict[str, Any], task: str) -> Any:
    """Return the answer of a worker, or the verdict that its task takes too long or fails."""
    try:
        return await call_worker(_worker.__file__, request, WorkerLimits(), seconds=SEARCH_SECONDS)
    except WorkerError as error:
        if error.kind == "time":
            advice = "write patterns without nested repetitions"
            return Verdict(False, error=f"{task} took more than {SEARCH_SECONDS:.0f} s: {advice}")
        return Verdict(False, error=f"{task} failed: {error}")
    except OSError as error:
        return Verdict(False, error=f"{task} failed: {error}")
