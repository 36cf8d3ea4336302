"""Commands in the background: the model starts, reads and stops them, and none outlives its session."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pydantic_ai", reason="needs the extra `chat`")

from agent_kit import agent, requests
from skillshelf.sandbox import find_sandbox
from skillshelf_agent import AgentCore
from skillshelf_agent.events import Event, ToolReturned
from skillshelf_agent.testing import call

SERVER = "echo listening; while :; do date > tick; sleep 0.02; done"
IS_SANDBOXED = find_sandbox().level == "bubblewrap"


async def say(core: AgentCore, message: str) -> list[str]:
    """Send a message, and return the results of the tools that the model calls."""
    events: list[Event] = [event async for event in core.process_message(message)]
    return [event.text for event in events if isinstance(event, ToolReturned)]


def find_processes_in(folder: Path) -> list[str]:
    found = []
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{pid}/cwd") == str(folder):
                found.append(pid)
        except OSError:
            continue
    return found


def test_a_job_runs_beside_commands_until_the_model_stops_it(tmp_path: Path) -> None:
    core = agent(
        tmp_path,
        call("run_command", command=SERVER, background=True),
        call("run_command", command="rm tick; until [ -e tick ]; do sleep 0.02; done; echo reached"),
        call("check_job", job=1),
        call("check_job", job=1, stop=True),
        call("check_job", job=2),
        "Done.",
    )

    async def run() -> list[str]:
        async with core.jobs:
            return await say(core, "go")

    started, reached, checked, stopped, unknown = asyncio.run(run())
    assert started.startswith("listening\n[job 1 runs, ")
    assert "It ends with the session." in started
    assert reached == "[stdout]\nreached\n"
    assert checked.startswith("(no new output)\n[job 1 runs, ")
    assert stopped == "(no new output)\n[job 1 ended: stopped]"
    assert unknown == "There is no job 2. Jobs: 1."
    assert find_processes_in(tmp_path) == []


def test_the_tool_for_jobs_is_offered_once_there_is_one(tmp_path: Path) -> None:
    core = agent(tmp_path, call("run_command", command="sleep 600", background=True), "Done.")

    async def run() -> None:
        async with core.jobs:
            await say(core, "go")

    asyncio.run(run())
    offered = [request.tools for request in requests(core)]
    assert ["check_job" in tools for tools in offered] == [False, True]


def test_a_job_that_ends_is_told_to_the_model_with_the_next_message(tmp_path: Path) -> None:
    core = agent(
        tmp_path,
        call("run_command", command="echo built > out; until [ -e go ]; do sleep 0.02; done; exit 3", background=True),
        "Started.",
        call("check_job", job=1, wait_seconds=60),
        "Done.",
    )
    ended = asyncio.Event()
    core.jobs.on_end = lambda job, notices: ended.set()

    async def run() -> list[str]:
        async with core.jobs:
            await say(core, "go")
            (tmp_path / "go").touch()
            await ended.wait()
            return await say(core, "and now?")

    assert asyncio.run(run()) == ["(no new output)\n[job 1 ended: exit code 3]"]
    [job] = core.jobs.all
    assert job.list_changes(core.jobs.access) == ["go", "out"]
    request = requests(core)[2]
    assert "has ended: exit code 3." in str(request.messages[-1])


def test_only_the_end_of_a_jobs_output_is_kept(tmp_path: Path) -> None:
    command = "yes 12345678 | head -n 1000000; echo end"
    core = agent(
        tmp_path,
        call("run_command", command=command, background=True),
        call("check_job", job=1, wait_seconds=600),
        "Done.",
    )

    async def run() -> list[str]:
        async with core.jobs:
            return await say(core, "go")

    _, text = asyncio.run(run())
    assert text.startswith("[… ")
    assert text.endswith("12345678\nend\n[job 1 ended: exit code 0]")
    [job] = core.jobs.all
    assert (len(job.output), job.last_line) == (100_000, "end")


def test_a_job_that_cannot_be_started_is_none(tmp_path: Path) -> None:
    core = agent(tmp_path, call("run_command", command="echo \0", background=True), "Done.")
    [text] = asyncio.run(say(core, "go"))
    assert "could not be started" in text
    assert core.jobs.all == []


def test_a_new_session_ends_the_jobs(tmp_path: Path) -> None:
    core = agent(tmp_path, call("run_command", command=SERVER, background=True), "Done.")

    async def run() -> None:
        async with core.jobs:
            await say(core, "go")
            [job] = core.jobs.running
            core.new_session()
            assert job.task is not None
            await asyncio.wait([job.task])
            assert core.jobs.running == []
            assert find_processes_in(tmp_path) == []

    asyncio.run(run())


AGENT = """
import asyncio, sys
from skillshelf_agent import AgentCore, Policy
from skillshelf_agent.testing import ScriptedModel, call

async def main():
    model = ScriptedModel(call("run_command", command=sys.argv[2], background=True), "Done.")
    core = AgentCore(model, sys.argv[1], policy=Policy("yolo"))
    async for event in core.process_message("go"):
        pass
    print("started", flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest.mark.skipif(not IS_SANDBOXED, reason="without a sandbox, processes can stay")
def test_a_job_ends_with_an_agent_that_is_killed(tmp_path: Path) -> None:
    (tmp_path / "held").touch()
    command = "exec 9> held; flock 9; setsid sleep 600 & exec sleep 600"
    words = [sys.executable, "-c", AGENT, str(tmp_path), command]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        process.send_signal(signal.SIGKILL)
    # The lock is free once every process of the job is gone.
    subprocess.run(["flock", "held", "true"], cwd=tmp_path, check=True, timeout=60)
