"""Measure what skills cost the agent: a turn with 1,000, beside none, beside a bare loop.

The bare loop is a pydantic-ai agent with the same file tools. The model is a function that answers at once, so
that only the code around it is on the clock; sessions are written as in real use.
"""

import asyncio
import gc
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable

from benchmarks.report import Row, amount

Turn = Callable[[], Awaitable[None]]
SKILLS = 1_000
_MANY, _ONE = 5, 1
_MOST = 0.002
_BARE = "agent: no skills, each model call of a turn of 5"


def measure(folder: str, empty: str, rounds: int) -> list[Row]:
    """What each model call costs, in a turn of five calls (four with a tool, and an answer) and in a turn of one."""
    os.environ["XDG_STATE_HOME"] = os.path.join(os.environ["XDG_CACHE_HOME"], "state")
    try:
        return [
            *_skills(folder, empty, _MANY, rounds, _MOST),
            *_skills(folder, empty, _ONE, rounds),
            *_own_part(empty, rounds),
        ]
    except ImportError:
        return [Row(what, None, against="needs skillshelf[chat]") for what in (_what(_MANY), _what(_ONE), _BARE)]


def _what(calls: int) -> str:
    return f"agent: {SKILLS:,} skills, each model call of a turn of {calls}"


def _skills(folder: str, empty: str, calls: int, rounds: int, most: float | None = None) -> list[Row]:
    ours, without = asyncio.run(_compare(_own(folder, calls), _own(empty, calls), 5 * rounds))
    against = f"over the same agent's {amount(without / calls, 's')} without skills"
    return [Row(_what(calls), (ours - without) / calls, against=against, most=most)]


def _own_part(empty: str, rounds: int) -> list[Row]:
    ours, bare = asyncio.run(_compare(_own(empty, _MANY), _bare(empty, _MANY), 5 * rounds))
    against = f"over a bare loop's {amount(bare / _MANY, 's')}"
    return [Row(_BARE, (ours - bare) / _MANY, against=against)]


async def _compare(one: Turn, other: Turn, rounds: int) -> tuple[float, float]:
    took: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for times, turn in zip(took, (one, other), strict=True):
            gc.collect()
            start = time.process_time()
            await turn()
            times.append(time.process_time() - start)
    return min(took[0]), min(took[1])


def _own(folder: str, calls: int) -> Turn:
    from skillshelf_agent import AgentCore, Policy
    from skillshelf_agent.sessions import Sessions

    core = AgentCore(_model(calls), folder, policy=Policy("yolo"), sessions=Sessions(folder))

    async def turn() -> None:
        core.conversation.messages.clear()
        async for _ in core.process_message("hi"):
            pass

    return turn


def _bare(folder: str, calls: int) -> Turn:
    from pydantic_ai import Agent
    from pydantic_ai.capabilities import Caching

    from skillshelf_agent.filetools import FileAccess, FileTools

    files = FileTools(FileAccess(folder))
    agent = Agent(_model(calls), toolsets=[files.toolset], capabilities=[Caching()], retries=5)

    async def turn() -> None:
        async with agent.run_stream_events("hi") as events:
            async for _ in events:
                pass

    return turn


def _model(calls: int) -> object:
    """Calls a tool until the last call of the turn."""
    from pydantic_ai.models.function import DeltaToolCall, FunctionModel

    async def answer(messages: list[object], info: object) -> AsyncIterator[object]:
        if len(messages) < 2 * calls - 1:
            # A name that no tool has: the cost of a real tool is its own, and differs from call to call.
            yield {0: DeltaToolCall("no_such_tool", "{}", tool_call_id=f"call-{len(messages)}")}
        else:
            yield "done"

    return FunctionModel(stream_function=answer)  # type: ignore[arg-type]
