"""The skill `execution-debugging`, with real programs in the sandbox of this machine."""

import asyncio
import gc
import json
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import uuid
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from calling import call
from skillshelf.errors import PolicyError, SettingsError, SkillError
from skillshelf.sandbox import Level, Sandbox, find_sandbox
from skillshelf.sources.attachable import attach_skill
from skillshelf_skills.execution_debugging import skill as skill_module
from skillshelf_skills.execution_debugging._results import Limits
from skillshelf_skills.execution_debugging.skill import ExecutionDebuggingSkill
from workbench import TOOLS

SANDBOX = find_sandbox()
RUNNER = Path(skill_module.__file__).parent / "references" / "sandbox_runner.py"
NO_SANDBOX = Sandbox("none", "it was taken away")
LEVELS: list[Level] = ["bubblewrap", "landlock"] if SANDBOX.level == "bubblewrap" else [SANDBOX.level]
sandboxed = pytest.mark.skipif(not SANDBOX, reason=f"no sandbox here: {SANDBOX.reason}")

# Starts at most 100 processes, one by one, each in a session of its own. None of them starts another one.
MANY_PROCESSES = """
import subprocess, sys, time
for _ in range(100):
    subprocess.Popen(["sleep", sys.argv[1]], start_new_session=True)
time.sleep(60)
"""


def open_skill(folder: Path | None = None, **options: Any) -> ExecutionDebuggingSkill:
    options.setdefault("allow_unsandboxed", True)
    skill = ExecutionDebuggingSkill(None if folder is None else str(folder), **options)
    return skill.with_policy(dict.fromkeys(TOOLS, "safe"))


def make_marker() -> str:
    """Return a time for `sleep` that no other process has in its command line."""
    return f"60.{uuid.uuid4().int % 10**12:012}"


def find_processes(marker: str) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if marker.encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def wait_until_gone(marker: str) -> None:
    """Wait for the end of the processes with this marker, long before they would end by themselves.

    The process of the sandbox, which has it in its command line, ends a moment after the run.
    """
    for pid in find_processes(marker):
        try:
            process = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        ended, _, _ = select.select([process], [], [], 30)
        os.close(process)
        assert ended, f"process {pid} is still running"
    assert find_processes(marker) == []


# -- running ----------------------------------------------------------------------------------------------------------


def test_a_run_returns_what_it_printed_and_how_it_ended(tmp_path: Path) -> None:
    """Both streams in order, the exit code, the time, and its sandbox."""
    run = call(open_skill(tmp_path), "execute_command", command="echo one; echo two >&2; echo three; pwd")
    assert run["output"] == f"one\ntwo\nthree\n{tmp_path}\n"
    assert run["succeeded"]
    assert run["exit_code"] == 0
    assert run["failure"] is None
    assert run["seconds"] >= 0
    assert run["sandbox"] == SANDBOX.level
    assert run["notices"] == []
    assert json.loads(json.dumps(run)) == run


def test_python_gets_arguments_and_the_modules_of_the_folder(tmp_path: Path) -> None:
    """It leaves nothing of itself there, and nothing runs that was not imported."""
    (tmp_path / "shop.py").write_text("price = 7\n")
    (tmp_path / "sitecustomize.py").write_text("print('not asked for')\n")
    code = "import sys, shop\nprint(shop.price, sys.argv[1:])"
    run = call(open_skill(tmp_path), "execute_python", code=code, arguments=["ä b", "--", ""])
    assert run["output"] == "7 ['ä b', '--', '']\n"
    assert sorted(os.listdir(tmp_path)) == ["shop.py", "sitecustomize.py"]


def test_runs_share_a_folder_and_nothing_else() -> None:
    """Files stay, variables do not."""
    skill = open_skill()
    call(skill, "execute_command", command="echo kept > file; name=value; export name")
    run = call(skill, "execute_command", command='cat file; echo "$name"')
    assert run["output"] == "kept\n\n"


def test_the_environment_has_nothing_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither keys, nor the home folder, nor what changes how Python starts."""
    monkeypatch.setenv("API_KEY", "sesame")
    monkeypatch.setenv("PYTHONSTARTUP", "/evil.py")
    monkeypatch.setenv("LD_PRELOAD", "")
    skill = open_skill()
    code = "import os, json\nprint(json.dumps(dict(os.environ)))"
    environment = json.loads(call(skill, "execute_python", code=code)["output"])
    base = os.path.dirname(call(skill, "describe_sandbox")["folder"])
    assert environment["HOME"].startswith(base)
    assert environment["TMPDIR"].startswith(base)
    assert environment["XDG_CACHE_HOME"].startswith(base)
    assert set(environment) <= {
        "HOME", "LANG", "LC_CTYPE", "NO_COLOR", "PATH", "PWD", "PYTHONDONTWRITEBYTECODE", "PYTHONFAULTHANDLER",
        "PYTHONUNBUFFERED", "SKILLSHELF_PYTHON", "TERM", "TMPDIR", "XDG_CACHE_HOME",
    }  # fmt: skip


def test_programs_of_the_folder_are_not_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder cannot bring a `python3` of its own."""
    (tmp_path / "python3").write_text("#!/bin/sh\necho evil\n")
    (tmp_path / "python3").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert call(open_skill(tmp_path), "execute_python", code="print('good')")["output"] == "good\n"


# -- failures ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "kind", "words"),
    [
        ("no-such-program --help", "command-not-found", "'no-such-program'"),
        ("touch file; ./file", "not-executable", "chmod"),
        ("exit 7", "exit-code", "exit code 7"),
        ("if true", "syntax-error", "/bin/sh"),
        ("kill -SEGV $$", "crashed", "SIGSEGV"),
        ("sh -c 'kill -SEGV $$'; exit 139", "crashed", "SIGSEGV"),
        ("kill -KILL $$", "killed", "SIGKILL"),
        ("kill -TERM $$", "signal", "SIGTERM"),
        ("sh -c 'ulimit -f 1; head -c 100000 /dev/zero > large'", "file-too-large", "more than"),
    ],
)
def test_a_failed_command_is_explained(command: str, kind: str, words: str) -> None:
    """By what it printed and how it ended."""
    run = call(open_skill(), "execute_command", command=command)
    assert not run["succeeded"]
    assert run["failure"]["kind"] == kind
    assert words in run["failure"]["explanation"]
    assert f"references/{run['failure']['reference']}" in ExecutionDebuggingSkill.references


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        ("import no_such_module", "missing-module", "'no_such_module'"),
        ("a = 1\nb = = 2\n", "syntax-error", "line 2"),
        ("def f():\n  return 1 / 0\nf()", "exception", "ZeroDivisionError: division by zero. It was raised at"),
        ("def f():\n  return 1 / 0\nf()", "exception", "line 2, in f"),
        ("x = bytearray(2**30)", "out-of-memory", "256 MiB"),
        ("import os; os.abort()", "crashed", "SIGABRT"),
        ("import sys; sys.exit(4)", "exit-code", "exit code 4"),
    ],
)
def test_a_failed_python_program_is_explained(code: str, kind: str, words: str) -> None:
    """With the place."""
    run = call(open_skill(limits=Limits(memory_mb=256)), "execute_python", code=code)
    assert run["failure"]["kind"] == kind
    assert words in run["failure"]["explanation"]


def test_a_program_that_hangs_is_ended_and_shows_where_it_was() -> None:
    """Python prints its lines before it ends."""
    code = "import time\ndef wait():\n    time.sleep(60)\nwait()"
    run = call(open_skill(), "execute_python", code=code, seconds=5)
    assert run["failure"]["kind"] == "time-limit"
    assert "line 3 in wait" in run["output"]
    assert run["exit_code"] is None


# -- limits -----------------------------------------------------------------------------------------------------------


def test_a_program_that_starts_ever_more_processes_ends_with_all_of_them() -> None:
    """Also those that left its session."""
    marker = make_marker()
    run = call(
        open_skill(limits=Limits(processes=10)), "execute_python", code=MANY_PROCESSES, arguments=[marker], seconds=60
    )
    assert run["failure"]["kind"] == "process-limit"
    wait_until_gone(marker)


@pytest.mark.parametrize("command", ["setsid sleep {} & echo started", "sleep {} & exit 3", "sleep {}"])
def test_what_a_run_started_ends_with_it(command: str) -> None:
    """Whether it ends by itself or at its limit."""
    marker = make_marker()
    call(open_skill(), "execute_command", command=command.format(marker), seconds=1)
    wait_until_gone(marker)


def test_a_run_that_is_cancelled_is_ended(tmp_path: Path) -> None:
    """As when the user interrupts the agent."""
    marker = make_marker()
    skill = open_skill(tmp_path)

    async def cancel_when_started() -> None:
        task = asyncio.ensure_future(skill.execute_command(f"touch started; exec sleep {marker}"))
        while not (tmp_path / "started").exists():
            assert not task.done()
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel_when_started())
    wait_until_gone(marker)


def test_the_memory_of_all_processes_counts() -> None:
    """Each of them alone would be within the limit. The result says how much it was."""
    code = """
import subprocess, sys
hold = "x = bytearray(b'x') * (60 * 2**20); print('filled', flush=True); import time; time.sleep(60)"
holders = [subprocess.Popen([sys.executable, "-c", hold]) for _ in range(3)]
for holder in holders:
    holder.wait()
"""
    run = call(open_skill(limits=Limits(memory_mb=128)), "execute_python", code=code)
    assert run["failure"]["kind"] == "memory-limit"
    assert run["peak_memory_mb"] > 128


def test_endless_output_is_bounded_and_can_be_read_in_pieces() -> None:
    """The result has its beginning and its end."""
    skill = open_skill(limits=Limits(output_bytes=50_000))
    run = call(skill, "execute_command", command="echo first; yes")
    assert run["failure"]["kind"] == "output-limit"
    assert run["output"].startswith("first\ny\n")
    assert "42,000 characters are left out: read_output, offset 4000" in run["output"]
    assert not run["is_whole"]

    text = ""
    offset: int | None = 0
    while offset is not None:
        piece = call(skill, "read_output", run_id=run["run_id"], offset=offset)
        text += piece["text"]
        offset = piece["next_offset"]
    assert len(text) == run["output_characters"] == 50_000
    assert call(skill, "read_output", run_id=run["run_id"], offset=-4)["text"] == text[-4:]
    assert call(skill, "read_output", run_id=run["run_id"], offset=10**9)["text"] == ""


def test_output_that_is_not_text_is_shown_as_far_as_it_is() -> None:
    """It does not break the run."""
    run = call(open_skill(), "execute_command", command=r"printf 'a\377b\n'")
    assert run["output"] == "a\N{REPLACEMENT CHARACTER}b\n"


# -- the sandbox ------------------------------------------------------------------------------------------------------


@sandboxed
def test_a_run_cannot_write_outside_its_folder(tmp_path: Path) -> None:
    """The explanation says where it can."""
    inside = tmp_path / "inside"
    inside.mkdir()
    outside = tmp_path / "outside"
    run = call(open_skill(inside), "execute_command", command=f"echo x > here; echo x > '{outside}'")
    assert run["failure"]["kind"] == "refused"
    assert (inside / "here").exists()
    assert not outside.exists()


@sandboxed
@pytest.mark.parametrize("level", LEVELS)
def test_a_run_cannot_lead_the_next_one_elsewhere(tmp_path: Path, level: Level) -> None:
    """It cannot put links in the place of the folders in which the next run works, and its program is written."""
    skill = open_skill(sandbox=Sandbox(level))
    swap = (
        f"cd .. && for part in work home scratch scratch/files python; "
        f"do mv $part old-$part; ln -s {tmp_path} $part; done; mv $PWD $PWD-old; ln -s {tmp_path} $PWD; true"
    )
    call(skill, "execute_command", command=swap)
    call(skill, "execute_command", command="echo x > escaped; echo x > ~/escaped; echo x > $TMPDIR/escaped")
    assert call(skill, "execute_python", code="print('hello')")["output"] == "hello\n"
    assert list(tmp_path.iterdir()) == []


@sandboxed
@pytest.mark.parametrize("network", [False, True])
def test_the_network_is_closed_unless_allowed(network: bool) -> None:
    """Also to services on this machine."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        port = server.getsockname()[1]
        code = f"import socket; socket.create_connection(('127.0.0.1', {port})).close(); print('connected')"
        run = call(open_skill(network=network), "execute_python", code=code)
    assert run["has_network"] == network
    assert run["succeeded"] == network
    assert network or run["failure"]["kind"] == "no-network"


def test_nothing_runs_without_a_sandbox_unless_the_user_allows_it(tmp_path: Path) -> None:
    """The error says what the user can do; a run that was allowed says that it was not confined."""
    refusing = open_skill(tmp_path, sandbox=NO_SANDBOX, allow_unsandboxed=False)
    with pytest.raises(SkillError, match=r"there is no sandbox here \(it was taken away\).*unsandboxed:FOLDER"):
        call(refusing, "execute_command", command="touch evil")
    assert os.listdir(tmp_path) == []

    run = call(open_skill(tmp_path, sandbox=NO_SANDBOX), "execute_command", command="echo ran")
    assert (run["output"], run["sandbox"], run["has_network"]) == ("ran\n", "none", True)


@sandboxed
@pytest.mark.parametrize("level", LEVELS)
def test_a_run_cannot_outlive_what_guards_it(level: Level) -> None:
    """If it can kill the process of its sandbox at all, nothing is left of it."""
    marker = make_marker()
    skill = open_skill(sandbox=Sandbox(level))
    run = call(skill, "execute_command", command=f"setsid sleep {marker} & kill -KILL $PPID; exit 3")
    assert not run["succeeded"]
    wait_until_gone(marker)


@sandboxed
def test_a_sandbox_that_cannot_be_set_up_is_an_error() -> None:
    """The command does not run."""
    skill = open_skill()
    folder = Path(call(skill, "describe_sandbox")["folder"])
    (folder.parent / "home").rmdir()
    with pytest.raises(SkillError, match="Nothing was run: the sandbox could not be set up"):
        call(skill, "execute_command", command="touch evil")
    assert os.listdir(folder) == []


@sandboxed
@pytest.mark.parametrize("level", LEVELS)
def test_each_level_confines_a_run(tmp_path: Path, level: Level) -> None:
    """Writes, network and processes."""
    marker = make_marker()
    inside = tmp_path / "inside"
    inside.mkdir()
    skill = open_skill(inside, sandbox=Sandbox(level), allow_unsandboxed=False, limits=Limits(processes=10))
    command = f"setsid sleep {marker} & echo x > here; echo x > '{tmp_path}/outside'"
    run = call(skill, "execute_command", command=command)
    assert run["failure"]["kind"] == "refused"
    assert os.listdir(tmp_path) == ["inside"]
    assert os.listdir(inside) == ["here"]
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        code = f"import socket; socket.create_connection(('127.0.0.1', {server.getsockname()[1]}))"
        assert call(skill, "execute_python", code=code)["failure"]["kind"] == "no-network"
    run = call(skill, "execute_python", code=MANY_PROCESSES, arguments=[marker])
    assert run["failure"]["kind"] == "process-limit"
    wait_until_gone(marker)


@pytest.mark.skipif(SANDBOX.level != "bubblewrap", reason="Landlock does not guard Git directories")
def test_a_run_cannot_redirect_the_users_git(tmp_path: Path) -> None:
    """The result names the file that was removed after it."""
    for name in ("objects", "refs"):
        (tmp_path / ".git" / name).mkdir(parents=True)
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    command = "echo ../evil > .git/commondir; echo evil > .git/config; echo evil > .git/hooks/pre-commit"
    run = call(open_skill(tmp_path), "execute_command", command=command)
    assert "removed" in run["notices"][0]
    assert not (tmp_path / ".git" / "commondir").exists()
    assert (tmp_path / ".git" / "config").read_text() == ""
    assert os.listdir(tmp_path / ".git" / "hooks") == []


def test_the_sandbox_is_described(tmp_path: Path) -> None:
    """With the folder, what is kept back and what stays open, and the limits."""
    described = call(open_skill(tmp_path, limits=Limits(processes=5)), "describe_sandbox")
    assert described["folder"] == str(tmp_path)
    assert described["level"] == SANDBOX.level
    assert described["stays_open"]
    assert described["processes"] == 5


# -- attaching --------------------------------------------------------------------------------------------------------


def test_a_temporary_folder_goes_with_the_skill() -> None:
    """With all that runs have written; also if copies of the skill were made."""
    skill = open_skill()
    call(skill, "execute_command", command="mkdir a; touch a/b; chmod 555 a; cd ../home; touch c")
    folder = call(skill, "describe_sandbox")["folder"]
    assert os.path.exists(f"{folder}/a/b")
    del skill
    gc.collect()
    assert not os.path.exists(os.path.dirname(folder))


def test_every_run_asks_when_it_is_attached_by_name(tmp_path: Path) -> None:
    """Reading what a run has printed does not."""
    skill = attach_skill(f"execution-debugging={tmp_path}")
    permissions = {tool.name: tool.permission for tool in skill.tools()}
    assert permissions == {
        "execute_command": "ask",
        "execute_python": "ask",
        "read_output": "safe",
        "describe_sandbox": "safe",
    }
    (tool,) = [tool for tool in skill.tools() if tool.name == "execute_command"]
    with pytest.raises(PolicyError, match="only after the user has approved"):
        tool.call({"command": "touch evil"})


@sandboxed
def test_the_network_is_opened_by_a_word_in_the_setting(tmp_path: Path) -> None:
    """In any order with the other one."""
    for setting, has_network in (
        (str(tmp_path), False),
        (f"network:{tmp_path}", True),
        (f"unsandboxed:network:{tmp_path}", True),
        ("network:", True),
    ):
        described = call(attach_skill(f"execution-debugging={setting}"), "describe_sandbox")
        assert described["has_network"] == has_network


@pytest.mark.parametrize(
    ("folder", "message"),
    [("/no/such/folder", "There is no folder"), ("/", "your whole home folder"), ("~", "your whole home folder")],
)
def test_a_folder_that_cannot_be_worked_in_is_refused(folder: str, message: str) -> None:
    """When the skill is attached, not when it runs."""
    with pytest.raises(SettingsError, match=message):
        attach_skill(f"execution-debugging={folder}")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"command": "a\0b"}, "null character"),
        ({"command": "echo \ud800"}, "half of another one"),
        ({"command": "true", "seconds": 0}, "not a number of seconds"),
        ({"command": "true", "seconds": float("nan")}, "not a number of seconds"),
    ],
)
def test_a_call_that_cannot_be_run_is_explained(arguments: dict[str, Any], message: str) -> None:
    """Nothing is started."""
    with pytest.raises(SkillError, match=message):
        call(open_skill(), "execute_command", **arguments)


def test_an_unknown_run_is_answered_with_those_that_are_kept() -> None:
    """Before the first, there is none."""
    skill = open_skill()
    with pytest.raises(SkillError, match="Nothing has been run yet"):
        call(skill, "read_output", run_id="run-1")
    call(skill, "execute_command", command="true")
    with pytest.raises(SkillError, match=r"no output of a run 'last'\. Output is kept of: run-1\."):
        call(skill, "read_output", run_id="last")


def test_it_needs_none_of_the_libraries_of_the_agent() -> None:
    """The extra installs nothing."""
    program = (
        "import sys, asyncio\n"
        "for name in ('pydantic', 'pydantic_ai', 'anyio', 'httpx', 'httpx2'): sys.modules[name] = None\n"
        "from skillshelf_skills.execution_debugging.skill import ExecutionDebuggingSkill\n"
        "skill = ExecutionDebuggingSkill(allow_unsandboxed=True)\n"
        "print(asyncio.run(skill.execute_command('echo ran'))['output'])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "ran\n\n", done.stderr


# -- the runner -------------------------------------------------------------------------------------------------------


def run_runner(*arguments: str) -> tuple[int, str, dict[str, Any]]:
    done = subprocess.run([sys.executable, str(RUNNER), *arguments], capture_output=True, text=True)
    return done.returncode, done.stdout, json.loads(done.stderr.splitlines()[-1])


def test_the_runner_works_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the reference says: a line of JSON, and the program's exit code."""
    monkeypatch.chdir(tmp_path)
    code, output, report = run_runner("--", "sh", "-c", "echo one; echo two >&2; exit 3")
    assert (code, output) == (3, "one\ntwo\n")
    assert report["exit_code"] == 3
    assert report["sandbox"] == SANDBOX.level
    assert set(report) == {"exit_code", "signal", "limit", "seconds", "peak_memory_mb", "sandbox"}

    code, _, report = run_runner("--", "sh", "-c", "kill -ABRT $$")
    assert code == report["exit_code"] == 128 + 6
    assert report["signal"] == 6

    code, _, report = run_runner("--seconds=0.2", "--", "sleep", "60")
    assert (code, report["exit_code"], report["limit"]) == (124, None, "seconds")

    code, _, report = run_runner("--processes=3", "--", sys.executable, "-c", MANY_PROCESSES, make_marker())
    assert (code, report["limit"]) == (124, "processes")

    assert run_runner("--", "no-such-program")[0] == 127
    assert run_runner("--", "/")[0] == 126


@pytest.mark.parametrize("level", LEVELS)
def test_the_runner_works_in_a_run(tmp_path: Path, level: Level) -> None:
    """A model puts it into the folder, and calls it in a loop. It has the sandbox that can be had inside of another."""
    (tmp_path / "sandbox_runner.py").write_text(RUNNER.read_text())
    program = "import os, pathlib; [pathlib.Path(os.path.expanduser(f'{p}/x')).touch() for p in ('.', '~', '$TMPDIR')]"
    program = program.replace("'$TMPDIR'", "os.environ['TMPDIR']")
    (tmp_path / "program.py").write_text(program)
    command = (
        'for i in 1 2; do "$SKILLSHELF_PYTHON" sandbox_runner.py --seconds=60 --processes=5 -- '
        '"$SKILLSHELF_PYTHON" program.py || exit; done'
    )
    run = call(open_skill(tmp_path, sandbox=Sandbox(level)), "execute_command", command=command)
    assert run["exit_code"] == 0, run["output"]
    assert [json.loads(line)["exit_code"] for line in run["output"].splitlines()] == [0, 0]
    assert (tmp_path / "x").exists()


def test_the_kernel_limits_the_processes_of_an_ordinary_user() -> None:
    """For root it does not."""
    words: list[str] = []
    if os.geteuid() == 0:
        if not shutil.which("setpriv"):
            pytest.skip("no way to become an ordinary user")
        # It may read this Python, wherever root has it.
        identity = ["--reuid=65534", "--regid=65534", "--clear-groups"]
        words = ["setpriv", *identity, "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        os.chmod(folder, 0o777)
        done = subprocess.run(
            [*words, sys.executable, str(RUNNER), "--processes=7", "--", "grep", "Max processes", "/proc/self/limits"],
            env={"PATH": os.environ["PATH"], "TMPDIR": folder},
            capture_output=True,
            text=True,
            check=True,
            cwd=folder,
        )
    assert 70 <= int(done.stdout.split()[2]) < 100_000
