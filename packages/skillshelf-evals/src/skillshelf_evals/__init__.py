"""Evals: find out whether a skill is found, loaded and followed, and what it costs. Needs the extra `evals`.

cases, faults = find_cases(["skills/pdf"])
trace = await run_trial(cases[0], resolve(Settings(model="anthropic:claude-sonnet-5-5")))
verdicts = [await check.look(item, trace) for item in cases[0].checks]
"""

from typing import TYPE_CHECKING

from skillshelf.lazy import export_lazily
from skillshelf_evals import check
from skillshelf_evals._artefacts import Artefact
from skillshelf_evals._case import Case, Edit, Message
from skillshelf_evals._plan import make_plan
from skillshelf_evals._results import CaseInfo, CheckResult, Outcome, Run
from skillshelf_evals._trace import FileState, Trace
from skillshelf_evals.check import Check, Verdict
from skillshelf_evals.formats import find_cases, list_cases

if TYPE_CHECKING:
    from skillshelf_evals._recording import Recording, Replay
    from skillshelf_evals._trial import run_trial

__all__ = [
    "Artefact",
    "Case",
    "CaseInfo",
    "Check",
    "CheckResult",
    "Edit",
    "FileState",
    "Message",
    "Outcome",
    "Recording",
    "Replay",
    "Run",
    "Trace",
    "Verdict",
    "check",
    "find_cases",
    "list_cases",
    "make_plan",
    "run_trial",
]

# `skillshelf trust` and the chat read cases, and these import the libraries of models, which takes 0.9 s.
__getattr__ = export_lazily(__name__, {"_recording": ["Recording", "Replay"], "_trial": ["run_trial"]}, extra="evals")
