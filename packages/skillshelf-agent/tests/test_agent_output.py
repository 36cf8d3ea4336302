"""Test the output of commands: it is reported while they run, and the result is as it would be without."""

import asyncio
from pathlib import Path

import pytest

pytest.importorskip("pydantic_ai", reason="needs the extra `chat`")

from agent_kit import agent, of, say
from left_processes import find_processes_in
from skillshelf_agent.events import Finished, ToolCalled, ToolOutput, ToolReturned
from skillshelf_agent.testing import call


def test_output_is_reported_while_the_command_runs(tmp_path: Path) -> None:
    """The command goes on only after its first line was read, which a result at its end could not achieve."""
    command = "echo first; until [ -e read ]; do sleep 0.02; done; printf 'secönd' >&2; exit 4"
    core = agent(tmp_path, call("run_command", command=command), "Done.")

    async def run() -> list[object]:
        events: list[object] = []
        async for event in core.process_message("go"):
            events.append(event)
            if isinstance(event, ToolOutput) and "first" in event.text:
                (tmp_path / "read").touch()
        return events

    events = asyncio.run(run())
    [called] = [event for event in events if isinstance(event, ToolCalled)]
    pieces = [event for event in events if isinstance(event, ToolOutput)]
    [returned] = [event for event in events if isinstance(event, ToolReturned)]
    assert {piece.id for piece in pieces} == {called.id}
    assert "".join(piece.text for piece in pieces) == "first\nsecönd"
    assert events.index(pieces[-1]) < events.index(returned)
    assert returned.text == "[stdout]\nfirst\n\n[stderr]\nsecönd\n[exit code: 4]"


def test_much_output_is_reported_in_part_and_returned_to_its_limit(tmp_path: Path) -> None:
    """More than the limit of a result ends the command, and the model is told what to do."""
    core = agent(tmp_path, call("run_command", command="head -c 30000000 /dev/zero | tr '\\0' x"), "Done.")
    events = say(core, "go")
    [returned] = of(events, ToolReturned)
    assert "exceeded 10 MiB" in returned.text
    assert not returned.ok
    assert all(len(piece.text) <= 8_000 for piece in of(events, ToolOutput))


def test_a_command_that_runs_too_long_keeps_its_output(tmp_path: Path) -> None:
    """Its processes end."""
    command = "echo begun; exec sleep 60"
    core = agent(tmp_path, call("run_command", command=command, timeout_seconds=2), "Done.")
    [returned] = of(say(core, "go"), ToolReturned)
    assert "begun" in returned.text
    assert "timed out after 2" in returned.text
    assert find_processes_in(tmp_path) == []


def test_stopping_a_turn_ends_its_command(tmp_path: Path) -> None:
    core = agent(tmp_path, call("run_command", command="echo begun; exec sleep 60"), "never")

    async def run() -> list[object]:
        events: list[object] = []
        async for event in core.process_message("go"):
            events.append(event)
            if isinstance(event, ToolOutput):
                core.cancel()
        return events

    last = asyncio.run(run())[-1]
    assert isinstance(last, Finished)
    assert last.stopped
    assert find_processes_in(tmp_path) == []


def test_a_process_in_the_background_ends_with_its_command(tmp_path: Path) -> None:
    """Nor does it hold up the result, although it holds on to the output."""
    core = agent(tmp_path, call("run_command", command="sleep 600 & echo started"), "Done.")
    [returned] = of(say(core, "go"), ToolReturned)
    assert returned.text == "[stdout]\nstarted\n"
    assert find_processes_in(tmp_path) == []
