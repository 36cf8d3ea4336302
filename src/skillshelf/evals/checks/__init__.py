"""The checks: `check.skill_loaded("pdf")`, `~check.tool_called("run_command")`. They read what was recorded.

    check.register("mentions", lambda word: lambda trace: Verdict(word in trace.answer))

adds one, which case files then use by its name.
"""

from skillshelf.evals.checks.answers import response_contains, response_matches
from skillshelf.evals.checks.custom import custom, look
from skillshelf.evals.checks.golden import golden
from skillshelf.evals.checks.judge import judge, judged_by
from skillshelf.evals.checks.loads import (
    listing_contains,
    reference_denied,
    reference_loaded,
    skill_invoked,
    skill_loaded,
    skill_reloaded,
)
from skillshelf.evals.checks.registry import Context, Maker, from_config, maker, register
from skillshelf.evals.checks.work import file_contains, file_unchanged, max_cost, max_tokens, tool_called

__all__ = [
    "Context",
    "custom",
    "file_contains",
    "file_unchanged",
    "from_config",
    "golden",
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
]


def __getattr__(name: str) -> Maker:
    """A check that a user registered."""
    from skillshelf.errors import EvalError

    try:
        return maker(name)
    except EvalError as error:
        raise AttributeError(str(error)) from None
