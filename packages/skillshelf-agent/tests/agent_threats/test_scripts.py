"""Scripts of skills: only what the user was asked about runs, and it gets and leaves no more than it should."""

import asyncio
import importlib.util
import os
import py_compile
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from agent_kit import User, agent, of, say
from repository import TESTS
from script_kit import Giver, run_call, run_script, write_skill
from skillshelf.sandbox import CleanPath, Program, ProgramLimits, find_sandbox, run_program
from skillshelf.skillmd import find_declared_variables
from skillshelf.trust import Trust
from skillshelf_agent import Answer, Approval
from skillshelf_agent.events import ToolReturned
from skillshelf_agent.testing import call

SANDBOX = find_sandbox()
sandboxed = pytest.mark.skipif(not SANDBOX, reason=f"there is no sandbox here: {SANDBOX.reason}")


class Swapper(User):
    """A user who says yes, while another program changes a file."""

    def __init__(self, file: Path, text: str) -> None:
        super().__init__("yes")
        self._file = file
        self._text = text

    async def __call__(self, approval: Approval) -> Answer:
        self._file.write_text(self._text)
        return await super().__call__(approval)


@pytest.mark.parametrize("with_trust", [True, False], ids=["reviewed", "trusted folder"])
def test_a_script_swapped_after_the_question_runs_as_it_was_shown(tmp_path: Path, with_trust: bool) -> None:
    skill = write_skill(tmp_path / "pdf", {"scripts/a.py": "import b\n", "scripts/b.py": "print('as shown')\n"})
    user = Swapper(skill / "scripts/b.py", "print('swapped')\n")
    core = agent(tmp_path, run_call("a.py"), "ok", mode="ask", user=user, trust=Trust.open() if with_trust else None)
    if with_trust:
        core.skills.approve(core.skills.pending)
        core.reload_skills()
    (result,) = of(say(core, "go"), ToolReturned)
    assert "as shown" in result.text
    assert "swapped" not in result.text


def test_a_copy_swapped_after_the_question_does_not_run(tmp_path: Path) -> None:
    """The copy is outside the workspace. It is compared with the content that the user was asked about all the same.

    The next call gets a fresh copy.
    """
    write_skill(tmp_path / "pdf", {"scripts/a.py": "print('as shown')\n"})

    class CopySwapper(User):
        swaps = True

        async def __call__(self, approval: Approval) -> Answer:
            assert approval.script is not None
            if self.swaps:
                Path(approval.script.file).write_text("print('swapped!')\n")
                self.swaps = False
            return await super().__call__(approval)

    core = agent(tmp_path, run_call("a.py"), run_call("a.py"), "ok", mode="ask", user=CopySwapper("yes", "yes"))
    swapped, again = of(say(core, "go"), ToolReturned)
    assert not swapped.ok
    assert "its copy was changed" in swapped.text
    assert "as shown" in again.text


@pytest.mark.parametrize(
    "script",
    [
        "../other/scripts/a.py",
        "scripts/../scripts/a.py",
        "./scripts/a.py",
        "SCRIPTS/A.PY",
        "/bin/sh",
        "scripts/a.py\0",
        "scripts/link.py",
        "linked/a.py",
        "tools/other.py",
        "",
        "a.py; id",
        "x" * 10_000,
    ],
)
def test_only_the_exact_name_of_a_listed_script_runs(tmp_path: Path, script: str) -> None:
    """Neither a path that leads elsewhere, nor a link in the folder, nor a file that only can be read."""
    other = write_skill(tmp_path / "other", {"scripts/a.py": "print('RAN')\n"})
    skill = write_skill(tmp_path / "pdf", {"scripts/a.py": "print('listed')\n"})
    (skill / "scripts/link.py").symlink_to(other / "scripts/a.py")
    (skill / "linked").symlink_to(other / "scripts")
    (skill / "tools").mkdir()
    (skill / "tools/other.py").write_text("print('RAN')\n")
    result = run_script(tmp_path, script)
    assert not result.ok
    assert "RAN" not in result.text


def test_a_listed_link_does_not_run(tmp_path: Path) -> None:
    (tmp_path / "evil.py").write_text("print('RAN')\n")
    skill = write_skill(tmp_path / "pdf", {"references/x.md": ""}, "references:\n  - scripts/link.py\n")
    (skill / "scripts").mkdir()
    (skill / "scripts/link.py").symlink_to(tmp_path / "evil.py")
    result = run_script(tmp_path, "scripts/link.py")
    assert not result.ok
    assert "RAN" not in result.text


ODD_ARGUMENTS = ["; touch made", "$(touch made)", "`touch made`", "a\nb", "-c", "--", "'\"", "*", "", "é\u202e"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.py", "import sys\nprint(*[a.encode().hex() for a in sys.argv[1:]], sep='.')\n"),
        ("a.sh", 'for a in "$@"; do printf %s "$a" | od -An -tx1 | tr -d " \\n"; printf .; done\n'),
    ],
)
def test_arguments_reach_a_script_one_by_one_and_unchanged(tmp_path: Path, name: str, text: str) -> None:
    """There is no shell between the model and the script."""
    write_skill(tmp_path / "pdf", {f"scripts/{name}": text})
    result = run_script(tmp_path, name, *ODD_ARGUMENTS)
    received = result.text.removesuffix(".").split(".")
    assert received == [argument.encode().hex() for argument in ODD_ARGUMENTS]
    assert not (tmp_path / "made").exists()


def test_an_argument_that_no_program_can_get_is_refused(tmp_path: Path) -> None:
    write_skill(tmp_path / "pdf", {"scripts/a.py": "print('RAN')\n"})
    result = run_script(tmp_path, "a.py", "a\0b")
    assert not result.ok
    assert "arguments" in result.text


def test_a_given_variable_reaches_no_command_and_no_other_skill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No command, no other skill, and not even another version of the same skill: the user is asked again."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "the-agents-own-key")
    show = "import os\nprint(sorted(os.environ))\n"
    frontmatter = "metadata:\n  env: PDF_KEY\n"
    skill = write_skill(tmp_path / "pdf", {"scripts/a.py": show}, frontmatter)
    write_skill(tmp_path / "csv", {"scripts/a.py": show})
    steps = [run_call("a.py"), run_call("a.py", skill="csv"), call("run_command", command="env"), "ok"]
    core = agent(tmp_path, *steps, run_call("a.py"), "ok")
    giver = Giver(core, PDF_KEY="s3cret-value")
    first, other, command = of(say(core, "go"), ToolReturned)
    assert "PDF_KEY" in first.text
    assert "PDF_KEY" not in other.text
    assert "s3cret" not in command.text
    assert not any("ANTHROPIC" in result.text for result in (first, other, command))

    (skill / "scripts/a.py").write_text(show + "# another version\n")
    giver.values.clear()
    (again,) = of(say(core, "again"), ToolReturned)
    assert "'PDF_KEY'" not in again.text
    assert len(giver.requests) == 2


@pytest.mark.parametrize(
    "name", ["PATH", "LD_PRELOAD", "PYTHONPATH", "NODE_OPTIONS", "BASH_ENV", "HOME", "GIT_SSH_COMMAND", "A=B", "A B\0"]
)
def test_a_variable_that_steers_programs_cannot_be_declared(name: str) -> None:
    assert find_declared_variables({"env": [name, "API_KEY"]}) == ("API_KEY",)


@pytest.mark.parametrize("entry", ["{workspace}/bin", "bin", "", ".", "{outside}/link"])
def test_no_program_of_the_workspace_runs_a_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str) -> None:
    """Whatever the user's PATH says first: a virtual environment of a clone, a relative folder, a link to one."""
    workspace = tmp_path / "work"
    (tmp_path / "outside").mkdir()
    (workspace / "bin").mkdir(parents=True)
    (tmp_path / "outside/link").symlink_to(workspace / "bin")
    for name in ("python3", "python", "sh", "node", "uv"):
        program = workspace / "bin" / name
        program.write_text("#!/bin/sh\necho SHADOWED\n")
        program.chmod(0o755)
        (workspace / name).write_text("#!/bin/sh\necho SHADOWED\n")
        (workspace / name).chmod(0o755)
    monkeypatch.chdir(workspace)
    place = entry.format(workspace=workspace, outside=tmp_path / "outside")
    monkeypatch.setenv("PATH", f"{place}:{os.environ['PATH']}")
    text = "import subprocess\nprint(subprocess.run(['sh', '-c', 'echo real'], capture_output=True).stdout)\n"
    write_skill(workspace / "pdf", {"scripts/a.py": text, "scripts/a.sh": "echo real\n"})
    assert run_script(workspace, "a.py").text == "b'real\\n'"
    assert run_script(workspace, "a.sh").text == "real"
    assert not any(str(workspace) in folder for folder in CleanPath(str(workspace)).folders)


def test_a_program_linked_into_a_clean_folder_does_not_count(tmp_path: Path) -> None:
    """A link outside may lead into the workspace."""
    workspace = tmp_path / "work"
    workspace.mkdir()
    (workspace / "tool").write_text("#!/bin/sh\n")
    (workspace / "tool").chmod(0o755)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/tool").symlink_to(workspace / "tool")
    assert CleanPath(str(workspace), str(tmp_path / "bin")).find("tool") is None


@pytest.mark.parametrize("shebang", ["#!./evil", "#!/opt/evil", "#!/usr/bin/env ./evil", "#!/usr/bin/env -S evil"])
def test_a_first_line_cannot_name_a_program_of_its_own(tmp_path: Path, shebang: str) -> None:
    write_skill(tmp_path / "pdf", {"scripts/a.py": f"{shebang}\nprint('RAN')\n"})
    (tmp_path / "evil").write_text("#!/bin/sh\necho RAN\n")
    (tmp_path / "evil").chmod(0o755)
    result = run_script(tmp_path, "a.py")
    assert not result.ok
    assert "RAN" not in result.text


def test_compiled_and_start_up_modules_never_run(tmp_path: Path) -> None:
    """A compiled file that is not checked against its source could hide what a script does."""
    files = {
        "scripts/a.py": "import helper\nprint(helper.WORD)\n",
        "scripts/helper.py": "WORD = 'HIDDEN'\n",
        "scripts/sitecustomize.py": "print('START-UP')\n",
        "scripts/usercustomize.py": "print('START-UP')\n",
    }
    skill = write_skill(tmp_path / "pdf", files)
    helper = skill / "scripts/helper.py"
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(helper), importlib.util.cache_from_source(str(helper)), invalidation_mode=mode)
    helper.write_text("WORD = 'source'\n")
    (tmp_path / "sitecustomize.py").write_text("print('START-UP')\n")
    assert run_script(tmp_path, "a.py").text == "source"


@sandboxed
def test_a_script_has_no_network_unless_the_user_allowed_it(tmp_path: Path) -> None:
    text = (
        "import socket, sys\n"
        "try:\n    socket.create_connection(('127.0.0.1', int(sys.argv[1])), 20)\n    print('connected')\n"
        "except OSError as error:\n    print(type(error).__name__)\n"
    )
    write_skill(tmp_path / "pdf", {"scripts/a.py": text})
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        user = User("yes", "no", "yes")
        wanted = run_call("a.py", port, network=True)
        core = agent(tmp_path, run_call("a.py", port), wanted, wanted, "ok", mode="ask", user=user)
        results = of(say(core, "go"), ToolReturned)
    assert results[0].text in ("ConnectionRefusedError", "PermissionError")
    assert results[1].refused
    assert results[2].text == "connected"
    closed, *open_ones = user.questions
    assert closed.sandbox is not None
    assert any("the network" in act for act in closed.sandbox.blocked)
    assert all(q.sandbox and any("the network" in act for act in q.sandbox.stays_open) for q in open_ones)


# Starts processes that start processes, each in a session of its own, all of which wait for ever. When all are there,
# it prints more than it may.
BOMB = """
import os, sys, time
ready, report = os.pipe()
witness = open(sys.argv[1], "w")
main = os.getpid()
for _ in range(5):
    if os.fork() == 0:
        os.setsid()
os.write(report, b"x")
if os.getpid() == main:
    for _ in range(32):
        os.read(ready, 1)
    print("all are there" * 100, flush=True)
time.sleep(1000)
"""


@sandboxed
def test_every_process_of_a_script_ends_with_it(tmp_path: Path) -> None:
    """Also those that left its process group and session."""
    os.mkfifo(tmp_path / "witness")
    witness = os.open(tmp_path / "witness", os.O_RDONLY | os.O_NONBLOCK)
    program = Program([sys.executable, "-c", BOMB, "witness"], str(tmp_path), {}, writable=[str(tmp_path)])
    result = asyncio.run(run_program(program, SANDBOX, ProgramLimits(output_bytes=100)))
    assert result.limit == "output"
    # The pipe has an end once no process has it open for writing.
    os.set_blocking(witness, True)
    with open(witness, "rb") as pipe:
        assert pipe.read() == b""


@sandboxed
def test_a_stopped_turn_ends_the_script(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "witness")
    witness = os.open(tmp_path / "witness", os.O_RDONLY | os.O_NONBLOCK)
    text = "import time\npipe = open('witness', 'w')\nopen('started', 'w').close()\ntime.sleep(1000)\n"
    write_skill(tmp_path / "pdf", {"scripts/a.py": text})
    core = agent(tmp_path, run_call("a.py"), "ok")

    async def stop_when_started() -> None:
        async def watch() -> None:
            while not (tmp_path / "started").exists():
                await asyncio.sleep(0.01)
            core.cancel()

        watcher = asyncio.create_task(watch())
        async for _ in core.process_message("go"):
            pass
        await watcher

    asyncio.run(stop_when_started())
    os.set_blocking(witness, True)
    with open(witness, "rb") as pipe:
        assert pipe.read() == b""


def test_a_skill_that_declares_packages_cannot_choose_where_they_come_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """uv starts outside the workspace, so that no configuration of a clone counts."""
    programs = tmp_path_factory.mktemp("bin")
    (programs / "uv").write_text("#!/bin/sh\npwd >&2\nexit 1\n")
    (programs / "uv").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    (tmp_path / "uv.toml").write_text('index-url = "http://evil.example"\n')
    write_skill(tmp_path / "pdf", {"scripts/a.py": '# /// script\n# dependencies = ["x"]\n# ///\n'})
    result = run_script(tmp_path, "a.py")
    assert not result.ok
    assert ".cache/skillshelf/scripts" in result.text
    assert str(tmp_path) not in result.text


_AGENT = """
import sys
from pathlib import Path
from script_kit import run_script
run_script(Path(sys.argv[1]), "a.py")
"""


@sandboxed
def test_a_script_ends_with_an_agent_that_is_killed(tmp_path: Path) -> None:
    """So does the process that it has started in a session of its own. No limit on its time would hold any more."""
    script = (
        "import os, subprocess, time\n"
        "witness = os.open('witness', os.O_WRONLY)\n"
        "subprocess.Popen(['sleep', '600'], start_new_session=True, pass_fds=[witness])\n"
        "os.write(witness, b'x')\n"
        "time.sleep(600)\n"
    )
    write_skill(tmp_path / "pdf", {"scripts/a.py": script})
    os.mkfifo(tmp_path / "witness")
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    agent = subprocess.Popen([sys.executable, "-c", _AGENT, str(tmp_path)], env=environment)
    with open(tmp_path / "witness", "rb") as witness:
        assert witness.read(1) == b"x"
        agent.kill()
        agent.wait()
        # The pipe has an end once no process has it open for writing.
        assert witness.read() == b""
