"""Commands in the background: the model starts, reads and stops them, and none outlives its session."""

import asyncio
import signal
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

pytest.importorskip("pydantic_ai", reason="needs the extra `chat`")

from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from rich.console import Console

from agent_kit import agent, requests
from left_processes import find_processes_in
from skillshelf.errors import SkillError
from skillshelf.sandbox import find_sandbox
from skillshelf.trust import Trust
from skillshelf_agent import AgentCore, Settings
from skillshelf_agent.events import Event, ToolReturned
from skillshelf_agent.terminal import Pipe
from skillshelf_agent.terminal._commands import run_command
from skillshelf_agent.terminal._keyboard import Keyboard
from skillshelf_agent.terminal._review import Reviewer
from skillshelf_agent.testing import call

SERVER = "echo listening; while :; do date > tick; sleep 0.02; done"
IS_SANDBOXED = find_sandbox().level == "bubblewrap"


async def say(core: AgentCore, message: str) -> list[str]:
    """Send a message, and return the results of the tools that the model calls."""
    events: list[Event] = [event async for event in core.process_message(message)]
    return [event.text for event in events if isinstance(event, ToolReturned)]


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


def test_a_repository_is_not_declared_ones_own_while_a_job_runs(tmp_path: Path) -> None:
    """What the job changes would be used without a review."""
    core = agent(tmp_path, call("run_command", command="sleep 600", background=True), "Done.")

    async def run(reviewer: Reviewer) -> None:
        async with core.jobs:
            await say(core, "go")
            with pytest.raises(SkillError, match="/jobs kill"):
                reviewer.declare_mine()

    with create_pipe_input() as keys, create_app_session(input=keys):
        asyncio.run(run(Reviewer(core, Console(), Keyboard())))
    assert not core.skills.is_own


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


def test_no_two_jobs_have_the_same_number(tmp_path: Path) -> None:
    """Even if one of two that the model starts at once cannot be started."""
    jobs = agent(tmp_path).jobs

    async def run() -> list[int]:
        async with jobs:
            commands = ("echo \0", "sleep 600", "sleep 600")
            first, second, third = (jobs.start(each, network=False, at_work=nullcontext) for each in commands)
            await asyncio.gather(first, second, return_exceptions=True)
            await third
            return [job.number for job in jobs.all]

    assert asyncio.run(run()) == [2, 3]


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


def test_skills_edited_while_a_job_runs_wait_for_review(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In the user's own repository, nobody can tell a job's edit from theirs."""
    (tmp_path / ".git").mkdir()
    Trust.open().declare_own(str(tmp_path))
    core = agent(tmp_path, call("run_command", command=SERVER, background=True), "Done.", trust=Trust.open())
    pipe = Pipe(core, Settings(), as_json=False)

    async def run() -> None:
        async with core.jobs:
            await say(core, "go")
            await run_command(pipe, pipe.commands, "/jobs")
            (tmp_path / "AGENTS.md").write_text("EVIL")

    asyncio.run(run())
    assert "wait for your review" in capsys.readouterr().out
    core.reload_skills()
    assert [(pending.name, pending.by_agent) for pending in core.skills.pending] == [("AGENTS.md", True)]


def test_jobs_are_listed_shown_and_ended_by_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steps = [
        call("run_command", command=command, background=True) for command in (SERVER, "echo one; echo two; exit 1")
    ]
    core = agent(tmp_path, *steps, "Done.")
    pipe = Pipe(core, Settings(), as_json=False)

    async def type_lines(*lines: str) -> str:
        for line in lines:
            await run_command(pipe, pipe.commands, line)
        return capsys.readouterr().out

    async def run() -> None:
        assert "No command runs in the background" in await type_lines("/jobs")
        async with core.jobs:
            await say(core, "go")
            listed = (await type_lines("/jobs")).splitlines()
            assert [line.split("  ")[0] for line in listed] == [
                "1",
                "",
                "2",
                "",
                "/jobs N shows its output · /jobs kill N ends it",
            ]
            assert listed[2:4] == ["2  exit code 1  echo one; echo two; exit 1", "  │ two"]
            assert (await type_lines("/jobs 2")).splitlines()[1:3] == ["  │ one", "  │ two"]
            assert "by it or by others: tick" in await type_lines("/jobs 1")
            for line, problem in (("/jobs 3", "There is no job 3"), ("/jobs kill x", "Give the number")):
                with pytest.raises(SkillError, match=problem):
                    await type_lines(line)
            await type_lines("/jobs kill 1")
            assert [job.end for job in core.jobs.all] == ["stopped by the user", "exit code 1"]
            with pytest.raises(SkillError, match="has ended already: stopped by the user"):
                await type_lines("/jobs kill 1")

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
