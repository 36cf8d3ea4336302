"""The guard of Git repositories, against programs and clones that attack the guard itself."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from skillshelf.agent._confinement import find_repositories
from skillshelf.agent.launcher import launch_command, open_plan
from threats.test_confinement import Place, become, needs_mounts
from threats.test_confinement import place as place

pytestmark = needs_mounts


def make_bare(folder: Path, user: int) -> None:
    """Make a folder that Git takes for a bare repository. A clone can bring one as plain files."""
    for path in (folder, folder / "objects", folder / "refs"):
        path.mkdir(parents=True)
        os.chown(path, user, user)
    (folder / "HEAD").write_text("ref: refs/heads/main\n")


def start(place: Place, script: str) -> "subprocess.Popen[str]":
    """Start a confined Python program as the agent does: in a session of its own."""
    program = [place.python, "-c", script]
    root = str(place.root)
    with open_plan("mounted", writable=[root], repositories=find_repositories(root)) as plan:
        return subprocess.Popen(
            [*become(place.user), *launch_command(program, plan, "self")],
            pass_fds=[plan],
            cwd=root,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )


def run(place: Place, script: str) -> "subprocess.CompletedProcess[str]":
    process = start(place, script)
    stdout, stderr = process.communicate(timeout=60)
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


@pytest.mark.parametrize("name", [b"\xff", b"a\rb"])
def test_no_name_of_a_process_ends_the_supervisor(place: Place, name: bytes) -> None:
    """A process chooses its name in any bytes, and the supervisor reads it with the rest of its status."""
    make_bare(place.root / "bare", place.user)
    result = run(
        place,
        f"""
import ctypes, socket
set_name = 15
ctypes.CDLL(None).prctl(set_name, {name!r}, 0, 0, 0)
try:
    socket.socket().connect(("127.0.0.1", 1))
except ConnectionRefusedError:
    print("refused")
open("bare/commondir", "w").write("../evil")
""",
    )
    assert (result.returncode, result.stdout) == (0, "refused\n")
    assert "removed" in result.stderr
    assert not (place.root / "bare/commondir").exists()


def test_the_guard_removes_nothing_outside(place: Place) -> None:
    """A folder above a repository is swapped for a link to one outside that has a `commondir` of its own."""
    make_bare(place.root / "above/tree", place.user)
    victim = place.outside / "tree/commondir"
    victim.parent.mkdir()
    victim.write_text("../..")
    os.chown(victim.parent, place.user, place.user)
    result = run(place, f"import os; os.rename('above', 'moved'); os.symlink({str(place.outside)!r}, 'above')")
    assert (result.returncode, result.stderr) == (0, "")
    assert victim.read_text() == "../.."


def test_a_redirect_is_removed_from_a_folder_that_was_made_read_only_after_it(place: Place) -> None:
    """The program makes the file, and then takes away the right to remove files from its folder."""
    make_bare(place.root / "bare", place.user)
    script = """
import os
open("bare/new", "w").write("../evil")
os.rename("bare/new", "bare/commondir")
os.chmod("bare", 0o111)
"""
    result = run(place, script)
    assert result.returncode == 0
    assert not (place.root / "bare/commondir").exists()


def test_the_guard_outlives_a_timeout_with_the_processes_that_do(place: Place) -> None:
    """A timeout ends the program's process group; a process that left the group goes on."""
    make_bare(place.root / "bare", place.user)
    process = start(
        place,
        """
import os, signal, time
parent = os.getpid()
if os.fork():
    signal.pause()
os.setsid()
print("ready", flush=True)
while os.getppid() == parent:
    time.sleep(0.01)
open("bare/commondir", "w").write("../evil")
tries = 0
while os.path.exists("bare/commondir") and tries < 1000:
    tries += 1
    time.sleep(0.01)
print("left" if os.path.exists("bare/commondir") else "removed", flush=True)
""",
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    os.killpg(process.pid, signal.SIGKILL)
    assert process.communicate(timeout=60)[0] == "removed\n"


def test_no_configuration_that_a_clone_brings_keeps_a_command_waiting(place: Place) -> None:
    """An endless one would fill the memory, and one that never answers would hang."""
    for name in ("endless", "silent"):
        make_bare(place.root / name, place.user)
    (place.root / "endless/config").symlink_to("/dev/zero")
    os.mkfifo(place.root / "silent/config")
    result = run(place, "print('ran')")
    assert (result.returncode, result.stdout) == (0, "ran\n")


@pytest.mark.long
def test_the_workspaces_own_repository_is_found_among_any_number_of_folders(tmp_path: Path) -> None:
    """The search ends after 5,000 folders, and a clone can bring more."""
    for number in range(20_000):
        (tmp_path / f"{number}").mkdir()
    make_bare(tmp_path / ".git", os.geteuid())
    assert str(tmp_path / ".git") in find_repositories(str(tmp_path))
    shutil.rmtree(tmp_path)  # pytest keeps the folders of its last runs


def test_a_command_runs_among_more_repositories_than_fit_into_an_argument(place: Place) -> None:
    """The list of Git directories is longer than the 128 KiB that Linux allows for an argument, and all are guarded."""
    for number in range(1_500):
        make_bare(place.root / f"{'a-long-name-' * 6}{number}", place.user)
    repositories = find_repositories(str(place.root))
    assert sum(len(path) for path in repositories) > 128 * 1024
    last = place.root / f"{'a-long-name-' * 6}1499/config"
    result = run(place, f"print('ran'); open({str(last)!r}, 'w')")
    assert result.stdout == "ran\n"
    assert "Read-only file system" in result.stderr
    shutil.rmtree(place.root)  # pytest keeps the folders of its last runs
