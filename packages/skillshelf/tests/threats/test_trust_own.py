"""TRUST: what a repository, another folder at its path, or an agent cannot make the user's own."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from skillshelf import DirectorySource
from skillshelf.errors import TrustError
from skillshelf.trust import Trust, TrustedSource, find_pending_folder, trusted_text
from threats.workspace import Workspace


def look(root: Path) -> TrustedSource:
    source = TrustedSource(DirectorySource(root, "project", cache=False), Trust.open())
    source.refresh()
    return source


@pytest.fixture
def own(workspace: Workspace) -> Workspace:
    """A repository that the user declared their own."""
    (workspace.root / ".git").mkdir()
    Trust.open().declare_own(str(workspace.root))
    assert look(workspace.root).served.keys() == {"good"}
    return workspace


def _clone_again(root: Path) -> None:
    """Put another repository at the same path. File systems often give it the same inode."""
    shutil.rmtree(root)
    (root / ".git").mkdir(parents=True)
    (root / "evil").mkdir()
    (root / "evil/SKILL.md").write_text("---\nname: evil\ndescription: d\n---\nEVIL\n")


def _clone_into(root: Path) -> None:
    """Put another repository into the same folder."""
    shutil.rmtree(root / ".git")
    (root / ".git").mkdir()


def _replace_by_link(root: Path) -> None:
    root.rename(root.with_name("away"))
    root.symlink_to("away")


def _open_to_everyone(root: Path) -> None:
    root.chmod(0o777)


SWAPS = {
    "another-clone-at-the-path": (_clone_again, "has taken its place"),
    "another-clone-in-the-folder": (_clone_into, "another repository has taken its place"),
    "no-repository-any-more": (lambda root: (root / ".git").rmdir(), "not the root of a repository"),
    "others-may-write": (_open_to_everyone, "every user of this machine"),
}


@pytest.mark.parametrize(("swap", "reason"), SWAPS.values(), ids=SWAPS.keys())
def test_another_folder_at_the_path_is_not_the_users_own(
    swap: Callable[[Path], object], reason: str, own: Workspace
) -> None:
    """W06: its skills wait for review, in running processes too, and the user can be told why."""
    running = look(own.root)
    swap(own.root)
    running.refresh()
    for source in (running, look(own.root)):
        assert source.own is None
        assert source.served == {}
        assert source.pending
        assert reason in source.trust.why_not_own(str(own.root))


def test_a_link_at_the_path_leads_to_a_folder_with_another_name(own: Workspace) -> None:
    """The declaration is for the real path, so the folder is not the user's own under its new one."""
    _replace_by_link(own.root)
    assert look(own.root).served == {}


def test_a_bind_mount_over_the_path_is_not_the_users_own(own: Workspace, tmp_path: Path) -> None:
    """The folder that is mounted there has another identity, even on the same disk."""
    other = tmp_path / "other"
    _clone_again_at = other / ".git"
    _clone_again_at.mkdir(parents=True)
    (other / "evil").mkdir()
    (other / "evil/SKILL.md").write_text("---\nname: evil\ndescription: d\n---\nEVIL\n")
    script = f"""
mount --bind {other} {own.root} && {sys.executable} -c "
from skillshelf import DirectorySource
from skillshelf.trust import Trust, TrustedSource
source = TrustedSource(DirectorySource('{own.root}', 'project', cache=False), Trust.open())
source.refresh()
print(sorted(source.served), [skill.name for skill in source.pending])
"
"""
    completed = subprocess.run(["unshare", "-rm", "sh", "-c", script], capture_output=True, text=True, check=False)
    if "mount" in completed.stderr or "unshare" in completed.stderr:
        pytest.skip("this machine lets no test mount a folder")
    assert completed.stdout == "[] ['evil']\n", completed.stderr


def test_folders_above_a_repository_cannot_be_declared(own: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """W07: neither the home folder, nor anything that contains it, nor a folder of repositories."""
    home = own.root.parent
    (home / ".git").mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_STATE_HOME", "/skillshelf-nowhere")
    trust = Trust.open()
    for folder in (home, home.parent, Path("/")):
        with pytest.raises(TrustError, match="your home folder"):
            trust.declare_own(str(folder))
    with pytest.raises(TrustError, match="not the root of a repository"):
        trust.declare_own(str(own.outside))
    assert trust.approvals.own == {}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_a_folder_of_another_user_cannot_be_declared(own: Workspace) -> None:
    """And one that is given to another user later is no longer the user's own."""
    os.chown(own.root, 12345, -1)
    assert look(own.root).served == {}
    with pytest.raises(TrustError, match="another user"):
        Trust.open().declare_own(str(own.root))


def test_a_repository_cannot_bring_the_declaration(own: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """W06: a record inside the workspace does not count, even if it is this user's own and intact."""
    state = own.root / "state"
    shutil.copytree(Path(Trust.open().path), state / "skillshelf/trust")
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    source = look(own.root)
    assert (source.own, source.served) == (None, {})
    with pytest.raises(TrustError, match="inside the workspace"):
        source.trust.declare_own(str(own.root))


@pytest.mark.parametrize("data", [b"", b"{}", b'{"version": 99}'])
def test_without_a_sound_record_nothing_is_the_users_own(data: bytes, own: Workspace) -> None:
    """W13: a record that is damaged, or of a newer version, fails closed."""
    running = look(own.root)
    Path(running.trust.path, "approvals.json").write_bytes(data)
    running.refresh()
    assert (running.own, running.served) == (None, {})


@pytest.mark.parametrize("marker", [".git", ".hg", ".jj"])
def test_another_repository_inside_is_not_the_users_own(marker: str, own: Workspace) -> None:
    """A submodule or a clone below the root waits for review."""
    own.skill("vendor/clone/skills/evil")
    (own.root / "vendor/clone" / marker).touch()
    source = look(own.root)
    assert source.served.keys() == {"good"}
    assert [skill.key for skill in source.pending] == ["vendor/clone/skills/evil"]


def test_an_agent_cannot_make_a_clone_inside_the_users_own(own: Workspace) -> None:
    """Its command removes the marker of the other repository, which changes no file of the skill."""
    own.skill("vendor/clone/evil")
    (own.root / "vendor/clone/.git").mkdir()
    source = look(own.root)
    with source.agent_at_work():
        (own.root / "vendor/clone/.git").rmdir()
    source.refresh()
    assert source.served.keys() == {"good"}


KILLED = """
import os, signal, sys
from pathlib import Path
from skillshelf import DirectorySource
from skillshelf.trust import Trust, TrustedSource
source = TrustedSource(DirectorySource(sys.argv[1], "project", cache=False), Trust.open())
source.refresh()
work = source.agent_at_work()
work.__enter__()
Path(sys.argv[1], "good/SKILL.md").write_text("---\\nname: good\\ndescription: d\\n---\\nEVIL\\n")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_agent_left_behind_is_held(own: Workspace) -> None:
    """K01: it could not record what it changed, so everything that differs waits for the user."""
    completed = subprocess.run([sys.executable, "-c", KILLED, str(own.root)], capture_output=True, check=False)
    assert completed.returncode == -signal.SIGKILL, completed.stderr
    for _ in range(2):
        source = look(own.root)
        assert source.served.keys() == {"good"}
        assert [skill.by_agent for skill in source.pending] == [True]
    assert list(Path(source.trust.path, "agents").iterdir()) == []

    own.skill("later")
    assert look(own.root).served.keys() == {"good", "later"}


KILLED_TWICE = KILLED.replace("os.kill(", 'Path(sys.argv[1], "AGENTS.md").write_text("EVIL")\nos.kill(')


@pytest.mark.parametrize("first", ["skills", "instructions"])
def test_all_that_a_killed_agent_left_behind_is_held(first: str, own: Workspace) -> None:
    """K01: whichever is looked at first must not clear the way for the other."""
    completed = subprocess.run([sys.executable, "-c", KILLED_TWICE, str(own.root)], capture_output=True, check=False)
    assert completed.returncode == -signal.SIGKILL, completed.stderr
    guidance = own.root / "AGENTS.md"
    if first == "instructions":
        assert trusted_text(guidance, Trust.open()).text is None
    source = look(own.root)
    text, pending = trusted_text(guidance, source.trust)
    assert text is None
    assert pending
    assert pending.by_agent
    assert [skill.by_agent for skill in source.pending] == [True]

    guidance.unlink()
    own.skill("later")
    assert look(own.root).served.keys() == {"good", "later"}


@pytest.mark.parametrize("folder", ["sub", "sub/deeper", ".github", "good/references"])
def test_an_agent_cannot_write_instructions_for_sessions_in_other_folders(folder: str, own: Workspace) -> None:
    """W08: its command leaves an AGENTS.md in a folder where a later session may start."""
    (own.root / folder).mkdir(parents=True, exist_ok=True)
    (own.root / "kept").mkdir()
    (own.root / "kept/AGENTS.md").write_text("Mine.")
    with look(own.root).agent_at_work():
        (own.root / folder / "AGENTS.md").write_text("EVIL")
    text, pending = trusted_text(own.root / folder / "AGENTS.md", Trust.open(), own.root)
    assert (text, bool(pending and pending.by_agent)) == (None, True)
    assert trusted_text(own.root / "kept/AGENTS.md", Trust.open(), own.root) == ("Mine.", None)


@pytest.mark.parametrize("place", [".claude/commands/git", "sub/.agents/commands"])
def test_an_agent_cannot_write_commands_for_later_sessions(place: str, own: Workspace) -> None:
    """W08: the user would type a name that they know."""
    mine = own.root / ".claude/commands/mine.md"
    mine.parent.mkdir(parents=True)
    mine.write_text("Mine.")
    with look(own.root).agent_at_work():
        (own.root / place).mkdir(parents=True)
        (own.root / place / "commit.md").write_text("EVIL")
    text, pending = trusted_text(own.root / place / "commit.md", Trust.open(), own.root)
    assert (text, bool(pending and pending.by_agent)) == (None, True)
    assert trusted_text(mine, Trust.open(), own.root) == ("Mine.", None)


def test_instructions_among_dependencies_are_not_the_users_own(own: Workspace) -> None:
    """They are the work of others, who may be anyone."""
    file = own.root / "node_modules/left-pad/AGENTS.md"
    file.parent.mkdir(parents=True)
    file.write_text("EVIL")
    text, pending = trusted_text(file, Trust.open(), own.root)
    assert (text, bool(pending)) == (None, True)


@pytest.mark.parametrize("place", ["vendor/evals", "vendor", "vendor/evals/more"])
def test_eval_cases_of_another_repository_inside_wait_for_review(place: str, own: Workspace) -> None:
    """Running cases runs code. A submodule may be the folder of cases itself, or lie in it."""
    cases = own.root / "vendor/evals"
    (cases / "more").mkdir(parents=True)
    (cases / "cases.py").write_text("CASES = []\n")
    (cases / "more/cases.py").write_text("CASES = []\n")
    assert find_pending_folder(str(cases), str(own.root), Trust.open()) is None
    (own.root / place / ".git").write_text("gitdir: elsewhere\n")
    assert find_pending_folder(str(cases), str(own.root), Trust.open())


def test_a_repository_inside_a_skill_keeps_it_from_being_the_users_own(own: Workspace) -> None:
    """A clone among the references brings the words of others."""
    own.skill("docs", files={"references/clone/guide.md": "EVIL"})
    (own.root / "docs/references/clone/.git").mkdir()
    source = look(own.root)
    assert source.served.keys() == {"good"}
    assert [skill.key for skill in source.pending] == ["docs"]


def test_a_link_into_another_repository_inside_is_not_the_users_own(own: Workspace) -> None:
    own.skill("vendor/clone/evil")
    (own.root / "vendor/clone/.git").mkdir()
    (own.root / ".agents/skills").mkdir(parents=True)
    (own.root / ".agents/skills/evil").symlink_to("../../vendor/clone/evil")
    assert look(own.root).served.keys() == {"good"}


def _give_away(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file to another user")
    os.chown(path, 12345, -1)


@pytest.mark.parametrize("place", ["uploads", "uploads/evil", "uploads/evil/SKILL.md", "uploads/evil/references/a.md"])
@pytest.mark.parametrize("expose", [lambda path: path.chmod(0o777), _give_away], ids=["writable", "foreign"])
def test_what_other_users_may_have_written_is_not_the_users_own(
    expose: Callable[[Path], object], place: str, own: Workspace
) -> None:
    """A folder that everyone can write to may be in a repository that only its owner can."""
    own.skill("uploads/evil", files={"references/a.md": "EVIL"})
    expose(own.root / place)
    source = look(own.root)
    assert source.served.keys() == {"good"}
    assert [skill.key for skill in source.pending] == ["uploads/evil"]
