"""One trial: a fresh workspace, the agent as it is, the turns of a case, and the record of what happened."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

from skillshelf.agent import AgentCore, ChosenModel, Policy
from skillshelf.agent.events import Event, Failed, Finished
from skillshelf.evals._case import Case, Edit
from skillshelf.evals._code_skills import code_source
from skillshelf.evals._observe import Observed
from skillshelf.evals._trace import FileState, Trace
from skillshelf.evals._workspace import change_file, changes_in, make_workspace, temporary_folder
from skillshelf.shelf import Shelf
from skillshelf.sources import DirectorySource

# What went wrong with the skill, the case or the model's own doing, and not with the machinery: the trial counts.
_COUNTED = frozenset(
    {
        "SkillNotFoundError",
        "PolicyError",
        "SkillUnreadableError",
        "UsageLimitExceeded",
        "UnexpectedModelBehavior",
        "IncompleteToolCall",
        "ModelContextWindowExceededError",
    }
)


SECONDS = 900
"""As long as a trial may take: a provider that never answers must not hold up a run for good."""


async def run_trial(case: Case, model: ChosenModel, seconds: float = SECONDS) -> Trace:
    """Run a case once. Nothing of the machine is in it: no skill of the user's, no file outside a temporary folder.

    Raises EvalError for a code skill that cannot be made.
    """
    start = time.monotonic()
    observed = Observed(model.model)
    own = [code_source(case.code_skills)] if case.code_skills else []
    events: list[Event] = []
    answers: list[str] = []
    files: dict[str, FileState] = {}
    removed: tuple[str, ...] = ()
    error = ""
    core = AgentCore(replace(model, model=observed), policy=Policy(case.policy))  # type: ignore[arg-type]
    if case.should_trigger is not None:  # a skill that stands in the listing in full need not be loaded
        core.disclosure = "catalog"
    with temporary_folder() as root:
        try:
            before = await asyncio.to_thread(make_workspace, root, case)
            core.load_skills(root, shelf=Shelf([*own, DirectorySource(root, "project", cache=False)]))
            async with asyncio.timeout(seconds):
                await _take_turns(core, root, case, events, answers)
            files, removed = await asyncio.to_thread(changes_in, root, before)
        except TimeoutError:
            error = f"The trial took longer than {seconds:g} seconds; --timeout gives it more"
        except OSError as fault:
            error = f"The workspace cannot be used: {fault}"
    failed = [event for event in events if isinstance(event, Failed) and event.error not in _COUNTED]
    error = f"{failed[0].error}: {failed[0].message}" if failed else error
    took = round(time.monotonic() - start, 3)
    return Trace(tuple(events), tuple(answers), tuple(observed.systems), files, removed, core.spent, took, error)


async def _take_turns(core: AgentCore, root: str, case: Case, events: list[Event], answers: list[str]) -> None:
    for turn in case.turns:
        if isinstance(turn, Edit):
            change_file(root, turn.path, None if turn.text is None else turn.text.encode("utf-8", "surrogatepass"))
            continue
        async for event in core.process_message(turn.text):
            events.append(event)
        last = events[-1]
        answers.append(last.text if isinstance(last, Finished) else "")
