"""The checks: `check.skill_loaded("pdf")`, `~check.tool_called("run_command")`. They read what was recorded.

    check.register("mentions", lambda word: lambda trace: Verdict(word in trace.answer))

adds one, which case files then use by its name.
"""

from skillshelf.evals.check._answers import response_contains, response_matches
from skillshelf.evals.check._base import Check, Verdict
from skillshelf.evals.check._bless import bless
from skillshelf.evals.check._custom import custom, look
from skillshelf.evals.check._golden import Golden, golden
from skillshelf.evals.check._judge import is_judge, judge, judged_by, verdict_in
from skillshelf.evals.check._loads import (
    listing_contains,
    reference_denied,
    reference_loaded,
    skill_invoked,
    skill_loaded,
    skill_reloaded,
    trigger,
)
from skillshelf.evals.check._registry import Context, from_config, get_registered, register
from skillshelf.evals.check._words import clip
from skillshelf.evals.check._work import file_contains, file_unchanged, max_cost, max_tokens, tool_called

__all__ = [
    "Check",
    "Context",
    "Golden",
    "Verdict",
    "bless",
    "clip",
    "custom",
    "file_contains",
    "file_unchanged",
    "from_config",
    "golden",
    "is_judge",
    "judge",
    "judged_by",
    "listing_contains",
    "look",
    "max_cost",
    "max_tokens",
    "reference_denied",
    "reference_loaded",
    "register",
    "response_contains",
    "response_matches",
    "skill_invoked",
    "skill_loaded",
    "skill_reloaded",
    "tool_called",
    "trigger",
    "verdict_in",
]

__getattr__ = get_registered
