"""Evals: whether a skill is found, loaded and followed, and what that costs. Needs the extra `evals`.

cases, faults = find_cases(["skills/pdf"])
trace = await run_trial(cases[0], resolve(Settings(model="anthropic:claude-sonnet-5-5")))
verdicts = [await check.look(one, trace) for one in cases[0].checks]
"""

from typing import TYPE_CHECKING

from skillshelf._lazy import export_lazily

if TYPE_CHECKING:
    from skillshelf.evals import check
    from skillshelf.evals._candidates import (
        Candidate,
        Present,
        make_candidates,
        plan_of,
        present_skill,
        queries_among,
        read_descriptions,
    )
    from skillshelf.evals._case import Case, Edit, Message
    from skillshelf.evals._decide import Decision, decide
    from skillshelf.evals._folders import is_skill, skills_in
    from skillshelf.evals._plan import Plan, make_plan
    from skillshelf.evals._recording import Recording, Replay
    from skillshelf.evals._results import Outcome, Run
    from skillshelf.evals._tape import AGAIN
    from skillshelf.evals._trace import Trace
    from skillshelf.evals._trial import SECONDS, run_trial
    from skillshelf.evals.check import Check, Verdict
    from skillshelf.evals.formats import find_cases, list_cases

__all__ = [
    "AGAIN",
    "SECONDS",
    "Candidate",
    "Case",
    "Check",
    "Decision",
    "Edit",
    "Message",
    "Outcome",
    "Plan",
    "Present",
    "Recording",
    "Replay",
    "Run",
    "Trace",
    "Verdict",
    "check",
    "decide",
    "find_cases",
    "is_skill",
    "list_cases",
    "make_candidates",
    "make_plan",
    "plan_of",
    "present_skill",
    "queries_among",
    "read_descriptions",
    "run_trial",
    "skills_in",
]

__getattr__ = export_lazily(
    __name__,
    {
        "_candidates": [
            "Candidate",
            "Present",
            "make_candidates",
            "plan_of",
            "present_skill",
            "queries_among",
            "read_descriptions",
        ],
        "_case": ["Case", "Edit", "Message"],
        "_decide": ["Decision", "decide"],
        "_folders": ["is_skill", "skills_in"],
        "_plan": ["Plan", "make_plan"],
        "_recording": ["Recording", "Replay"],
        "_results": ["Outcome", "Run"],
        "_tape": ["AGAIN"],
        "_trace": ["Trace"],
        "_trial": ["SECONDS", "run_trial"],
        "check": ["Check", "Verdict"],
        "formats": ["find_cases", "list_cases"],
    },
    extra="evals",
)
