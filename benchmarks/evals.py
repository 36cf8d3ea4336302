"""Measure what a case of an eval costs beyond the agent's own work: a scripted case, from the plan to its outcome.

Beside it stands the same turn of the agent in a workspace that is there already.
"""

import asyncio
import os
import tempfile
import time
from collections.abc import Callable

from benchmarks.report import Row, amount

CASES = 1_000
_TRIED = 50
_SECONDS = 60.0
_WHOLE = f"evals: {CASES:,} scripted cases, on one core"
_EACH = "evals: a case, over the agent's own turn"
_SKILL = "---\nname: forms\ndescription: Fills in forms.\n---\n\nFill it in.\n"


def measure(rounds: int) -> list[Row]:
    """CPU seconds of all cases, and the part of one that is not the agent's."""
    try:
        import skillshelf.evals.engine._runner  # noqa: F401
    except ImportError:
        return [Row(what, None, against="needs skillshelf[evals]") for what in (_WHOLE, _EACH)]
    with tempfile.TemporaryDirectory(prefix="skillshelf-bench-") as folder:
        skill = os.path.join(folder, "forms")
        os.mkdir(skill)
        with open(os.path.join(skill, "SKILL.md"), "w", encoding="utf-8") as file:
            file.write(_SKILL)
        cases, turns = _cases(skill, folder), _turns(folder)
        took = [(_cpu(cases), _cpu(turns)) for _ in range(rounds + 1)][1:]  # the first pays for imports
    case, turn = (min(times) / _TRIED for times in zip(*took, strict=True))
    return [
        Row(_WHOLE, case * CASES, most=_SECONDS),
        Row(_EACH, case - turn, against=f"over the agent's own {amount(turn, 's')}"),
    ]


def _cpu(job: Callable[[], object]) -> float:
    start = time.process_time()
    job()
    return time.process_time() - start


def _script() -> tuple[object, ...]:
    from skillshelf.testing import call

    return call("load_skill_instructions", skill_name="forms"), "done"


def _cases(skill: str, folder: str) -> Callable[[], object]:
    """All of a run but the report."""
    from skillshelf.evals import Case, Message, check, make_plan
    from skillshelf.evals.engine import Options, PackedPlan, begin_run, run_plan

    checks = (check.skill_loaded("forms"), check.response_contains("done"))
    cases = [
        Case(f"case {number}", (Message("hi"),), checks, "forms", skills=(skill,), script=_script())
        for number in range(_TRIED)
    ]

    def run() -> None:
        work = PackedPlan(make_plan(cases), Options())
        outcomes = asyncio.run(run_plan(work, begin_run(folder, work.fingerprint, {})))
        assert all(one.status == "passed" for one in outcomes)

    return run


def _turns(folder: str) -> Callable[[], object]:
    """The same conversations, each with an agent of its own, on one workspace."""
    from skillshelf.agent import AgentCore, Policy
    from skillshelf.shelf import Shelf
    from skillshelf.sources import DirectorySource
    from skillshelf.testing import ScriptedModel

    async def turns() -> None:
        for _ in range(_TRIED):
            core = AgentCore(ScriptedModel(*_script()), policy=Policy("yolo"))  # type: ignore[arg-type]
            core.load_skills(folder, shelf=Shelf([DirectorySource(folder, "project", cache=False)]))
            async for _event in core.process_message("hi"):
                pass

    return lambda: asyncio.run(turns())
