"""What the user must have agreed to before cases run: folders and skills by content, and commands without a sandbox.

A case runs Python, and a skill or a scripted model can make the agent run commands. A clone must not start any of that.
"""

import argparse
import os
import shlex
from collections.abc import Iterable, Sequence
from typing import Any

from skillshelf.agent import SHELL
from skillshelf.cli._output import Output, complain, shown_path
from skillshelf.errors import EvalError
from skillshelf.evals import Case, is_skill, skills_in
from skillshelf.evals.formats import case_files, case_folder
from skillshelf.trust import Pending, Trust, pending_folder, summary

_NO_SANDBOX = "commands cannot be confined on this machine, and these trials run them without asking"
_ALLOW = "Pass --allow-unconfined if they may write anywhere, or give the cases `policy: read-only`"


def case_folders(args: argparse.Namespace) -> list[str]:
    """Return the folders with the cases and recordings of a run. Raises EvalError for a path that does not exist."""
    files = case_files(args.paths or [args.workspace])
    folders = {case_folder(path): None for path in files}
    if args.replay and os.path.isdir(args.replay):
        folders[os.path.realpath(args.replay)] = None
    return _outermost(folders, os.path.realpath(args.workspace))


def skill_folders(cases: Iterable[Case]) -> list[str]:
    """Return the folders of the skills on the shelves of cases, which steer the agent."""
    shelves = {folder: None for case in cases for folder in case.skills}
    skills = {os.path.realpath(skill): None for folder in shelves for skill in skills_in(folder) if is_skill(skill)}
    return list(skills)


def is_approved(folders: Sequence[str], args: argparse.Namespace, out: Output) -> bool:
    """True if the user approved the content of every folder. Otherwise report what is pending and how to go on."""
    if args.trust_workspace:
        return True
    trust = Trust.open()
    pending: list[Pending] = []
    for folder in folders:
        found = pending_folder(folder, args.workspace, trust)
        if found:
            pending.append(found)
    if not pending:
        return True
    for problem in trust.problems:
        complain(problem)
    if args.json:
        out.json({"exit_code": 2, "pending": [_facts(one) for one in pending]})
    complain("skillshelf: nothing was run. Cases run their own Python and commands, and you have not approved these:")
    for one in pending:
        complain(f"  {summary(one)}")
    for root in dict.fromkeys(one.root for one in pending):
        where = "" if os.path.realpath(root) == os.path.realpath(os.curdir) else f" -C {shlex.quote(shown_path(root))}"
        complain(f"Review them with `skillshelf trust{where}`, or pass --trust-workspace to run them as they are.")
    return False


def refuse_unconfined(cases: Iterable[Case], args: argparse.Namespace) -> None:
    """Raise EvalError if a trial would run commands that nothing confines, unless the user allowed that."""
    from skillshelf.agent import can_confine

    if args.allow_unconfined or can_confine():
        return
    for case in cases:
        if _can_run_commands(case):
            raise EvalError(f"{case.location or case.id}: {_NO_SANDBOX}", _ALLOW)


def refuse_unconfined_worker(args: argparse.Namespace) -> None:
    """Raise EvalError if this machine cannot confine the commands of other machines' trials."""
    from skillshelf.agent import can_confine

    if not args.allow_unconfined and not can_confine():
        raise EvalError(_NO_SANDBOX, "Pass --allow-unconfined if they may write anywhere")


def _can_run_commands(case: Case) -> bool:
    """True unless the policy forbids commands, or the script is plain steps without one."""
    if case.policy != "yolo":  # a run asks no questions: a call that needs an approval is refused
        return False
    return case.script is None or any(map(_is_command, case.script))


def _is_command(step: Any) -> bool:
    if isinstance(step, list):
        return any(map(_is_command, step))
    tool = getattr(step, "tool", "")
    return tool == SHELL or callable(step)


def _outermost(folders: Iterable[str], workspace: str) -> list[str]:
    """Leave out folders that are part of another one's content."""
    found: list[str] = []
    for folder in sorted(folders):
        if not any(_covers(above, folder, workspace) for above in found):
            found.append(folder)
    return found


def _covers(above: str, folder: str, workspace: str) -> bool:
    """True if `folder` is below `above`, but for hidden folders and the workspace: not all of these is hashed."""
    if above == workspace or not folder.startswith(f"{above}/"):
        return False
    below = folder.removeprefix(f"{above}/")
    return not any(part.startswith(".") for part in below.split("/"))


def _facts(pending: Pending) -> dict[str, Any]:
    facts = {"name": pending.name, "status": pending.status, "location": pending.location, "tree": pending.tree}
    return {**facts, "blocked": pending.blocked} if pending.blocked else facts
