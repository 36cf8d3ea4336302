"""One trial: a fresh workspace, the agent as it is, the turns of a case, and the record of what happened."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace

from skillshelf.agent.core import AgentCore
from skillshelf.agent.events import Event, Failed, Finished
from skillshelf.agent.models import ChosenModel
from skillshelf.agent.policy import Policy
from skillshelf.evals.case import Case, Edit
from skillshelf.evals.observe import Observed
from skillshelf.evals.trace import FileState, Trace
from skillshelf.shelf import Shelf
from skillshelf.sources.directory import DirectorySource
from skillshelf.sources.folder import SKILL_FILES

SKILLS = ".skillshelf/skills"
# As much of a file as a check needs to look into.
_KEPT = 256 * 1024
# What went wrong with the skill or the case, not with the machinery: the trial counts.
_COUNTED = frozenset({"SkillNotFoundError", "PolicyError", "SkillUnreadableError"})


async def run_trial(case: Case, model: ChosenModel) -> Trace:
    """Run a case once. Nothing of the machine is in it: no skill of the user's, no file outside a temporary folder."""
    start = time.monotonic()
    observed = Observed(model.model)
    with tempfile.TemporaryDirectory(prefix="skillshelf-eval-") as root:
        try:
            before = await asyncio.to_thread(_make, root, case)
        except OSError as fault:
            return Trace(error=f"The workspace could not be made: {fault}")
        core = AgentCore(replace(model, model=observed), policy=Policy(case.policy))  # type: ignore[arg-type]
        if case.should_trigger is not None:  # a skill that stands in the listing in full need not be loaded
            core.disclosure = "catalog"
        core.load_skills(root, shelf=Shelf([DirectorySource(root, "project", cache=False)]))
        events, answers = await _turns(core, root, case)
        files, removed = await asyncio.to_thread(_after, root, before)
    failed = [event for event in events if isinstance(event, Failed) and event.error not in _COUNTED]
    error = f"{failed[0].error}: {failed[0].message}" if failed else ""
    seconds = round(time.monotonic() - start, 3)
    return Trace(tuple(events), tuple(answers), tuple(observed.systems), files, removed, core.spent, seconds, error)


async def _turns(core: AgentCore, root: str, case: Case) -> tuple[list[Event], list[str]]:
    events: list[Event] = []
    answers: list[str] = []
    for turn in case.turns:
        if isinstance(turn, Edit):
            _write(root, turn.path, None if turn.text is None else turn.text.encode())
            continue
        async for event in core.process_message(turn.text):
            events.append(event)
        last = events[-1]
        answers.append(last.text if isinstance(last, Finished) else "")
    return events, answers


def _make(root: str, case: Case) -> dict[str, str]:
    """The workspace; and what is in it, by path."""
    for folder in case.skills:
        _copy_skills(folder, os.path.join(root, SKILLS))
    for path, data in case.files.items():
        _write(root, path, data)
    return {path: digest for path, (digest, _) in _walk(root).items()}


def _copy_skills(folder: str, target: str) -> None:
    """A skill, or all skills of a folder. Its evals stay out: a model that sees the questions proves nothing."""
    is_skill = any(os.path.isfile(os.path.join(folder, name)) for name in SKILL_FILES)
    for one in [folder] if is_skill else [entry.path for entry in os.scandir(folder) if entry.is_dir()]:
        name = os.path.basename(os.path.abspath(one))
        shutil.copytree(one, os.path.join(target, name), symlinks=True, ignore=shutil.ignore_patterns("evals"))


def _write(root: str, path: str, data: bytes | None) -> None:
    file = os.path.join(root, path)
    if data is None:
        os.unlink(file)
        return
    os.makedirs(os.path.dirname(file), exist_ok=True)
    with open(file, "wb") as out:
        out.write(data)


def _after(root: str, before: Mapping[str, str]) -> tuple[dict[str, FileState], tuple[str, ...]]:
    now = _walk(root)
    files = {path: FileState(text, before.get(path) != digest) for path, (digest, text) in now.items()}
    return files, tuple(sorted(before.keys() - now.keys()))


def _walk(root: str) -> dict[str, tuple[str, str | None]]:
    """Digest and text of every plain file, by path."""
    found = {}
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            if os.path.isfile(path) and not os.path.islink(path):
                with open(path, "rb") as file:
                    data = file.read()
                text = data.decode("utf-8", "replace") if len(data) <= _KEPT and b"\0" not in data else None
                found[os.path.relpath(path, root)] = hashlib.sha256(data).hexdigest(), text
    return found
