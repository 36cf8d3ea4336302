"""A repository that the user declared their own: its skills and AGENTS.md apply as they are on disk."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skillshelf import DirectorySource, Shelf
from skillshelf.errors import TrustError
from skillshelf.files import system
from skillshelf.trust import OwnChanges, Trust, TrustedSource, find_pending_folder, trusted_text

Write = Callable[..., Path]


class View:
    """A process's view of the repository."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.trust = Trust.open()
        self.source = TrustedSource(DirectorySource(root, "project", cache=False), self.trust)
        self.shelf = Shelf([self.source])

    def load(self, name: str, reference: str = "") -> str:
        return self.shelf.turn().load(name, reference).text

    @property
    def pending(self) -> list[str]:
        return [skill.name for skill in self.source.pending]

    @property
    def guidance(self) -> str | None:
        return trusted_text(self.root / "AGENTS.md", self.trust).text

    def run_agent(self, change: Callable[[], object]) -> None:
        """Let a command of the agent make a change."""
        with self.source.agent_at_work():
            change()


@pytest.fixture
def repository(tmp_path: Path, write: Write) -> Path:
    root = tmp_path / "repo"
    (root / ".git").mkdir(parents=True)
    write("repo/conv", "Conventions.", "Use tabs.\n", references__a_md="A.")
    (root / "AGENTS.md").write_text("Be brief.\n")
    return root


@pytest.fixture
def view(repository: Path) -> View:
    """A process in the user's own repository."""
    Trust.open().declare_own(str(repository))
    return View(repository)


def test_the_skills_and_instructions_of_an_own_repository_apply(view: View) -> None:
    """Nothing is asked, and nothing counts as approved elsewhere."""
    assert view.load("conv") == "Use tabs.\n"
    assert view.guidance == "Be brief.\n"
    assert view.pending == []
    assert view.trust.approvals.trees == {}


def test_an_edit_applies_at_once(view: View, write: Write, repository: Path) -> None:
    """W03: this holds for instructions, references and new skills, in this process and the next."""
    view.load("conv")
    write("repo/conv", "Conventions.", "Use spaces.\n", references__a_md="A.")
    assert view.load("conv") == "Use spaces.\n"
    (repository / "conv/references/a.md").write_text("B.")
    assert view.load("conv", "a.md") == "B."
    write("repo/new", "New.", "New.\n")
    (repository / "AGENTS.md").write_text("Be long.\n")
    assert (view.load("new"), View(repository).load("conv"), View(repository).guidance) == (
        "New.\n",
        "Use spaces.\n",
        "Be long.\n",
    )


def test_changes_are_named_once(view: View, write: Write, repository: Path) -> None:
    """W03: at the next start the user hears what came into use since the last one, whoever put it into use."""
    assert view.guidance
    view.trust.take_own_changes(str(repository))
    write("repo/conv", "Conventions.", "Pulled.\n")
    write("repo/new", "New.")
    (repository / "AGENTS.md").write_text("Pulled.\n")
    server = View(repository)
    assert server.guidance == "Pulled.\n"
    assert Trust.open().take_own_changes(str(repository)) == OwnChanges(("new",), ("AGENTS.md", "conv"), ())
    (repository / "new/SKILL.md").unlink()
    server.shelf.reload()
    assert Trust.open().take_own_changes(str(repository)) == OwnChanges(removed=("new",))
    assert Trust.open().take_own_changes(str(repository)) == OwnChanges()


def test_own_content_is_not_approved_in_another_folder(view: View, tmp_path: Path, write: Write) -> None:
    """The same bytes in a clone next door wait for review, and so they do here after the declaration has ended."""
    write("other/conv", "Conventions.", "Use tabs.\n", references__a_md="A.")
    assert View(tmp_path / "other").pending == ["conv"]
    assert view.trust.disown(str(view.root))
    view.shelf.reload()
    assert (list(view.shelf.catalog), view.pending, view.guidance) == ([], ["conv"], None)
    assert list(Path(view.trust.path, "trees").iterdir()) == []


def test_counting_what_waits_brings_nothing_into_use(view: View, write: Write, repository: Path) -> None:
    """The count is that of the next refresh, in a repository of the user's own and in one like any other."""

    def counter() -> TrustedSource:
        return TrustedSource(DirectorySource(repository, "project", cache=False), Trust.open())

    write("repo/new", "New.")
    before = Trust.open().approvals
    assert (counter().count_pending(), Trust.open().approvals) == (0, before)
    view.run_agent(lambda: write("repo/by-agent", "By the agent."))
    assert counter().count_pending() == len(View(repository).pending) == 1
    assert view.trust.disown(str(repository))
    assert counter().count_pending() == len(View(repository).pending) == 3


def test_what_counts_as_approved_is_still_known(view: View) -> None:
    """`--frozen` asks for content that the user approved, also in the user's own repository."""
    assert [skill.name for skill in view.source.unapproved] == ["conv"]
    view.source.approve(view.source.unapproved)
    view.shelf.reload()
    assert view.source.unapproved == ()


def test_a_broken_skill_keeps_its_last_version_and_says_why(view: View, repository: Path) -> None:
    """The user wrote it, so the shelf may have its diagnostics."""
    (repository / "conv/SKILL.md").write_bytes(b"\xff")
    assert [note.code for note in view.shelf.reload().diagnostics] == ["not-utf8", "kept-last-good"]
    assert view.load("conv") == "Use tabs.\n"


def test_a_revoked_skill_does_not_come_back_by_itself(view: View, write: Write) -> None:
    """W11: the user said no to it, so that the next edit of it is asked about."""
    assert len(view.source.revoke("conv")) == 1
    view.shelf.reload()
    write("repo/conv", "Conventions.", "Again.\n")
    view.shelf.reload()
    assert (list(view.shelf.catalog), view.pending) == ([], ["conv"])


def test_eval_cases_of_an_own_repository_need_no_approval(view: View, repository: Path) -> None:
    """They are the user's own code, like a test suite."""
    (repository / "evals").mkdir()
    (repository / "evals/cases.yaml").write_text("[]")
    assert find_pending_folder(str(repository / "evals"), str(repository), view.trust) is None


# -- changes that the agent makes -------------------------------------------------------------------------------------


def test_a_change_by_a_command_of_the_agent_is_held(view: View, write: Write, repository: Path) -> None:
    """The version before it stays in use, in this session and the next, until the user has looked."""
    assert view.guidance
    view.run_agent(lambda: (write("repo/conv", "Conventions.", "EVIL\n"), write("repo/evil", "Evil.")))
    view.run_agent(lambda: (repository / "AGENTS.md").write_text("EVIL\n"))
    for later in (view, View(repository)):
        later.shelf.reload()
        assert later.load("conv") == "Use tabs.\n"
        assert later.guidance == "Be brief.\n"
        assert later.pending == ["conv", "evil"]
        assert all(skill.by_agent for skill in later.source.pending)

    view.source.approve(view.source.pending)
    assert (view.load("conv"), View(repository).pending) == ("EVIL\n", [])
    write("repo/conv", "Conventions.", "Mine again.\n")
    assert view.load("conv") == "Mine again.\n"


def test_eval_cases_in_a_skill_that_the_agent_changed_wait_for_review(
    view: View, write: Write, repository: Path
) -> None:
    """Cases can run commands, so the agent must not bring in some of its own that way."""
    folder = str(repository / "conv")
    assert find_pending_folder(folder, str(repository), view.trust) is None
    view.run_agent(lambda: write("repo/conv", "Conventions.", evals__cases_yaml="[]"))
    pending = find_pending_folder(folder, str(repository), view.trust)
    assert pending is not None
    assert pending.by_agent


def test_an_edit_on_top_of_a_held_change_is_held_too(view: View, write: Write, repository: Path) -> None:
    """The user's next line would otherwise bring in the agent's."""
    view.run_agent(lambda: write("repo/conv", "Conventions.", "EVIL\n"))
    write("repo/conv", "Conventions.", "EVIL\nand mine\n")
    for later in (view, View(repository)):
        assert (later.load("conv"), later.pending) == ("Use tabs.\n", ["conv"])


def test_undoing_a_held_change_ends_the_wait(view: View, write: Write) -> None:
    """As with `git checkout`: the version in use is back on disk."""
    view.run_agent(lambda: write("repo/conv", "Conventions.", "EVIL\n", references__a_md="A."))
    write("repo/conv", "Conventions.", "Use tabs.\n", references__a_md="A.")
    view.shelf.reload()
    assert view.pending == []


def test_an_edit_before_the_command_is_not_the_agents(view: View, write: Write) -> None:
    """The user saved a file a moment before the command began, and the command did not touch it."""
    write("repo/conv", "Conventions.", "Mine.\n", references__a_md="A.")
    view.run_agent(lambda: None)
    assert view.load("conv") == "Mine.\n"


def test_while_the_agent_is_at_work_nothing_comes_into_use(view: View, write: Write, repository: Path) -> None:
    """A server in another process sees the change before the command has ended."""
    server = View(repository)
    with view.source.agent_at_work():
        write("repo/conv", "Conventions.", "EVIL\n")
        assert server.load("conv") == "Use tabs.\n"
    assert server.load("conv") == "Use tabs.\n"
    assert server.pending == ["conv"]


def test_a_write_in_the_users_sight_is_in_use_and_ends_the_hold(view: View, write: Write) -> None:
    """The rest of the skill is the user's own and was never approved, so the whole is not approved elsewhere."""
    with view.source.agent_at_work():
        path = write("repo/conv", "Conventions.", "Seen.\n", references__a_md="A.")
        sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
        assert view.source.approve_writes({str(path): sha256}) == ("conv",)
    assert (view.load("conv"), view.pending, view.trust.approvals.trees) == ("Seen.\n", [], {})


def test_what_the_user_has_seen_is_no_news(view: View, write: Write, repository: Path) -> None:
    """Neither a write in their sight nor what they approve in a review."""
    assert view.guidance
    view.trust.take_own_changes(str(repository))
    path = write("repo/conv", "Conventions.", "Seen.\n")
    new = write("repo/new", "New.")
    hashes = {str(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in (path, new)}
    assert view.source.approve_writes(hashes) == ("conv", "new")
    view.run_agent(lambda: write("repo/held", "Held."))
    view.source.approve(view.source.pending)
    view.shelf.reload()
    assert {"conv", "new", "held"} <= set(view.shelf.catalog)
    assert view.trust.take_own_changes(str(repository)) == OwnChanges()


def test_if_nothing_can_be_recorded_the_agent_cannot_start(view: View, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise its changes would apply by themselves once the record can be written again."""

    really_open = system.open

    def fail(path: str, *arguments: Any, **options: Any) -> int:
        if path.startswith(view.trust.path):
            raise OSError(28, "No space left on device")
        return really_open(path, *arguments, **options)

    monkeypatch.setattr(system, "open", fail)
    with pytest.raises(TrustError, match="cannot be written"), view.source.agent_at_work():
        pytest.fail("the agent ran")
