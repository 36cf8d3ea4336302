"""Programs in a sandbox: what they get, how they end, and what is left of them. tests/threats has the attacks."""

import asyncio
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from left_processes import find_processes_in
from skillshelf.sandbox import (
    GitGuard,
    Level,
    Program,
    ProgramLimits,
    ProgramResult,
    Sandbox,
    SandboxError,
    Worker,
    WorkerError,
    WorkerLimits,
    call_worker,
    find_sandbox,
    run_program,
)

LINUX = sys.platform.startswith("linux")
LEVELS: list[Level] = ["bubblewrap", "landlock", "none"] if LINUX else ["none"]
pytestmark = pytest.mark.skipif(
    LINUX and find_sandbox().level != "bubblewrap", reason=f"bubblewrap is needed: {find_sandbox().reason}"
)


@pytest.fixture(params=LEVELS)
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    return replace(find_sandbox(), level=request.param)


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """A shell that works in a folder, without its command."""
    folder = tmp_path / "work"
    scratch = tmp_path / "scratch"
    folder.mkdir()
    scratch.mkdir()
    environment = {"PATH": os.environ["PATH"]}
    return Program([], str(folder), environment, writable=[str(folder)], scratch=str(scratch))


def run(program: Program, sandbox: Sandbox, command: str, limits: ProgramLimits | None = None) -> ProgramResult:
    program = replace(program, words=["/bin/sh", "-c", command])
    return asyncio.run(run_program(program, sandbox, limits or ProgramLimits(seconds=60)))


def test_a_program_has_its_streams_and_its_exit_code(program: Program, sandbox: Sandbox) -> None:
    ended = run(program, sandbox, "echo out; echo err >&2; exit 7")
    assert (ended.stdout, ended.stderr, ended.exit_code, ended.limit) == ("out\n", "err\n", 7, None)


def test_a_signal_is_an_exit_code_as_shells_give_it(program: Program, sandbox: Sandbox) -> None:
    assert run(program, sandbox, "kill -TERM $$").exit_code == 143


def test_a_program_gets_no_input(program: Program, sandbox: Sandbox) -> None:
    assert run(program, sandbox, "cat; echo done").stdout == "done\n"


def test_a_program_writes_in_its_folder_and_its_temporary_one(program: Program, sandbox: Sandbox) -> None:
    ended = run(program, sandbox, 'echo x > made && echo y > "$TMPDIR/made" && cat "$TMPDIR/made"')
    assert (ended.stdout, ended.stderr) == ("y\n", "")
    assert (Path(program.folder) / "made").read_text() == "x\n"
    assert (Path(program.temporary) / "made").read_text() == "y\n"


def test_the_temporary_folder_is_the_same_for_the_next_program(program: Program, sandbox: Sandbox) -> None:
    run(program, sandbox, 'echo kept > "$TMPDIR/file"')
    assert run(program, sandbox, 'cat "$TMPDIR/file"').stdout == "kept\n"


def test_what_a_program_started_ends_with_it(program: Program, sandbox: Sandbox) -> None:
    """A process in the background, and one that left the program's group."""
    started = time.monotonic()
    leave = f"{sys.executable} -c 'import os, time; os.setsid(); print(os.getpid(), flush=True); time.sleep(600)'"
    command = "sleep 600 & " if sandbox.level == "none" else f"{leave} & sleep 600 & sleep 0.5; "
    ended = run(program, sandbox, f"{command} echo done")
    assert "done" in ended.stdout
    assert time.monotonic() - started < 300
    assert find_processes_in(program.folder) == []


@pytest.mark.parametrize(
    ("command", "limits", "limit"),
    [
        ("sleep 600", ProgramLimits(seconds=0.5), "seconds"),
        ("yes", ProgramLimits(output_bytes=10_000), "output"),
        ("for i in 1 2 3 4 5 6 7 8; do sleep 600 & done; wait", ProgramLimits(processes=5), "processes"),
        (
            f"{sys.executable} -c 'import time; x = [bytearray(10**6) for _ in range(80)]; time.sleep(600)'"
            f" & {sys.executable} -c 'import time; x = [bytearray(10**6) for _ in range(80)]; time.sleep(600)'",
            ProgramLimits(memory_mb=120),
            "memory",
        ),
    ],
    ids=["seconds", "output", "processes", "memory"],
)
def test_a_limit_ends_a_program_and_is_named(
    program: Program, sandbox: Sandbox, command: str, limits: ProgramLimits, limit: str
) -> None:
    ended = run(program, sandbox, command, limits)
    assert (ended.limit, ended.exit_code) == (limit, None)
    assert len(ended.stdout) <= limits.output_bytes


def test_the_memory_of_a_program_that_starts_no_other_one_is_measured(program: Program, sandbox: Sandbox) -> None:
    """Also where the program is the first process, without one of a sandbox around it."""
    # Shared memory, because the kernel itself limits what is private.
    fill = "import mmap, time; m = mmap.mmap(-1, 100 * 2**20); [m.write(b'x' * 2**20) for _ in range(100)]"
    program = replace(program, words=[sys.executable, "-c", f"{fill}; time.sleep(600)"])
    limits = ProgramLimits(memory_mb=80)
    assert asyncio.run(run_program(program, sandbox, limits)).limit == "memory"


def test_a_program_at_its_time_limit_can_say_where_it_is(program: Program, sandbox: Sandbox) -> None:
    """It gets SIGABRT, on which Python's faulthandler prints a traceback."""
    ended = run(program, sandbox, "trap 'echo here; exit' ABRT; sleep 600", ProgramLimits(seconds=1))
    assert (ended.limit, ended.stdout) == ("seconds", "here\n")


def test_a_program_whose_launcher_is_killed_was_started(program: Program) -> None:
    """It may have done its work, so a caller must not be told that it never ran."""
    killed = asyncio.Event()

    def kill(text: str) -> None:
        os.kill(int(text), signal.SIGKILL)
        killed.set()

    program = replace(program, words=["/bin/sh", "-c", "echo $PPID; sleep 600"])
    ended = asyncio.run(run_program(program, Sandbox("landlock"), ProgramLimits(), take_output=kill))
    assert killed.is_set()
    assert ended.exit_code == 128 + signal.SIGKILL


def test_a_program_that_is_cancelled_ends(program: Program, sandbox: Sandbox) -> None:
    async def cancel() -> None:
        words = ["/bin/sh", "-c", "echo started; sleep 600"]
        begun = asyncio.Event()
        running = asyncio.ensure_future(
            run_program(replace(program, words=words), sandbox, ProgramLimits(), take_output=lambda text: begun.set())
        )
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(cancel())
    # A process that was killed is gone once the kernel has taken it down.
    while find_processes_in(program.folder):
        time.sleep(0.01)


@pytest.fixture
def server() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


CONNECT = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1]))); print('connected')"


@pytest.mark.parametrize("network", [True, False])
def test_only_a_program_with_the_network_reaches_services_of_this_machine(
    program: Program, sandbox: Sandbox, server: int, network: bool
) -> None:
    if sandbox.level == "none" and not network:
        pytest.skip("without a sandbox, the network is open")
    program = replace(program, network=network)
    ended = run(program, sandbox, f'{sys.executable} -c "{CONNECT}" {server}')
    assert (ended.stdout == "connected\n") is network


def test_a_program_without_the_network_has_loopback_of_its_own(program: Program) -> None:
    script = "import socket as s; a = s.create_server(('127.0.0.1', 0)); s.create_connection(a.getsockname())"
    ended = run(program, find_sandbox(), f'{sys.executable} -c "{script}"')
    assert (ended.exit_code, ended.stderr) == (0, "")


def test_a_program_does_not_run_if_its_sandbox_cannot_be_set_up(program: Program, sandbox: Sandbox) -> None:
    if sandbox.level == "none":
        pytest.skip("there is nothing to set up")
    program = replace(program, writable=[*program.writable, f"{program.folder}/missing"])
    with pytest.raises(SandboxError):
        run(program, sandbox, "echo ran > ran")
    assert os.listdir(program.folder) == []


def test_a_workspace_below_tmp_is_seen_and_its_neighbours_are_not(sandbox: Sandbox) -> None:
    if sandbox.level != "bubblewrap":
        pytest.skip("only bubblewrap has a /tmp of its own")
    with (
        tempfile.TemporaryDirectory(dir="/tmp") as place,
        tempfile.TemporaryDirectory(dir="/tmp") as scratch,
        tempfile.TemporaryDirectory(dir="/tmp") as neighbour,
    ):
        (Path(place) / "file").write_text("here")
        program = Program([], place, {"PATH": os.environ["PATH"]}, writable=[place], scratch=scratch)
        ended = run(program, sandbox, "cat file; ls /tmp")
        assert ended.stdout.startswith("here")
        assert os.path.basename(place) in ended.stdout
        assert os.path.basename(neighbour) not in ended.stdout


def test_a_program_cannot_make_files_outside_through_the_mounts_of_the_next_one(sandbox: Sandbox) -> None:
    """In the private /tmp it can swap what is above its folders. Bubblewrap sees the machine's own root as /oldroot."""
    if sandbox.level != "bubblewrap":
        pytest.skip("only bubblewrap has a /tmp of its own")
    with tempfile.TemporaryDirectory(dir="/tmp") as place:
        for name in ("work", "outside", "scratch"):
            os.mkdir(f"{place}/{name}")
        environment = {"PATH": os.environ["PATH"]}
        program = Program([], f"{place}/work", environment, writable=[f"{place}/work"], scratch=f"{place}/scratch")
        first = run(program, sandbox, f"mv {place} {place}-moved && ln -s /oldroot{place}/outside {place}")
        second = run(program, sandbox, "echo x > made; echo x > ../made")
        assert first.exit_code != 0
        assert "Read-only file system" in second.stderr
        assert sorted(os.listdir(place)) == ["outside", "scratch", "work"]
        assert os.listdir(f"{place}/work") == ["made"]
        assert os.listdir(f"{place}/outside") == []


def test_a_program_does_not_run_if_its_folder_has_become_a_link(program: Program, sandbox: Sandbox) -> None:
    """A program that may change a folder above another one's could lead it anywhere."""
    if sandbox.level == "none":
        pytest.skip("there is nothing to lead it out of")
    outside = Path(program.folder).parent / "outside"
    outside.mkdir()
    work = Path(program.folder) / "tmp"
    work.symlink_to("../outside")
    for change in ({"writable": [str(work)]}, {"scratch": str(work)}):
        with pytest.raises(OSError, match="has become a symbolic link"):
            run(replace(program, **change), sandbox, "echo x > ../outside/x")
    assert os.listdir(outside) == []


def test_a_git_guard_remembers_repositories_of_earlier_commands(program: Program) -> None:
    """A repository whose HEAD a command has moved away is one for the next command, too."""
    git = Path(program.folder) / "bare"
    for name in ("objects", "refs", "hooks"):
        (git / name).mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "config").write_text("")
    program = replace(program, git=GitGuard(program.folder))
    first = run(program, find_sandbox(), "mv bare/HEAD bare/H")
    second = run(
        program, find_sandbox(), "echo evil > bare/config; echo evil > bare/hooks/pre-commit; mv bare/H bare/HEAD"
    )
    assert first.exit_code == 0
    assert second.stderr.count("Read-only file system") == 2
    assert (git / "config").read_text() == ""


def test_a_rebase_in_progress_is_named_once(program: Program) -> None:
    program = replace(program, git=GitGuard(program.folder))
    (Path(program.folder) / ".git").mkdir()
    first = run(
        program, find_sandbox(), "mkdir .git/rebase-merge; echo 'exec evil' > .git/rebase-merge/git-rebase-todo"
    )
    assert "rebase in progress" in first.notices[0]
    assert run(program, find_sandbox(), "true").notices == ()


def test_a_repository_that_a_command_makes_is_named_once(program: Program) -> None:
    """A new one, one in the place of another, and the workspace itself, which Git takes if `.git` is damaged."""
    root = Path(program.folder)
    (root / "sub/.git").mkdir(parents=True)
    (root / ".git").mkdir()
    program = replace(program, git=GitGuard(program.folder))
    assert run(program, find_sandbox(), "true").notices == ()
    made = run(program, find_sandbox(), "mkdir -p new/.git refs objects; touch HEAD; mv sub old; mkdir -p sub/.git")
    assert [notice.split(": ")[1].split(". ")[0] for notice in made.notices] == [
        str(path) for path in (root, root / "new/.git", root / "old/.git", root / "sub/.git")
    ]
    assert run(program, find_sandbox(), "true").notices == ()


def test_programs_in_one_workspace_run_one_after_the_other(program: Program) -> None:
    """Otherwise one could swap a Git directory for a link while it is mounted for the next."""
    if find_sandbox().level != "bubblewrap":
        pytest.skip("only bubblewrap mounts Git directories")

    def start(command: str, printed: asyncio.Event) -> "asyncio.Task[ProgramResult]":
        started = replace(program, words=["/bin/sh", "-c", command], git=GitGuard(program.folder))
        limits = ProgramLimits(seconds=60)
        running = run_program(started, find_sandbox(), limits, take_output=lambda _: printed.set())
        return asyncio.create_task(running)

    async def run_both() -> None:
        begun = asyncio.Event()
        waiting = asyncio.Event()
        one = start("echo begun; until [ -e go ]; do sleep 0.05; done; echo 1 >> order", begun)
        await begun.wait()
        two = start("echo 2 >> order", waiting)
        await waiting.wait()
        (Path(program.folder) / "go").touch()
        await asyncio.gather(one, two)

    asyncio.run(run_both())
    assert (Path(program.folder) / "order").read_text() == "1\n2\n"


# -- in the background ------------------------------------------------------------------------------------------------


@asynccontextmanager
async def in_background(program: Program, command: str) -> AsyncIterator[list[str]]:
    """Run a program until the block ends. Yield its output, which has begun."""
    output: list[str] = []
    begun = asyncio.Event()

    def take(text: str) -> None:
        output.append(text)
        begun.set()

    words = ["/bin/sh", "-c", command]
    job = replace(program, words=words, background=True, scratch=f"{program.scratch}-of-job")
    running = asyncio.create_task(
        run_program(job, find_sandbox(), ProgramLimits(seconds=0), take_output=take, merge=True)
    )
    await asyncio.wait([running, asyncio.create_task(begun.wait())], return_when=asyncio.FIRST_COMPLETED)
    try:
        yield output
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def run_beside(program: Program, command: str) -> ProgramResult:
    return await run_program(replace(program, words=["/bin/sh", "-c", command]), find_sandbox(), ProgramLimits())


def test_commands_run_beside_a_background_program(program: Program) -> None:
    """Two of it, and Git directories stay writable to the commands alone."""
    (Path(program.folder) / ".git").mkdir()
    program = replace(program, git=GitGuard(program.folder))

    writer = "echo > .git/commondir; while :; do date > tick; sleep 0.01; done"
    reader = "echo up; until [ -e tick ]; do sleep 0.01; done; cat tick; sleep 600"
    command = "until [ -e tick ]; do sleep 0.01; done; echo x > .git/index; echo ran"

    async def run_all() -> ProgramResult:
        async with in_background(program, writer) as refused, in_background(program, reader):
            ended = await run_beside(program, command)
            assert "Read-only file system" in "".join(refused)
        return ended

    assert asyncio.run(run_all()).stdout == "ran\n"
    assert sorted(os.listdir(f"{program.folder}/.git")) == ["config", "hooks", "index"]


def test_programs_of_another_guard_wait_for_the_end_of_a_background_program(program: Program) -> None:
    """It does not know what that program could swap."""
    other = replace(program, git=GitGuard(program.folder), words=["/bin/sh", "-c", "test -e ended && echo after"])
    program = replace(program, git=GitGuard(program.folder))

    async def run_all() -> ProgramResult:
        waits = asyncio.Event()
        async with in_background(program, "echo up; sleep 600"):
            running = run_program(other, find_sandbox(), ProgramLimits(), take_output=lambda _: waits.set())
            waiting = asyncio.create_task(running)
            await waits.wait()
            assert (await run_beside(program, "touch ended")).exit_code == 0
        return await waiting

    assert asyncio.run(run_all()).stdout == "after\n"


def test_no_program_waits_for_ever_for_a_server_of_another_guard(program: Program) -> None:
    other = replace(program, git=GitGuard(program.folder))
    program = replace(program, git=GitGuard(program.folder))

    async def run_all() -> None:
        async with in_background(program, "echo up; sleep 600"):
            with pytest.raises(SandboxError, match="has a command in the background in this workspace"):
                await run_program(other, find_sandbox(), ProgramLimits(seconds=0.1))

    asyncio.run(run_all())


def test_of_an_endless_output_the_end_is_kept(program: Program) -> None:
    limits = ProgramLimits(output_bytes=100)
    program = replace(program, words=["/bin/sh", "-c", "yes 1234 | head -c 1000000; echo end"], background=True)
    ended = asyncio.run(run_program(program, find_sandbox(), limits, merge=True))
    assert (len(ended.stdout), ended.stdout[-4:], ended.limit) == (100, "end\n", None)


# -- workers ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Worker]:
    """A worker that evaluates what it is asked."""
    program = tmp_path / "program.py"
    program.write_text(
        "import os, signal, time\n"
        "def print_to_pipes(text):\n"
        "    for each in os.listdir('/proc/self/fd'):\n"
        "        if int(each) > 2 and 'pipe' in os.path.realpath(f'/proc/self/fd/{each}'):\n"
        "            os.write(int(each), f'{text}\\n'.encode() * 1000)\n"
        "def answer(request, data):\n"
        "    return eval(request['code'], {**globals(), 'data': [each.decode() for each in data]})\n"
    )
    limits = WorkerLimits(memory_mb=300, answer_bytes=10_000)
    with Worker(str(program), limits, readable=[str(tmp_path)]) as made:
        yield made


def test_a_worker_answers_one_request_after_the_other(worker: Worker) -> None:
    first = worker.ask({"code": "[os.getpid(), data]"}, [b"a", b"", b"b\n" * 1000], seconds=60)
    second = worker.ask({"code": "[os.getpid(), data]"}, seconds=60)
    assert first[1] == ["a", "", "b\n" * 1000]
    assert second == [first[0], []]


@pytest.mark.parametrize(
    ("code", "kind", "message"),
    [
        ("time.sleep(600)", "time", "longer than 0.5 seconds"),
        ("os.kill(os.getpid(), signal.SIGVTALRM)", "time", "too much processor time"),
        ("bytes(10**9)", "memory", "more than 300 MB"),
        ("'x' * 10_000", "size", "more than 10,000 bytes"),
        ("os.abort()", "crash", "SIGABRT"),
        ("1 / 0", "crash", "ZeroDivisionError: division by zero"),
        ("{1, 2}", "crash", "TypeError"),
        ("os._exit(5)", "crash", "status 5"),
        ("print_to_pipes('no JSON')", "crash", "can't be used"),
    ],
)
def test_a_worker_that_fails_says_how_and_the_next_request_gets_a_new_one(
    worker: Worker, code: str, kind: str, message: str
) -> None:
    with pytest.raises(WorkerError, match=message) as caught:
        worker.ask({"code": code}, seconds=0.5 if "sleep" in code else 60)
    assert caught.value.kind == kind
    assert worker.ask({"code": "1 + 1"}, seconds=60) == 2


def test_a_worker_that_cannot_start_fails_with_its_last_words() -> None:
    with (
        Worker("/no/such/program.py", WorkerLimits()) as worker,
        pytest.raises(WorkerError, match="No such file") as caught,
    ):
        worker.ask({}, seconds=60)
    assert caught.value.kind == "crash"


def test_a_worker_has_neither_secrets_nor_network_nor_files_to_write(
    worker: Worker, server: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("API_KEY", "sesame")
    connect = f"__import__('socket').create_connection(('127.0.0.1', {server}))"
    for code in (
        connect,
        "import os; os.chdir('/tmp'); open('new', 'x')",
        f"open({str(tmp_path / 'new')!r}, 'x')",
        "os.mkdir('/var/new')",
    ):
        with pytest.raises(WorkerError, match="Error") as caught:
            worker.ask({"code": code}, seconds=60)
        assert caught.value.kind == "crash"
    assert "API_KEY" not in worker.ask({"code": "dict(os.environ)"}, seconds=60)


def test_a_worker_that_may_write_files_has_a_temporary_folder_until_it_ends(
    worker: Worker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    program = str(tmp_path / "program.py")
    with Worker(program, WorkerLimits(file_mb=1), readable=[str(tmp_path)]) as writer:
        code = "open(os.environ['TMPDIR'] + '/file', 'w').write('x' * int(data[0]))"
        assert writer.ask({"code": code}, [b"1000"], seconds=60) == 1000
        with pytest.raises(WorkerError, match="File too large"):
            writer.ask({"code": code}, [b"2000000"], seconds=60)
    assert os.listdir(tmp_path / "temporary") == []


def test_a_cancelled_call_ends_its_worker(worker: Worker, tmp_path: Path) -> None:
    """The worker holds a pipe open, which closes when it has ended."""
    reader, writer = os.pipe()

    async def cancel() -> None:
        code = f"[os.write({writer}, b'x'), time.sleep(600)]"
        program = str(tmp_path / "program.py")
        calling = asyncio.ensure_future(
            call_worker(
                program, {"code": code}, WorkerLimits(), seconds=600, readable=[str(tmp_path)], descriptors=[writer]
            )
        )
        await asyncio.to_thread(os.read, reader, 1)
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling

    asyncio.run(cancel())
    os.close(writer)
    assert os.read(reader, 1) == b""
    os.close(reader)


def test_the_best_sandbox_lists_what_stays_open_and_what_it_blocks() -> None:
    best = find_sandbox()
    assert "the network, including services on this machine" in best.stays_open
    assert "the network, including services on this machine" in best.without_network().blocked
    assert set(best.blocked) > set(Sandbox("landlock", landlock=7).blocked)
    assert Sandbox("none", "it is switched off").stays_open == ("everything you can do",)
