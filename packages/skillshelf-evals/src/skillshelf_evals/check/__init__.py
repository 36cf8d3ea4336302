"""The checks: `check.skill_loaded("pdf")`, `~check.tool_called("run_command")`. They read a trial's trace.

    @check.register
    def mentions(trace: Trace, word: str) -> bool:
        return word in trace.answer

adds one of your own: `check.mentions("total")` in Python, and `- mentions: total` in case files.
"""

from skillshelf_evals.check._behavior import (
    command_run,
    max_cost,
    max_tokens,
    response_contains,
    response_matches,
    tool_called,
)
from skillshelf_evals.check._check import About, Check, Verdict, custom, look
from skillshelf_evals.check._evidence import describe_work
from skillshelf_evals.check._files import (
    file_contains,
    file_exists,
    file_matches,
    file_unchanged,
    golden,
    json_schema,
    table_equals,
)
from skillshelf_evals.check._judge import judge, look_at_all, parse_verdicts
from skillshelf_evals.check._loading import (
    listing_contains,
    reference_denied,
    reference_loaded,
    skill_invoked,
    skill_loaded,
    skill_reloaded,
    trigger,
)
from skillshelf_evals.check._registry import from_config, get_registered, register
from skillshelf_evals.check._run import ShellCommand, find_commands, run

__all__ = [
    "About",
    "Check",
    "ShellCommand",
    "Verdict",
    "command_run",
    "custom",
    "describe_work",
    "file_contains",
    "file_exists",
    "file_matches",
    "file_unchanged",
    "find_commands",
    "from_config",
    "golden",
    "json_schema",
    "judge",
    "listing_contains",
    "look",
    "look_at_all",
    "max_cost",
    "max_tokens",
    "parse_verdicts",
    "reference_denied",
    "reference_loaded",
    "register",
    "response_contains",
    "response_matches",
    "run",
    "skill_invoked",
    "skill_loaded",
    "skill_reloaded",
    "table_equals",
    "tool_called",
    "trigger",
]

__getattr__ = get_registered
