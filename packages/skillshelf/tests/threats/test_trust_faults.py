"""TRUST, FAULTS: kills, competing processes, full disks and missing rights while approvals are written."""

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from skillshelf import DirectorySource
from skillshelf.errors import TrustError
from skillshelf.trust import Trust, TrustedSource
from threats.workspace import Workspace

ACT = """
import os, signal, sys
from skillshelf import DirectorySource
from skillshelf.trust import Trust, TrustedSource
act, root, at = sys.argv[1], sys.argv[2], int(sys.argv[3])
trust = Trust.open()
source = TrustedSource(DirectorySource(root, "project", cache=False), trust)
source.refresh()
pending = source.pending
count = 0
def hook(event, arguments):
    global count
    if event.startswith(("os.", "shutil.", "fcntl.")) or event == "open":
        count += 1
        if count == at:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(hook)
trust.approve(*pending) if act == "approve" else source.revoke("good")
print(count)
"""


def act(what: str, root: Path, at: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", ACT, what, str(root), str(at)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def make_source(root: Path) -> TrustedSource:
    source = TrustedSource(DirectorySource(root, "project", cache=False), Trust.open())
    source.refresh()
    return source


@pytest.mark.sampled
@pytest.mark.parametrize("what", ["approve", "revoke"])
def test_a_kill_at_any_moment_leaves_the_old_state_or_the_new(what: str, workspace: Workspace, long: bool) -> None:
    """K01: after a kill at any file system event, record and copies are whole, and the next operation works."""
    source = make_source(workspace.root)
    if what == "revoke":
        source.approve(source.pending)
    first = {"approve": set(), "revoke": {"good"}}[what]
    served, at = [], 0
    while True:
        at += 1 if long else 4
        completed = act(what, workspace.root, at)
        now = make_source(workspace.root)
        served.append(set(now.served))
        assert now.trust.problems == ()
        assert served[-1] in (set(), {"good"})
        if completed.returncode == 0:
            break
        assert completed.returncode == -9, completed.stderr
        if served[-1] != first:  # restore the previous state
            now.approve(now.pending) if what == "revoke" else now.revoke("good")
            assert set(make_source(workspace.root).served) == first
        assert at < 400
    assert at > 10
    assert served[-1] != first
    home = Path(source.trust.path)
    assert sorted(path.name for path in home.iterdir()) == ["approvals.json", "lock", "trees"]
    assert sorted(path.name for path in (home / "trees").iterdir()) == sorted(Trust.open().approvals.trees)


def test_many_processes_at_once_lose_nothing(tmp_path: Path) -> None:
    """K04: the approvals of sixteen processes at once are all recorded."""
    spaces = [Workspace(tmp_path / f"w{number}") for number in range(16)]
    for number, space in enumerate(spaces):
        space.skill("own", body=f"Number {number}.\n")
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda space: act("approve", space.root), spaces))
    assert [done.stderr for done in results if done.returncode] == []
    assert all(make_source(space.root).served.keys() == {"good", "own"} for space in spaces)
    assert len(Trust.open().approvals.trees) == 17


def test_a_writer_that_dies_with_the_lock_does_not_block_others(workspace: Workspace) -> None:
    """K06: the lock ends with the process that held it."""
    source = make_source(workspace.root)
    holder = (
        "import fcntl, os, sys; fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT); fcntl.flock(fd, fcntl.LOCK_EX);"
        " print(1, flush=True); os.kill(os.getpid(), 9)"
    )
    Path(source.trust.path).mkdir(parents=True, mode=0o700)
    subprocess.run([sys.executable, "-c", holder, f"{source.trust.path}/lock"], check=False, capture_output=True)
    source.approve(source.pending)
    assert make_source(workspace.root).served.keys() == {"good"}


@pytest.mark.usefixtures("ordinary_user")
def test_a_store_that_cannot_be_written_still_serves(workspace: Workspace) -> None:
    """K03: approved skills are served; approving or revoking is a typed error and changes nothing."""
    source = make_source(workspace.root)
    source.approve(source.pending)
    workspace.skill("late")
    home = Path(source.trust.path)
    closed = [home, home / "trees"]
    for folder in closed:
        folder.chmod(0o500)
    (home / "lock").chmod(0o400)
    try:
        now = make_source(workspace.root)
        assert now.served.keys() == {"good"}
        for change in (lambda: now.approve(now.pending), lambda: now.revoke("good")):
            with pytest.raises(TrustError, match="cannot be written"):
                change()
        assert make_source(workspace.root).served.keys() == {"good"}
    finally:
        for folder in closed:
            folder.chmod(0o700)
        (home / "lock").chmod(0o600)


@pytest.mark.usefixtures("ordinary_user")
def test_a_record_that_cannot_be_read_fails_closed(workspace: Workspace) -> None:
    """K03: nothing is trusted then, and the record is not taken for an empty one."""
    source = make_source(workspace.root)
    source.approve(source.pending)
    record = Path(source.trust.path, "approvals.json")
    record.chmod(0)
    now = make_source(workspace.root)
    assert now.served == {}
    assert "cannot be read" in now.trust.problem
    with pytest.raises(TrustError, match="cannot be read"):
        now.approve(now.pending)
    record.chmod(0o600)
    assert make_source(workspace.root).served.keys() == {"good"}


@pytest.mark.usefixtures("ordinary_user")
def test_a_skill_with_an_unreadable_file_cannot_be_approved(workspace: Workspace) -> None:
    """P18: bytes that cannot be shown cannot be approved."""
    folder = workspace.skill("shut", files={"references/a.md": "A."})
    (folder / "references/a.md").chmod(0)
    [shut] = [skill for skill in make_source(workspace.root).pending if skill.name == "shut"]
    assert shut.blocked == "references/a.md: Permission denied"


FULL = """
import resource, sys
from skillshelf import DirectorySource
from skillshelf.trust import Trust, TrustedSource
from skillshelf.errors import TrustError
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
source = TrustedSource(DirectorySource(sys.argv[1], "project", cache=False), Trust.open())
source.refresh()
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
try:
    source.approve(source.pending)
except TrustError as error:
    print(error)
"""


@pytest.mark.parametrize("room", [0, 10, 120, 500])
def test_a_full_disk_leaves_the_old_state(room: int, workspace: Workspace) -> None:
    """K02: an approval on a full disk is a typed error, and skills approved before are still served."""
    source = make_source(workspace.root)
    source.approve(source.pending)
    workspace.skill("late")
    command = [sys.executable, "-c", FULL, str(workspace.root), str(room)]
    completed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert "cannot be written" in completed.stdout, completed.stderr
    now = make_source(workspace.root)
    assert (set(now.served), now.trust.problems) == ({"good"}, ())
    now.approve(now.pending)
    assert make_source(workspace.root).served.keys() == {"good", "late"}


def test_a_fork_while_another_thread_reloads_does_not_hang(workspace: Workspace) -> None:
    """K12: the child refreshes without waiting for a lock that no thread of it holds."""
    source = make_source(workspace.root)
    stop = threading.Event()

    def reload() -> None:
        while not stop.is_set():
            source.refresh()

    thread = threading.Thread(target=reload)
    thread.start()
    try:
        for _ in range(10):
            pid = os.fork()
            if pid == 0:
                signal.alarm(20)
                source.refresh()
                os._exit(len(source.pending))
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
    finally:
        stop.set()
        thread.join()
