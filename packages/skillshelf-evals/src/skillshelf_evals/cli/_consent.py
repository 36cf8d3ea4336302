"""The user's consent to a run: approved folders and skills, and commands without a sandbox.

A case runs Python, and a skill or a scripted model can make the agent run commands. A cloned repository must not be
able to start any of that.
"""

import argparse
import os
import shlex
from collections.abc import Iterable, Sequence
from typing import Any

from skillshelf.cli import CommandError, complain, list_searched, locate_workspace, shown_path
from skillshelf.errors import EvalError
from skillshelf.sources.workspace import find_workspace
from skillshelf.trust import Pending, Trust, find_pending_folder, summary
from skillshelf_agent import SHELL
from skillshelf_evals import Case
from skillshelf_evals.check import find_commands
from skillshelf_evals.formats import find_case_files, find_folder_to_approve

_NO_SANDBOX = "there is no sandbox for commands on this machine, and these trials run them without asking"
_HOW_TO_ALLOW = "Pass --allow-unconfined if they may write anywhere"


def find_case_folders(args: argparse.Namespace) -> list[str]:
    """Return the folders with the cases and recordings of a run. Raises EvalError for a path that does not exist."""
    folders = {find_folder_to_approve(path) for path in find_case_files(args.paths or list_searched(args))}
    if args.replay and os.path.isdir(args.replay):
        folders.add(os.path.realpath(args.replay))

    workspace = locate_workspace(args).root
    outermost: list[str] = []
    for folder in sorted(folders):
        if not any(_covers(above, folder, workspace) for above in outermost):
            outermost.append(folder)
    return outermost


def _covers(above: str, folder: str, workspace: str) -> bool:
    """Return True if the hash of `above` includes `folder`.

    Hidden folders are not part of a hash, and the workspace is never hashed as a whole.
    """
    if above == workspace or not folder.startswith(f"{above}/"):
        return False
    below = folder.removeprefix(f"{above}/")
    return not any(part.startswith(".") for part in below.split("/"))


def check_approval(folders: Sequence[str], args: argparse.Namespace) -> None:
    """Raise CommandError with the pending folders unless the user approved the content of all of them."""
    if args.trust_workspace:
        return
    trust = Trust.open()
    workspace = locate_workspace(args)
    pending: list[Pending] = []
    for folder in folders:
        content = find_pending_folder(folder, workspace.root, trust)
        if content:
            pending.append(content)
    if not pending:
        return

    for problem in trust.problems:
        complain(problem)
    lines = ["nothing was run. Cases run their own Python and commands, and you have not approved these:"]
    lines += [f"  {summary(content)}" for content in pending]
    hints = []
    for root in dict.fromkeys(content.root for content in pending):
        option = ""
        if root not in find_workspace().folders:
            option = f" -C {shlex.quote(shown_path(root))}"
        hints.append(
            f"Review them with `skillshelf trust{option}`, or pass --trust-workspace to run them as they are. If the "
            f"repository is your own, `skillshelf trust --mine{option}` ends these questions."
        )
    facts = {"pending": [_pending_as_json(content) for content in pending]}
    raise CommandError("\n".join(lines) + "\n", "\n".join(hints), code="not-approved", facts=facts)


def _pending_as_json(pending: Pending) -> dict[str, Any]:
    facts = {"name": pending.name, "status": pending.status, "path": pending.location, "tree": pending.tree}
    if pending.blocked:
        facts["blocked"] = pending.blocked
    return facts


def refuse_unconfined(cases: Iterable[Case], args: argparse.Namespace) -> None:
    """Raise EvalError if a trial could run commands without a sandbox and the user did not allow that."""
    from skillshelf.sandbox import find_sandbox

    if args.allow_unconfined or find_sandbox():
        return
    for case in cases:
        place = case.location or case.id
        if find_commands(case.checks):
            raise EvalError(f"{place}: {_NO_SANDBOX}", f"{_HOW_TO_ALLOW}, or leave out the `run` checks")
        if _can_run_commands(case):
            raise EvalError(f"{place}: {_NO_SANDBOX}", f"{_HOW_TO_ALLOW}, or give the cases `policy: read-only`")


def refuse_unconfined_worker(args: argparse.Namespace) -> None:
    """Raise EvalError if this machine cannot confine the commands of other machines' trials."""
    from skillshelf.sandbox import find_sandbox

    if not args.allow_unconfined and not find_sandbox():
        raise EvalError(_NO_SANDBOX, _HOW_TO_ALLOW)


def _can_run_commands(case: Case) -> bool:
    """Return whether the agent could run a command in a trial of this case."""
    # A run asks no questions, so under any other policy a command is refused.
    if case.policy != "yolo":
        return False
    return case.script is None or any(_may_run_command(step) for step in case.script)


def _may_run_command(step: Any) -> bool:
    if isinstance(step, list):
        return any(_may_run_command(part) for part in step)
    tool = getattr(step, "tool", "")
    return tool == SHELL or callable(step)
