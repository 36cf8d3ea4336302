"""The rule that a question offers: as narrow as it can be and still be of use."""

import os
import shlex

from skillshelf.agent._tool_names import SHELL, WRITING
from skillshelf.agent.rules._command import Words, split_command
from skillshelf.agent.rules._programs import INTERPRETERS, find_escape, name_of_program, runs_any_command
from skillshelf.agent.rules._rule import Rule, RuledCall, find_ruling
from skillshelf.errors import SettingsError
from skillshelf.files import is_inside

_SUBCOMMANDS = {
    "cargo": "bench build check clippy doc fmt metadata test tree",
    "git": "add blame commit describe diff grep log ls-files ls-tree merge-base rev-parse shortlog show status",
    "go": "build doc fmt list test version vet",
    "npm": "ls outdated test",
    "pip": "check freeze list show",
    "pnpm": "ls outdated test",
    "poetry": "check show",
    "ruff": "check format",
    "terraform": "fmt validate",
    "uv": "tree",
    "yarn": "test",
}
"""Subcommands that read, check or build, and that may have any further words. All others are spelled out whole: most
programs have some that install, publish, delete, or run what follows, and get new ones."""
_READERS_AND_CHECKERS = frozenset(
    "basename black cat date df diff dirname du echo eslint file flake8 grep head isort jest ls mypy nl pwd pylint "
    "pyright pytest realpath rg shellcheck stat tail tree tsc uname vitest wc which".split()
)


def offer_rule(call: RuledCall) -> Rule | None:
    """Return a rule that allows this call and calls like it in the workspace, or None if no rule can cover it."""
    try:
        if call.tool == SHELL:
            return _offer_for_command(call)
        if call.tool in WRITING:
            return _offer_for_file(call)
        return Rule("allow", call.tool, workspace=call.root)
    except SettingsError:  # the call cannot be written as a rule
        return None


def _offer_for_command(call: RuledCall) -> Rule | None:
    words = split_command(str(call.arguments.get("command", "")))
    if words is None:
        return None
    spelled = _count_spelled(words)
    if spelled:
        rule = Rule("allow", SHELL, command=f"{shlex.join(words[:spelled])} *", workspace=call.root)
        if find_ruling([rule], call):
            return rule
    return Rule("allow", SHELL, command=shlex.join(words), workspace=call.root)


def _count_spelled(words: Words) -> int:
    """Return how many words a rule with a `*` should spell out, or 0 if it should spell out all of them."""
    program = name_of_program(words[0])
    if program != words[0]:  # a program by its path or version is a special one
        return 0

    if runs_any_command(words):
        inner = words[2:]
        if runs_any_command(words[:1]) or not inner or name_of_program(inner[0]) not in _READERS_AND_CHECKERS:
            return 0
        return 3 if not find_escape(inner, 1) else 0
    if program in _READERS_AND_CHECKERS and program not in INTERPRETERS:
        return 1 if not find_escape(words, 1) else 0
    is_harmless = len(words) > 1 and words[1] in _SUBCOMMANDS.get(program, "").split()
    if is_harmless and not find_escape(words, 2):
        return 2
    return 0


def _offer_for_file(call: RuledCall) -> Rule | None:
    if not call.path or not is_inside(call.path, call.root):
        return None
    path = os.path.relpath(call.path, call.root)
    folder = os.path.dirname(path)
    if folder:
        path = f"{folder}/**"
    return Rule("allow", call.tool, path=path, workspace=call.root)
