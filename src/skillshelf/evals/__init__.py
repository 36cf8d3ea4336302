"""Evals: find out whether a skill is found, loaded and followed, and what it costs. Needs the extra `evals`.

cases, faults = find_cases(["skills/pdf"])
trace = await run_trial(cases[0], resolve(Settings(model="anthropic:claude-sonnet-5-5")))
verdicts = [await check.look(item, trace) for item in cases[0].checks]
"""

from typing import TYPE_CHECKING

from skillshelf._lazy import export_lazily

if TYPE_CHECKING:
    from skillshelf.evals import check
    from skillshelf.evals._case import Case, Edit, Message
    from skillshelf.evals._folders import is_skill, skills_in
    from skillshelf.evals._labels import (
        LabelledSentence,
        describe_sentences,
        find_judged_sentences,
        join_labels,
        make_label_template,
        read_labels,
        sample_sentences,
    )
    from skillshelf.evals._plan import Plan, make_plan
    from skillshelf.evals._recording import Recording, Replay
    from skillshelf.evals._results import CaseInfo, CheckResult, Outcome, Run, describe_case
    from skillshelf.evals._trace import FileState, Trace
    from skillshelf.evals._trial import DEFAULT_TIMEOUT, run_trial
    from skillshelf.evals.artefacts import Artefact, Artefacts
    from skillshelf.evals.check import Check, Verdict
    from skillshelf.evals.formats import find_cases, list_cases

__all__ = [  # noqa: RUF022  # grouped by reader
    # For users: to write cases and checks, to run one, to record a model, and to read results.
    "Artefact",
    "Artefacts",
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
    "run_trial",
    # For the command line: to plan a whole run, and to check a judge.
    "DEFAULT_TIMEOUT",
    "LabelledSentence",
    "Plan",
    "describe_case",
    "describe_sentences",
    "find_judged_sentences",
    "is_skill",
    "join_labels",
    "make_label_template",
    "make_plan",
    "read_labels",
    "sample_sentences",
    "skills_in",
]

__getattr__ = export_lazily(
    __name__,
    {
        "_case": ["Case", "Edit", "Message"],
        "_folders": ["is_skill", "skills_in"],
        "_labels": [
            "LabelledSentence",
            "describe_sentences",
            "find_judged_sentences",
            "join_labels",
            "make_label_template",
            "read_labels",
            "sample_sentences",
        ],
        "_plan": ["Plan", "make_plan"],
        "_recording": ["Recording", "Replay"],
        "_results": ["CaseInfo", "CheckResult", "Outcome", "Run", "describe_case"],
        "_trace": ["FileState", "Trace"],
        "_trial": ["DEFAULT_TIMEOUT", "run_trial"],
        "artefacts": ["Artefact", "Artefacts"],
        "check": ["Check", "Verdict"],
        "formats": ["find_cases", "list_cases"],
    },
    extra="evals",
)
