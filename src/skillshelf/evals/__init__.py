"""Evals: whether a skill is found, loaded and followed, and what that costs. Needs the extra `evals`.

cases, faults = find_cases(["skills/pdf"])
trace = await run_trial(cases[0], resolve(Settings(model="anthropic:claude-sonnet-5-5")))
verdicts = [await check.look(one, trace) for one in cases[0].checks]
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skillshelf.evals import checks as check
    from skillshelf.evals.case import Case, Edit, Message
    from skillshelf.evals.checks.base import Check, Verdict
    from skillshelf.evals.formats.find import find_cases, list_cases
    from skillshelf.evals.recording import Recording, Replay
    from skillshelf.evals.trace import Trace
    from skillshelf.evals.trial import run_trial

_PLACES = {
    "Case": "case",
    "Check": "checks.base",
    "Edit": "case",
    "Message": "case",
    "Recording": "recording",
    "Replay": "recording",
    "Trace": "trace",
    "Verdict": "checks.base",
    "find_cases": "formats.find",
    "list_cases": "formats.find",
    "run_trial": "trial",
}
__all__ = [
    "Case",
    "Check",
    "Edit",
    "Message",
    "Recording",
    "Replay",
    "Trace",
    "Verdict",
    "check",
    "find_cases",
    "list_cases",
    "run_trial",
]


def __getattr__(name: str) -> Any:
    if name == "check":
        return import_module("skillshelf.evals.checks")
    if name in _PLACES:  # the model's libraries take seconds to import, and reading cases needs none of them
        return getattr(import_module(f"skillshelf.evals.{_PLACES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
