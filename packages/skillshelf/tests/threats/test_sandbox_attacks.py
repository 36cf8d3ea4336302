"""Every act that the safety page calls blocked is attacked, and ordinary work still runs.

The attacks run through the real `run_command` tool, in two commands of one conversation, as the user who runs the tests
and, if that is root, as an ordinary user too: root hides faults.
"""

import asyncio
import fcntl
import json
import os
import pwd
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pytest

from repository import REPO
from skillshelf.sandbox import GitGuard, Program, ProgramLimits, Sandbox, find_sandbox, run_program
from skillshelf_agent import AgentCore, Policy
from skillshelf_agent.events import Event, Notice, ToolOutput
from skillshelf_agent.testing import ScriptedModel, call

HERE = Path(__file__).parent
PAGE = REPO / "docs/concepts/safety.md"
ORDINARY_USER = 61_234
GIT = "git -c user.name=x -c user.email=x@example.org -c protocol.file.allow=always -c init.defaultBranch=main"
SANDBOX = find_sandbox()
pytestmark = pytest.mark.skipif(SANDBOX.level != "bubblewrap", reason=f"bubblewrap is needed: {SANDBOX.reason}")
NETWORK = "the network, including services on this machine"


def read_table() -> dict[str, dict[str, bool]]:
    """Return the acts in the table of the safety page, and which level blocks each."""
    section = PAGE.read_text().partition("### The sandbox")[2].partition("\n### ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if "|" in line]
    header, _, *rows = rows
    levels = {"bubblewrap": header.index("bubblewrap"), "landlock": header.index("Landlock")}
    return {row[0]: {level: row[column].startswith("yes") for level, column in levels.items()} for row in rows}


@dataclass(frozen=True)
class Place:
    """A workspace, a folder outside it, and who works there."""

    root: Path
    outside: Path
    home: Path
    user: int

    def run(self, *commands: str, level: str = "best", network: str = "network") -> list[str]:
        """Run commands with the `run_command` tool, in one conversation, and return the answers."""
        script = str(HERE / "sandbox_run.py")
        words = [sys.executable, script, level, str(self.root), str(self.outside), network, *commands]
        result = subprocess.run(
            [*become(self.user), *words],
            env={"PATH": os.environ["PATH"], "HOME": str(self.home), "PYTHONDONTWRITEBYTECODE": "1"},
            cwd=self.root,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert result.returncode == 0, result.stderr
        answer = json.loads(result.stdout)
        assert (answer["user"], answer["level"]) == (self.user, "bubblewrap" if level == "best" else level)
        texts: list[str] = answer["texts"]
        return texts


def become(user: int) -> list[str]:
    """Return the words before a command that make it run as a user.

    An ordinary user may read the tests and the interpreter, wherever root has them. The sandbox takes that away.
    """
    if user == os.geteuid():
        return []
    identity = [f"--reuid={user}", f"--regid={user}", "--clear-groups"]
    return ["setpriv", *identity, "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]


def users() -> list[int]:
    if os.geteuid() == 0 and shutil.which("setpriv"):
        return [0, ORDINARY_USER]
    return [os.geteuid()]


@cache
def find_python(user: int) -> str:
    """Return an interpreter that a sandboxed program of this user can start."""
    words = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user != os.geteuid() else []
    for python in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        # Through a shell: what setpriv starts itself can still have rights that its children do not.
        if subprocess.run([*words, "/bin/sh", "-c", f"{python} -c ''"], capture_output=True).returncode == 0:
            return python
    pytest.skip("no Python that an ordinary user can start")


def make_place(user: int) -> Place:
    """Make the folders where no level hides them: /tmp is private to a sandboxed program."""
    candidates = ("/srv", "/opt", pwd.getpwuid(os.getuid()).pw_dir)
    base = next(folder for folder in candidates if os.access(folder, os.W_OK))
    top = Path(os.path.realpath(tempfile.mkdtemp(prefix="skillshelf-attacks-", dir=base)))
    os.chmod(top, 0o755)
    place = Place(top / "work", top / "outside", top / "user", user)
    for folder in (place.root, place.outside, place.home):
        folder.mkdir()
    for name in ("file", ".bashrc"):
        (place.outside / name).write_text("as it was")
    with suppress(OSError):  # on a file system without attributes
        os.setxattr(place.outside / "file", "user.there", b"1")
    for path in (*top.iterdir(), *place.outside.iterdir()):
        os.chown(path, user, user)
    return place


@pytest.fixture(params=users(), ids=lambda user: "root" if user == 0 else "ordinary user")
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    made = make_place(request.param)
    yield made
    shutil.rmtree(made.root.parent, ignore_errors=True)


@pytest.fixture
def repositories(place: Place) -> Place:
    """A workspace that is a repository, with a submodule, a linked worktree and a bare repository in it."""
    make_repositories(place)
    return place


def make_repositories(place: Place) -> None:
    steps = [
        f"{GIT} init -q . && echo one > a && {GIT} add a && {GIT} commit -qm one",
        f"{GIT} init -q ../user/other && cd ../user/other && {GIT} commit -qm one --allow-empty",
        f"{GIT} submodule --quiet add --name sub ../user/other sub 2>&1 && {GIT} commit -qm sub",
        f"{GIT} worktree add -q tree -b side",
        f"{GIT} init -q --bare nested/bare.git && rm -r nested/bare.git/hooks",
        "printf '#!/bin/sh\\nexit 0\\n' > .git/hooks/commit-msg && chmod +x .git/hooks/commit-msg",
        "mkdir -p .git/info && touch .git/info/attributes",
    ]
    for step in steps:
        words = [*become(place.user), "sh", "-c", step]
        environment = {**os.environ, "HOME": str(place.home)}
        subprocess.run(words, cwd=place.root, env=environment, check=True, capture_output=True)


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


def attack(user: int, level: str, network: str) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Run all attacks in a command, and again in a second one. Return what worked in each, by the act."""
    place = make_place(user)
    try:
        make_repositories(place)
        shutil.copy(HERE / "escapes.py", place.home / "escapes.py")
        os.chmod(place.home / "escapes.py", 0o644)
        guarded = [
            ".git/config",
            ".git/hooks",
            ".git/info",
            ".git/modules/sub/config",
            ".git/worktrees/tree",
            "tree/.git",
        ]
        before = [state(place.outside), *(state(place.root / name) for name in guarded)]

        words = [find_python(user), str(place.home / "escapes.py"), str(place.root), str(place.outside)]
        command = f"{shlex.join(words)} {{victim}} {{terminal}} {{port}}"
        first, second = map(read_successes, place.run(command, command, level=level, network=network))

        with open(place.root / "held", "rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                second["leaving processes behind"].append("a process holds its lock")
        if level == "best":
            assert [state(place.outside), *(state(place.root / name) for name in guarded)] == before
        return first, second
    finally:
        shutil.rmtree(place.root.parent, ignore_errors=True)


def read_successes(text: str) -> dict[str, list[str]]:
    """Return the JSON in the output of the attacks."""
    line = next((line for line in text.splitlines() if line.startswith("{")), None)
    assert line is not None, text
    found: dict[str, list[str]] = json.loads(line)
    return found


@pytest.mark.parametrize("user", users(), ids=lambda user: "root" if user == 0 else "ordinary user")
@pytest.mark.parametrize("level", ["bubblewrap", "landlock"])
def test_blocked_acts_withstand_their_attacks(user: int, level: str) -> None:
    """Alone, and in two commands. A row of the table without an attack fails here."""
    blocked = [act for act, by_level in read_table().items() if by_level[level]]
    sandbox = "best" if level == "bubblewrap" else level
    with_network = attack(user, sandbox, "network")
    without_network = attack(user, sandbox, "rule") if NETWORK in blocked else with_network

    succeeded: dict[str, list[list[str]]] = {}
    for act in blocked:
        first, second = without_network if act == NETWORK else with_network
        if first[act] or second[act]:
            succeeded[act] = [first[act], second[act]]
    assert succeeded == {}


def test_an_attack_on_an_open_act_works(tmp_path: Path) -> None:
    """So the attacks are attacks: without a sandbox, each act of the table succeeds in some way."""
    first, second = attack(os.geteuid(), "none", "network")
    harmless = [act for act in first if not first[act] and not second[act]]
    assert harmless == []


def test_the_safety_page_and_the_code_list_the_same_acts() -> None:
    """The approval question has these words, too."""
    table = read_table()
    for level in ("bubblewrap", "landlock"):
        blocked = {act for act, by_level in table.items() if by_level[level]}
        sandbox = Sandbox(level, landlock=7).without_network()
        assert set(sandbox.blocked) == blocked
    page = " ".join(PAGE.read_text().split())
    assert [act for act in Sandbox("bubblewrap").stays_open if act not in page] == []


@pytest.mark.parametrize(
    ("act", "since"),
    [
        ("emptying files outside", 3),
        ("writing to your terminals and changing their settings", 5),
        ("sending signals to your other processes", 6),
        ("leaving processes behind", 6),  # a signal to our launcher keeps it from ending what the program has started
    ],
)
def test_what_an_older_landlock_lets_through_is_reported(act: str, since: int) -> None:
    for version in range(1, 8):
        assert (act in Sandbox("landlock", landlock=version).blocked) is (version >= since)


def test_a_file_that_redirects_git_is_removed_and_named(repositories: Place) -> None:
    """`commondir` would make Git read its configuration elsewhere."""
    [text] = repositories.run("mkdir evil; echo ../evil > .git/commondir; chmod 111 .git")
    assert f"removed {repositories.root}/.git/commondir" in text
    assert not (repositories.root / ".git/commondir").exists()


def test_a_command_that_the_user_stops_leaves_no_redirection(tmp_path: Path) -> None:
    """The user stops a command that hangs, and is told what it had done to Git."""
    git = tmp_path / ".git"
    git.mkdir()
    model = ScriptedModel(call("run_command", command="echo ../evil > .git/commondir; echo made; sleep 600"))
    core = AgentCore(model, tmp_path, policy=Policy("yolo"))

    async def stop_when_made() -> list[Event]:
        events = []
        async for event in core.process_message("go"):
            events.append(event)
            if isinstance(event, ToolOutput):
                core.cancel()
        return events

    events = asyncio.run(stop_when_made())
    assert not (git / "commondir").exists()
    notices = [event.text for event in events if isinstance(event, Notice)]
    assert notices == [f"skillshelf removed {git}/commondir, which would have redirected Git."]


def test_the_guard_removes_nothing_outside(place: Place) -> None:
    """A folder above a repository is swapped for a link to one outside that has a `commondir` of its own."""
    for folder in ("above/tree/objects", "above/tree/refs"):
        (place.root / folder).mkdir(parents=True)
    (place.root / "above/tree/HEAD").write_text("ref: refs/heads/main\n")
    (place.outside / "tree").mkdir()
    (place.outside / "tree/commondir").write_text("../..")
    for path in (*place.root.rglob("*"), *place.outside.rglob("*")):
        os.chown(path, place.user, place.user)
    place.run(f"mv above moved; ln -s {place.outside} above")
    assert (place.outside / "tree/commondir").read_text() == "../.."


SWAP = """
import os, sys, time
def swap(old, new):
    try:
        os.rename(old, new)
    except OSError as error:
        print(error.strerror, flush=True)
os.makedirs("new/.git/hooks")
open("new/.git/config", "w").close()
os.symlink("../outside", "link")
print("begun", flush=True)
while True:
    for folder in sys.argv[1:]:
        swap(folder, "kept")
        swap("link", folder)
        time.sleep(0.01)
        swap(folder, "link")
        swap("kept", folder)
        time.sleep(0.003)
"""


@pytest.mark.parametrize("folder", ["new", "old", "old/.git"])
def test_a_background_program_leads_no_mount_of_a_command_outside(folder: str) -> None:
    """It swaps folders for a link while commands start. Without the guard, every third could write outside."""
    place = make_place(os.geteuid())
    guard = GitGuard(str(place.root))
    for path in (place.root / "old", place.outside):
        (path / ".git/hooks").mkdir(parents=True)
        (path / ".git/config").touch()
    words = ["/bin/sh", "-c", f"echo x > {place.outside}/.git/made; echo x > {place.outside}/made"]
    program = Program(words, str(place.root), dict(os.environ), writable=[str(place.root)], git=guard)

    async def run_all() -> None:
        begun = asyncio.Event()
        job = replace(program, words=[find_python(os.geteuid()), "-c", SWAP, folder], background=True)
        limits = ProgramLimits(seconds=0)
        swapping = asyncio.create_task(
            run_program(job, find_sandbox(), limits, take_output=lambda _: begun.set(), merge=True)
        )
        await begun.wait()
        for _ in range(30):
            ended = await run_program(program, find_sandbox(), ProgramLimits())
            assert ended.stderr.count("Read-only file system") == 2
        swapping.cancel()
        await asyncio.gather(swapping, return_exceptions=True)

    try:
        asyncio.run(run_all())
        assert sorted(os.listdir(place.outside / ".git")) == ["config", "hooks"]
        assert sorted(os.listdir(place.outside)) == [".bashrc", ".git", "file"]
    finally:
        shutil.rmtree(place.root.parent, ignore_errors=True)


def test_no_configuration_that_a_clone_brings_keeps_a_command_waiting(place: Place) -> None:
    """An endless one, and one that never answers."""
    for name in ("endless", "silent"):
        for folder in ("objects", "refs"):
            (place.root / name / folder).mkdir(parents=True)
        (place.root / name / "HEAD").write_text("ref: refs/heads/main\n")
    (place.root / "endless/config").symlink_to("/dev/zero")
    os.mkfifo(place.root / "silent/config")
    for path in place.root.rglob("*"):
        os.chown(path, place.user, place.user, follow_symlinks=False)
    assert place.run("echo ran") == ["[stdout]\nran\n"]


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
    "temporary files": 'f=$(mktemp) && echo x > "$f" && rm "$f" && cd /tmp && echo x > y && cat y',
    "pipes and devices": "yes | head -1 > /dev/null && echo x | tee /dev/null | grep -q x",
    "shared locks": "{python} -c 'import multiprocessing as m; m.Lock(); m.Pool(2).map(abs, [-1])'",
    "a socket on loopback": '{python} -c \'import socket as s; a = s.create_server(("127.0.0.1", 0));'
    " s.create_connection(a.getsockname())'",
    "asyncio": "{python} -c 'import asyncio as a; a.run(a.create_subprocess_shell(\"true\"))'",
    "npm": 'command -v npm > /dev/null || exit 0; echo \'{"scripts": {"t": "node -e 1"}}\' > package.json; npm run t',
    "venv": "{python} -m venv --without-pip v && v/bin/python -c 'import sys'",
    "names of hosts": "{python} -c 'import socket; socket.getaddrinfo(\"localhost\", 80)'",
}


def test_ordinary_work_still_runs(repositories: Place) -> None:
    """Version control, builds, archives, temporary files and loopback work."""
    python = find_python(repositories.user)
    failed = "failed=''; "
    for name, command in WORK.items():
        inner = shlex.quote(command.replace("{python}", python))
        failed += f'out=$(sh -c {inner} 2>&1) || failed="$failed [{name}: $out]"; '
    [text] = repositories.run(failed + 'echo "failed:$failed."')
    assert "failed:." in text, text


def test_tests_and_packages_run_in_it() -> None:
    """pytest works, and so does pip with a package in the workspace."""
    place = make_place(os.geteuid())
    (place.root / "test_it.py").write_text("def test_it(tmp_path):\n    (tmp_path / 'x').write_text('x')\n")
    with zipfile.ZipFile(place.root / "pkg-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("pkg.py", "x = 1\n")
        wheel.writestr("pkg-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: pkg\nVersion: 1\n")
        wheel.writestr("pkg-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("pkg-1.dist-info/RECORD", "")
    test = f"{sys.executable} -m pytest -q -p no:xdist test_it.py"
    install = f"{sys.executable} -m pip install -q --no-index --target made ./pkg-1-py3-none-any.whl"
    [text] = place.run(f"{test} && {install} && test -f made/pkg.py && echo all-done")
    shutil.rmtree(place.root.parent, ignore_errors=True)
    assert "all-done" in text, text


def test_a_command_ends_as_it_would_without_a_sandbox(place: Place) -> None:
    """The exit status and the signal that ended it are passed on."""
    texts = place.run("exit 7", "kill -TERM $$", "no-such-program")
    assert [re.findall(r"exit code: (\d+)", text) for text in texts] == [["7"], ["143"], ["127"]]


def test_a_command_runs_among_thousands_of_repositories(place: Place) -> None:
    """All are guarded, or the command is refused."""
    for number in range(1_500):
        for folder in ("objects", "refs"):
            (place.root / f"{'a-long-name-' * 6}{number}" / folder).mkdir(parents=True)
        (place.root / f"{'a-long-name-' * 6}{number}" / "HEAD").write_text("ref: refs/heads/main\n")
    last = place.root / f"{'a-long-name-' * 6}1499/config"
    for path in place.root.rglob("*"):
        os.chown(path, place.user, place.user)
    [text] = place.run(f"echo ran; echo evil > {last}")
    assert "Read-only file system" in text or "was not run" in text
    assert not last.exists() or last.read_text() == ""


def test_the_sandbox_ignores_the_modules_of_a_workspace(place: Place) -> None:
    """Modules in PYTHONPATH or the workspace cannot replace those of the launcher."""
    for name in ("ctypes", "json", "socket", "sitecustomize", "skillshelf"):
        (place.root / f"{name}.py").write_text("raise SystemExit('not mine')")
    assert place.run("echo ran", level="landlock") == ["[stdout]\nran\n"]
