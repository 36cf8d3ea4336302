"""Commands of the agent: they reach nothing outside the workspace, and ordinary work still runs.

Each table runs through the real `run_command` tool, as the user who runs the tests and, if that is root, as an ordinary
user too: root hides faults.
"""

import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from skillshelf.agent import Confinement, find_confinement
from skillshelf.agent.launcher import launch_command, open_plan

HERE = Path(__file__).parent
ORDINARY_USER = 61_234
GIT = "git -c user.name=x -c user.email=x@example.org -c protocol.file.allow=always -c init.defaultBranch=main"
CONFINEMENT = find_confinement()
pytestmark = pytest.mark.skipif(not CONFINEMENT, reason=f"commands cannot be confined here: {CONFINEMENT.reason}")
needs_mounts = pytest.mark.skipif(
    CONFINEMENT.level != "mounted", reason=f"Git directories cannot be guarded here: {CONFINEMENT.reason}"
)


@dataclass(frozen=True)
class Place:
    """A workspace, a folder outside it, and who works there."""

    root: Path
    outside: Path
    user: int
    python: str
    """An interpreter that a confined program of this user can start."""

    def run(self, command: str) -> str:
        """Run a command with the `run_command` tool, and return its answer."""
        words = [sys.executable, str(HERE / "confined_run.py"), str(self.root), str(self.outside), command]
        environment = {**os.environ, "HOME": str(self.outside), "PYTHONDONTWRITEBYTECODE": "1"}
        result = subprocess.run(
            [*become(self.user), *words],
            env=environment,
            cwd=self.root,
            capture_output=True,
            text=True,
            check=False,
            timeout=200,
        )
        assert result.returncode == 0, result.stderr
        answer = json.loads(result.stdout)
        assert (answer["user"], answer["level"]) == (self.user, CONFINEMENT.level)
        return str(answer["text"])

    def launch(self, level: str, *program: str) -> subprocess.CompletedProcess[str]:
        """Run a program at a level of our choice, as the launcher would."""
        with open_plan(level, writable=[str(self.root)]) as plan:
            return subprocess.run(
                [*become(self.user), *launch_command(program, plan, "self")],
                pass_fds=[plan],
                cwd=self.root,
                capture_output=True,
                text=True,
                check=False,
                timeout=200,
            )


def become(user: int) -> list[str]:
    """Return the words before a command that make it run as a user.

    An ordinary user may read the tests and the interpreter, wherever root has them. Confinement takes that away.
    """
    if user == os.geteuid():
        return []
    identity = [f"--reuid={user}", f"--regid={user}", "--clear-groups"]
    return ["setpriv", *identity, "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]


def users() -> list[int]:
    if os.geteuid() == 0 and shutil.which("setpriv"):
        return [0, ORDINARY_USER]
    return [os.geteuid()]


@pytest.fixture(params=users(), ids=lambda user: "root" if user == 0 else "ordinary user")
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    user: int = request.param
    python = sys.executable if user == os.geteuid() else "/usr/bin/python3"
    if not os.path.exists(python):
        pytest.skip("no Python that an ordinary user can start")
    with tempfile.TemporaryDirectory(prefix="confined-", ignore_cleanup_errors=True) as top:
        os.chmod(top, 0o755)
        root = Path(os.path.realpath(top)) / "work"
        outside = Path(os.path.realpath(top)) / "outside"
        root.mkdir()
        outside.mkdir()
        for name in ("file", ".bashrc"):
            (outside / name).write_text("as it was")
        if user != os.geteuid():
            for path in (root, outside, *outside.iterdir()):
                os.chown(path, user, user)
        yield Place(root, outside, user, python)


def state(folder: Path) -> dict[str, tuple[object, ...]]:
    """Return everything that a command could change about the files of a folder."""
    files: dict[str, tuple[object, ...]] = {}
    for path in sorted([folder, *folder.rglob("*")]):
        info = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        attributes = tuple(os.listxattr(path, follow_symlinks=False))
        times = () if path.is_dir() else (info.st_mtime_ns,)
        files[path.name] = (info.st_mode, info.st_uid, info.st_gid, *times, content, attributes)
    return files


def make_escape_command(place: Place) -> str:
    """Return a command that tries every escape and prints the list of those that worked."""
    copy = place.root / "escapes.py"
    shutil.copy(HERE / "escapes.py", copy)
    os.chmod(copy, 0o644)
    return f"{place.python} escapes.py {place.root} {place.outside} {{victim}}"


def find_successes(text: str) -> list[str]:
    """Return the list in the output of that command."""
    line = next(line for line in text.splitlines() if line.startswith("["))
    if line.startswith("[stdout]"):
        line = text.splitlines()[1]
    names: list[str] = json.loads(line)
    return names


def test_a_command_reaches_nothing_outside(place: Place) -> None:
    """Writes, changes of metadata, sockets and other processes are refused."""
    before = state(place.outside)
    successes = find_successes(place.run(make_escape_command(place)))
    if CONFINEMENT.level != "landlock":  # which lets changes of metadata and connections through
        assert successes == []
        assert state(place.outside) == before


def test_without_namespaces_a_supervisor_refuses_the_same(place: Place) -> None:
    """On systems that allow no mounts, chmod and its relatives are refused outside, and work inside."""
    if CONFINEMENT.level == "landlock":
        pytest.skip(f"no supervisor here: {CONFINEMENT.reason}")
    before = state(place.outside)
    command = make_escape_command(place).format(victim=os.getppid())
    assert find_successes(place.launch("supervised", *command.split()).stdout) == []
    assert state(place.outside) == before
    inside = "touch a && chmod 700 a && chown $(id -u):$(id -g) a && touch -d 2001-01-01 a && ln -s a b && touch -h b"
    more = " && cp -a a c && tar cf t.tar a && mkdir x && tar xpf t.tar -C x && (cd x && chmod u+x,go-w ./a)"
    result = place.launch("supervised", "sh", "-c", inside + more)
    assert (result.returncode, result.stderr) == (0, "")
    assert (place.root / "c").stat().st_mode & 0o777 == 0o700
    assert (place.root / "c").stat().st_mtime < 1_000_000_000


@pytest.fixture
def repositories(place: Place) -> Place:
    """A workspace that is a repository, with a submodule, a linked worktree and a bare repository in it."""
    steps = [
        f"{GIT} init -q . && echo one > a && {GIT} add a && {GIT} commit -qm one",
        f"{GIT} init -q ../outside/other && cd ../outside/other && {GIT} commit -qm one --allow-empty",
        f"{GIT} submodule --quiet add --name sub ../outside/other sub 2>&1 && {GIT} commit -qm sub",
        f"{GIT} worktree add -q tree -b side",
        f"{GIT} init -q --bare nested/bare.git && rm -r nested/bare.git/hooks",
        "printf '#!/bin/sh\\nexit 0\\n' > .git/hooks/commit-msg && chmod +x .git/hooks/commit-msg",
    ]
    environment = {**os.environ, "HOME": str(place.outside)}
    for step in steps:
        words = [*become(place.user), "sh", "-c", step]
        subprocess.run(words, cwd=place.root, env=environment, check=True, capture_output=True)
    return place


@needs_mounts
def test_a_command_cannot_change_the_programs_that_git_runs(repositories: Place) -> None:
    """Hooks and configuration of the repository, its submodules and worktrees, and of bare ones stay as they are."""
    place = repositories
    guarded = [".git/config", ".git/hooks", ".git/modules/sub/config", ".git/worktrees/tree", "tree/.git"]
    before = {name: state(place.root / name) for name in guarded}
    assert find_successes(place.run(make_escape_command(place))) == []
    assert {name: state(place.root / name) for name in guarded} == before


@needs_mounts
def test_a_file_that_redirects_git_is_removed_and_named(repositories: Place) -> None:
    """`commondir` would make Git read its configuration elsewhere."""
    text = repositories.run("mkdir evil; echo ../evil > .git/commondir")
    assert f"removed {repositories.root}/.git/commondir" in text
    assert not (repositories.root / ".git/commondir").exists()


WORK = {
    "git status": f"{GIT} status --short",
    "git add and commit": f"echo two > b && {GIT} add b && {GIT} commit -qm two",
    "git branch": f"{GIT} checkout -q -b topic && {GIT} checkout -q - && {GIT} branch -q -D topic",
    "git stash": f"echo three >> a && {GIT} stash -q && {GIT} stash pop -q && {GIT} checkout -q a",
    "git merge": f"{GIT} checkout -q -b m && echo m > m && {GIT} add m && {GIT} commit -qm m && {GIT} checkout -q -"
    f" && {GIT} merge -q m",
    "git rebase, tag, reset, gc": f"{GIT} rebase -q m && {GIT} tag v1 && {GIT} reset -q --hard && {GIT} gc -q",
    "git clone": f"{GIT} clone -q . copy",
    "git in a worktree": f"cd tree && echo t > t && {GIT} add t && {GIT} commit -qm t",
    "make": "printf 'all:\\n\\techo made > made\\n' > Makefile && make && test -s made",
    "a script made executable": "printf '#!/bin/sh\\necho ran\\n' > s && chmod +x s && ./s",
    "tar": "mkdir t && echo x > t/x && chmod 640 t/x && tar czf t.tgz t && rm -r t && tar xzpf t.tgz && test -f t/x",
    "copies with their times": "cp -a a e && touch -d 2001-01-01 e && touch -h e",
    "temporary files": 'f=$(mktemp) && echo x > "$f" && rm "$f"',
    "pipes and devices": "yes | head -1 > /dev/null && echo x | tee /dev/null | grep -q x",
    "a background program": "(sleep 0.1; echo late > late) > /dev/null 2>&1 &",
    "shared locks": "{python} -c 'import multiprocessing as m; m.Lock(); m.Pool(2).map(abs, [-1])'",
    "a socket in the workspace": '{python} -c \'import socket as s; a = s.socket(s.AF_UNIX); a.bind("k"); a.listen();'
    ' s.socket(s.AF_UNIX).connect("k")\'',
    "a socket on loopback": '{python} -c \'import socket as s; a = s.create_server(("127.0.0.1", 0));'
    " s.create_connection(a.getsockname())'",
    "asyncio": "{python} -c 'import asyncio as a; a.run(a.create_subprocess_shell(\"true\"))'",
    "npm": 'command -v npm > /dev/null || exit 0; echo \'{"scripts": {"t": "node -e 1"}}\' > package.json; npm run t',
    "venv": "{python} -m venv --without-pip v && v/bin/python -c 'import sys'",
}


@needs_mounts
def test_ordinary_work_still_runs(repositories: Place) -> None:
    """Version control, builds, archives, temporary files and a program's own sockets work."""
    failed = "failed=''; "
    for name, command in WORK.items():
        inner = shlex.quote(command.replace("{python}", repositories.python))
        failed += f'out=$(sh -c {inner} 2>&1) || failed="$failed [{name}: $out]"; '
    text = repositories.run(failed + 'echo "failed:$failed."')
    assert "failed:." in text, text


@needs_mounts
def test_tests_and_packages_run_in_it(tmp_path: Path) -> None:
    """pytest works, and so does pip with a package in the workspace."""
    place = Place(tmp_path / "work", tmp_path / "outside", os.geteuid(), sys.executable)
    place.root.mkdir()
    place.outside.mkdir()
    (place.root / "test_it.py").write_text("def test_it(tmp_path):\n    (tmp_path / 'x').write_text('x')\n")
    with zipfile.ZipFile(place.root / "pkg-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("pkg.py", "x = 1\n")
        wheel.writestr("pkg-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: pkg\nVersion: 1\n")
        wheel.writestr("pkg-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("pkg-1.dist-info/RECORD", "")
    test = f"{sys.executable} -m pytest -q -p no:xdist test_it.py"
    install = f"{sys.executable} -m pip install -q --no-index --target made ./pkg-1-py3-none-any.whl"
    text = place.run(f"{test} && {install} && test -f made/pkg.py && echo all-done")
    assert "all-done" in text, text


def test_a_command_ends_as_it_would_unconfined(place: Place) -> None:
    """The exit status and the signal that ended it are passed on."""
    texts = [place.run(command) for command in ("exit 7", "kill -TERM $$", "no-such-program")]
    assert ["exit code: 7" in texts[0], "exit code: 143" in texts[1], "exit code: 127" in texts[2]] == [True] * 3


needs_filter = pytest.mark.skipif(
    not CONFINEMENT.can_block_network, reason=f"programs cannot be kept from the network here: {CONFINEMENT.reason}"
)
LEVELS_WITH_FILTER = ["mounted", "supervised"] if CONFINEMENT.level == "mounted" else ["supervised"]


@needs_filter
@pytest.mark.parametrize("level", LEVELS_WITH_FILTER)
def test_a_program_without_network_reaches_no_service(tmp_path: Path, level: str) -> None:
    """Neither this machine's own services, by either protocol, nor a raw socket."""
    script = """
import socket, sys
port = int(sys.argv[1])
for family, kind in [("AF_INET", "SOCK_STREAM"), ("AF_INET", "SOCK_DGRAM"), ("AF_INET6", "SOCK_STREAM")]:
    try:
        socket.socket(getattr(socket, family), getattr(socket, kind)).connect(("localhost", port))
    except PermissionError:
        print("refused")
left, right = socket.socketpair()
left.sendall(b"within the program")
print(right.recv(100).decode())
"""
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        open_plan(level, writable=[str(tmp_path)], network=False) as plan,
    ):
        program = [sys.executable, "-c", script, str(server.getsockname()[1])]
        result = subprocess.run(
            launch_command(program, plan), cwd=tmp_path, capture_output=True, text=True, check=False, timeout=200
        )
    assert result.stdout.splitlines() == ["refused", "refused", "refused", "within the program"], result.stderr


def test_the_lowest_level_does_not_pretend_to_block_the_network(tmp_path: Path) -> None:
    """A program that is to run without network does not start, and the approval question lists the network as open."""
    with open_plan("landlock", writable=[str(tmp_path)], network=False) as plan:
        command = launch_command(["/bin/sh", "-c", "echo ran"], plan)
        result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
    assert (result.returncode, result.stdout) == (125, "")
    lowest = Confinement("landlock", "", 7).without_network()
    assert any("the network" in act for act in lowest.stays_open)
    highest = Confinement("mounted", "", 7).without_network()
    assert not any("the network" in act for act in highest.stays_open)


# Starts a process outside the program's group and session, which says that it is there and waits for ever.
STRAY = """
import os, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.close(0), os.close(1), os.close(2)
        with open(sys.argv[1], "w") as report:
            report.write("here")
            report.flush()
            os.read(os.open(sys.argv[2], os.O_RDONLY), 1)
    os._exit(0)
os.wait()
with open(sys.argv[1]) as report:
    assert report.read(4) == "here"
"""


@needs_filter
@pytest.mark.parametrize("ending", ["os._exit(3)", "os.setsid(); print('alone', flush=True); os.read(0, 1)"])
def test_what_a_program_started_ends_with_it(tmp_path: Path, ending: str) -> None:
    """Also a process that left its group and session, and a program that did so itself before a timeout killed it."""
    os.mkfifo(tmp_path / "never")
    os.mkfifo(tmp_path / "report")
    script = f"import signal\n{STRAY}\n{ending}"
    witness = os.open(tmp_path / "report", os.O_RDONLY | os.O_NONBLOCK)
    with open_plan(CONFINEMENT.level, writable=[str(tmp_path)], leaves_processes=False) as plan:
        program = [sys.executable, "-c", script, str(tmp_path / "report"), str(tmp_path / "never")]
        process = subprocess.Popen(
            launch_command(program, plan),
            cwd=tmp_path,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert process.stdout is not None
        if "alone" in ending:
            assert process.stdout.readline() == b"alone\n"
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=200)
        process.stdout.close()
        assert process.stdin is not None
        process.stdin.close()

    # The pipe has an end once no process has it open for writing.
    os.set_blocking(witness, True)
    with open(witness, "rb") as pipe:
        assert pipe.read() in (b"", b"here")


@pytest.mark.parametrize("level", ["mounted", "supervised", "landlock"])
def test_each_level_names_the_acts_it_leaves_open(level: str) -> None:
    """An act that a higher level blocks is listed as open by a level that does not."""
    highest = Confinement("mounted", "", 7)
    this = Confinement(level, "", 7)  # type: ignore[arg-type]
    assert set(highest.blocked) - set(this.blocked) <= set(this.stays_open)
    assert not set(this.blocked) & set(this.stays_open)
    assert all(act in this.summary for act in this.stays_open)


def test_an_older_landlock_is_reported_to_let_signals_through() -> None:
    """Version 6 was the first to refuse them."""
    assert "sending signals to your other processes" in Confinement("landlock", "", 5).stays_open
    assert "sending signals to your other processes" in Confinement("landlock", "", 6).blocked


@pytest.mark.skipif(CONFINEMENT.landlock < 5, reason="this Landlock does not know devices")
def test_a_command_cannot_set_up_a_terminal_of_the_user(place: Place) -> None:
    """A process that opened one for reading could turn its echo off, if Landlock did not refuse it."""
    master, terminal = os.openpty()
    path = os.ttyname(terminal)
    os.chown(path, place.user, -1)
    script = f"import os, termios; termios.tcgetattr(os.open({path!r}, os.O_RDONLY | os.O_NOCTTY))"
    result = place.launch("landlock", place.python, "-c", script)
    os.close(master)
    os.close(terminal)
    assert "Permission denied" in result.stderr


def test_the_safety_page_lists_the_acts_that_the_code_lists() -> None:
    """docs/concepts/safety.md quotes the words of the approval question."""
    page = " ".join((HERE.parents[1] / "docs/concepts/safety.md").read_text().split())
    highest = Confinement("mounted", "", 7)
    lowest = Confinement("landlock", "", 7)
    missing = [words for words in (*highest.blocked, *highest.stays_open, *lowest.stays_open) if words not in page]
    assert missing == []


def test_confinement_needs_no_package_and_ignores_the_environment(tmp_path: Path) -> None:
    """Modules in PYTHONPATH or the workspace cannot replace those that the launcher imports."""
    for name in ("ctypes", "json", "socket", "sitecustomize"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('not mine')")
    environment = {"PYTHONPATH": str(tmp_path), "PYTHONHOME": "/nowhere", "PATH": os.environ["PATH"]}
    with open_plan(CONFINEMENT.level, writable=[str(tmp_path)]) as plan:
        command = launch_command(["/bin/sh", "-c", "echo ran"], plan)
        result = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=200
        )
    assert (result.stdout, result.stderr) == ("ran\n", "")


def test_a_program_that_cannot_be_confined_does_not_start(tmp_path: Path) -> None:
    """The launcher says why, instead of running it unconfined."""
    with open_plan("landlock", writable=[str(tmp_path / "missing")]) as plan:
        command = launch_command(["/bin/sh", "-c", "echo ran"], plan)
        result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
    assert (result.returncode, result.stdout) == (125, "")
    assert "The command was not run" in result.stderr


def test_no_program_can_change_the_plan_of_another(tmp_path: Path) -> None:
    """The file is sealed: even a process that has it open can neither write to it nor cut it short."""
    with open_plan("landlock", writable=[str(tmp_path)]) as plan:
        with pytest.raises(PermissionError):
            os.pwrite(plan, b"{}", 0)
        with pytest.raises(PermissionError):
            os.ftruncate(plan, 0)
        with pytest.raises(PermissionError):
            os.ftruncate(plan, 1_000_000)


def test_a_program_whose_plan_cannot_be_read_does_not_start(tmp_path: Path) -> None:
    missing_descriptor = 1_000_000
    command = launch_command(["/bin/sh", "-c", "echo ran"], missing_descriptor)
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=200)
    assert (result.returncode, result.stdout) == (125, "")
    assert "the plan of its confinement cannot be read" in result.stderr
