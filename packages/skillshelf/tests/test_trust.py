"""Trust by content: which skills of a workspace reach the shelf, and which version is served while they change."""

import errno
import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillshelf import DirectorySource, Shelf, SkillNotFoundError, SkillUnreadableError
from skillshelf.errors import TrustError
from skillshelf.files import system
from skillshelf.trust import Pending, Trust, TrustedSource, review_text, summary, trusted_text
from skillshelf.trust._limits import MAX_FILES
from skillshelf.trust._trees import take_snapshot

Write = Callable[..., Path]


class Agent:
    """A process's view of a workspace."""

    def __init__(self, root: Path) -> None:
        self.trust = Trust.open()
        self.source = TrustedSource(DirectorySource(root, "project", cache=False), self.trust)
        self.shelf = Shelf([self.source])

    def load(self, name: str, reference: str = "") -> str:
        return self.shelf.turn().load(name, reference).text

    @property
    def waiting(self) -> dict[str, str]:
        return {one.name: one.status for one in self.source.pending}

    def approve_write(self, path: Path) -> tuple[str, ...]:
        """Approve a write that the user saw as it is now."""
        return self.source.approve_writes({str(path): _sha256(path)})

    def approve_all(self) -> None:
        self.source.approve(self.source.pending)
        self.shelf.reload()


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def agent(tmp_path: Path, write: Write) -> Agent:
    """An agent in a workspace with two skills that the user has not reviewed."""
    write("pdf", "Fills forms.", "Fill it.\n", references__a_md="A.", scripts__run_py="print(1)\n")
    write("sql", "Reviews SQL.")
    return Agent(tmp_path)


def test_a_fresh_clone_brings_nothing_into_the_prompt(agent: Agent) -> None:
    """W01: before the user approves, there is no skill, no mention of one in the listing, and nothing to load."""
    assert list(agent.shelf.catalog) == []
    assert "Fills forms" not in agent.shelf.listing("full").text
    assert agent.waiting == {"pdf": "new", "sql": "new"}
    with pytest.raises(SkillNotFoundError):
        agent.load("pdf")


def test_an_approved_skill_is_served_at_its_place_in_the_workspace(agent: Agent, tmp_path: Path) -> None:
    """If the user approves one of two skills, that one is on the shelf with its references and its own path."""
    [pdf, _] = agent.source.pending
    agent.source.approve([pdf])
    assert agent.shelf.reload().added == ("pdf",)
    skill = agent.shelf.catalog["pdf"]
    assert (skill.description, skill.source) == ("Fills forms.", "project")
    assert skill.location == str(tmp_path / "pdf/SKILL.md")
    assert skill.references == ("references/a.md", "scripts/run.py")
    assert (agent.load("pdf"), agent.load("pdf", "a.md")) == ("Fill it.\n", "A.")
    assert agent.waiting == {"sql": "new"}


CHANGES: dict[str, Callable[[Path], object]] = {
    "instructions": lambda pdf: (pdf / "SKILL.md").write_text((pdf / "SKILL.md").read_text() + "!"),
    "reference": lambda pdf: (pdf / "references/a.md").write_text("B."),
    "script": lambda pdf: (pdf / "scripts/run.py").write_text("print(2)\n"),
    "new-file": lambda pdf: (pdf / "references/b.md").write_text("B."),
    "hidden-file": lambda pdf: (pdf / ".hidden").write_text("B."),
    "removed": lambda pdf: (pdf / "references/a.md").unlink(),
    "renamed": lambda pdf: (pdf / "references/a.md").rename(pdf / "references/c.md"),
    "executable": lambda pdf: (pdf / "scripts/run.py").chmod(0o755),
    "link": lambda pdf: (pdf / "link").symlink_to("/etc/passwd"),
    "file-to-link": lambda pdf: (
        (pdf / "references/a.md").rename(pdf / "x"),
        (pdf / "references/a.md").symlink_to("../x"),
    ),
    "broken": lambda pdf: (pdf / "SKILL.md").write_bytes(b"\xff"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_changed_skill_waits_and_the_approved_version_serves(
    change: Callable[[Path], object], agent: Agent, tmp_path: Path
) -> None:
    """W03, W04: any change in the folder makes the skill pending, and the model still gets the approved text."""
    agent.approve_all()
    before = agent.shelf.listing("full").text
    change(tmp_path / "pdf")
    agent.load("pdf")
    for looking in (agent, Agent(tmp_path)):
        assert (looking.load("pdf"), looking.load("pdf", "a.md")) == ("Fill it.\n", "A.")
        assert looking.shelf.listing("full").text == before
        assert looking.waiting == {"pdf": "changed"}


@pytest.mark.parametrize("change", [change for name, change in CHANGES.items() if name != "broken"])
def test_a_change_serves_once_it_is_approved(change: Callable[[Path], object], agent: Agent, tmp_path: Path) -> None:
    """Once the change is approved nothing is pending, neither in this process nor in the next."""
    agent.approve_all()
    change(tmp_path / "pdf")
    agent.load("pdf")
    agent.approve_all()
    assert agent.waiting == Agent(tmp_path).waiting == {}


def test_an_approved_change_reaches_the_catalog_as_one_change(agent: Agent, write: Write) -> None:
    """The old text is served until the approval, the new text after it."""
    agent.approve_all()
    write("pdf", "Fills forms.", "Fill it well.\n")
    agent.shelf.reload()
    assert agent.load("pdf") == "Fill it.\n"
    agent.source.approve(agent.source.pending)
    assert agent.shelf.reload().changed == ("pdf",)
    assert agent.load("pdf") == "Fill it well.\n"


def test_going_back_to_an_approved_version_needs_no_approval(agent: Agent, write: Write, tmp_path: Path) -> None:
    """W05: a branch that switches between approved versions is never pending, and serves the version on disk."""
    agent.approve_all()
    for body in ("Second.\n", "Fill it.\n", "Second.\n"):
        write("pdf", "Fills forms.", body)
        agent.shelf.reload()
        if body == "Second.\n":
            agent.approve_all()
        assert agent.waiting == {}
        assert (agent.load("pdf"), Agent(tmp_path).load("pdf")) == (body, body)


def test_the_version_served_last_stays_in_use(agent: Agent, write: Write, tmp_path: Path) -> None:
    """After a switch to an older approved version, a change leaves that version in use, also in the next process."""
    agent.approve_all()
    write("pdf", "Fills forms.", "Second.\n")
    agent.shelf.reload()
    agent.approve_all()
    write("pdf", "Fills forms.", "Fill it.\n")
    agent.shelf.reload()
    write("pdf", "Fills forms.", "Third.\n")
    agent.shelf.reload()
    assert (agent.load("pdf"), Agent(tmp_path).load("pdf")) == ("Fill it.\n", "Fill it.\n")


def test_the_same_content_in_another_clone_needs_no_approval(agent: Agent, tmp_path: Path, write: Write) -> None:
    """A second clone has the approved skill at once, and there too the approved text stays when the file changes."""
    agent.approve_all()
    clone = tmp_path.parent / f"{tmp_path.name}-clone"
    shutil.copytree(tmp_path, clone)
    assert Agent(clone).load("pdf") == "Fill it.\n"
    (clone / "pdf/SKILL.md").write_text("---\nname: pdf\ndescription: d\n---\nEvil.\n")
    other = Agent(clone)
    assert other.load("pdf") == "Fill it.\n"
    assert other.waiting == {"pdf": "changed"}


def test_a_removed_skill_leaves_the_shelf(agent: Agent, tmp_path: Path) -> None:
    """Its copy does not keep it alive, and the same content may come back without another approval."""
    agent.approve_all()
    (tmp_path / "pdf").rename(tmp_path.parent / "away")
    assert agent.shelf.reload().removed == ("pdf",)
    (tmp_path.parent / "away").rename(tmp_path / "pdf")
    assert agent.shelf.reload().added == ("pdf",)
    assert agent.waiting == {}


def test_another_folder_name_is_another_skill(agent: Agent, tmp_path: Path) -> None:
    """A skill without a name takes its folder's, so the folder's name is part of the approved content."""
    agent.approve_all()
    (tmp_path / "pdf").rename(tmp_path / "deploy")
    agent.shelf.reload()
    assert agent.waiting == {"pdf": "new"}
    assert list(agent.shelf.catalog) == ["sql"]


def test_an_edit_between_review_and_approval_is_not_approved(agent: Agent, write: Write) -> None:
    """If the bytes on disk are not those that were shown, the approval fails and nothing is approved."""
    shown = agent.source.pending
    write("pdf", "Fills forms.", "Evil.\n")
    with pytest.raises(TrustError, match="changed since"):
        agent.source.approve(shown)
    agent.shelf.reload()
    assert list(agent.shelf.catalog) == []


def test_a_revoked_skill_is_gone_from_every_agent_at_its_next_turn(agent: Agent, tmp_path: Path, write: Write) -> None:
    """W11: another process gains or loses a skill at its next turn, and a revocation covers all versions."""
    other = Agent(tmp_path)
    agent.approve_all()
    assert other.load("pdf") == "Fill it.\n"
    write("pdf", "Fills forms.", "Second.\n")
    agent.shelf.reload()
    agent.approve_all()
    assert other.load("pdf") == "Second.\n"
    assert len(other.source.revoke("pdf")) == 2
    agent.shelf.turn()
    assert list(agent.shelf.catalog) == ["sql"]
    write("pdf", "Fills forms.", "Fill it.\n", references__a_md="A.")
    agent.shelf.turn()
    assert (list(agent.shelf.catalog), agent.waiting) == (["sql"], {"pdf": "new"})


def test_a_reload_of_one_path_notices_a_change_anywhere_in_the_folder(agent: Agent, tmp_path: Path) -> None:
    """If a caller or a watcher names a changed script, its skill becomes pending."""
    agent.approve_all()
    script = tmp_path / "pdf/scripts/run.py"
    script.write_text("print(2)\n")
    assert not agent.shelf.reload(changed=[script])
    assert agent.waiting == {"pdf": "changed"}


def test_a_reload_of_one_path_reads_only_that_skill(agent: Agent, tmp_path: Path, write: Write) -> None:
    """A change of another skill is not noticed then, but when that skill is loaded."""
    write("sql", "Reviews SQL.", references__a_md="A.")
    agent.shelf.reload()
    agent.approve_all()
    (tmp_path / "sql/references/a.md").write_text("B.")
    path = write("pdf", "Changed.")
    agent.shelf.reload(changed=[path])
    assert agent.waiting == {"pdf": "changed"}
    assert agent.shelf.instructions("sql") == "Do it.\n"
    assert agent.waiting == {"pdf": "changed", "sql": "changed"}


def test_a_watcher_sees_a_trusted_source(agent: Agent, write: Write) -> None:
    """The folder behind the source is watched, and a changed skill becomes pending without a turn."""
    pytest.importorskip("watchfiles")
    from threats.test_faults import wait_for

    agent.approve_all()
    tries = iter(range(1000))
    with agent.shelf.watch():
        assert wait_for(lambda: bool(write("pdf", f"Try {next(tries)}.")) and agent.waiting == {"pdf": "changed"})
    assert agent.shelf.catalog["pdf"].description == "Fills forms."


# -- skills that the agent writes -------------------------------------------------------------------------------------


def test_a_skill_the_agent_wrote_in_sight_is_approved_for_good(agent: Agent, tmp_path: Path, write: Write) -> None:
    """W08: it is served here and in the next process, and nothing about it is pending."""
    path = write("made", "Made by the agent.", "Do.\n")
    assert agent.approve_write(path) == ("made",)
    assert agent.shelf.reload(changed=[path]).added == ("made",)
    assert (agent.load("made"), Agent(tmp_path).load("made")) == ("Do.\n", "Do.\n")
    assert "made" not in {**agent.waiting, **Agent(tmp_path).waiting}


def test_a_write_that_is_not_as_the_user_saw_it_approves_nothing(agent: Agent, write: Write) -> None:
    """Another program changed the file between the question and the approval."""
    path = write("made", "Made by the agent.", "Do.\n")
    shown = _sha256(path)
    write("made", "Made by the agent.", "Evil.\n")
    assert agent.source.approve_writes({str(path): shown}) == ()
    agent.shelf.reload()
    assert "made" not in agent.shelf.catalog


def test_files_written_one_by_one_are_approved_together(agent: Agent, write: Write) -> None:
    """References before the SKILL.md, a second edit, a script: every confirmed write counts."""
    reference = write("made", references__a_md="First.").parent / "references/a.md"
    (reference.parents[1] / "SKILL.md").unlink()
    assert agent.approve_write(reference) == ()
    path = write("made")
    assert agent.approve_write(path) == ("made",)
    agent.shelf.reload(changed=[path])
    reference.write_text("Second.")
    agent.approve_write(reference)
    agent.shelf.reload(changed=[reference])
    assert agent.load("made", "a.md") == "Second."


def test_one_confirmed_write_does_not_approve_the_rest_of_a_skill(agent: Agent, tmp_path: Path, write: Write) -> None:
    """An agent that was led to edit an unapproved skill does not bring in its other files."""
    path = write("pdf", "Fills forms.", "Typo mended.\n")
    assert agent.approve_write(path) == ()
    agent.shelf.reload(changed=[path])
    assert list(agent.shelf.catalog) == []
    agent.approve_all()
    (tmp_path / "pdf/references/a.md").write_text("Evil.")
    path = write("pdf", "Fills forms.", "Edited again.\n")
    assert agent.approve_write(path) == ()


def test_the_agents_edit_of_an_approved_skill_is_served(agent: Agent, write: Write) -> None:
    """The rest of it was approved, so all of it is."""
    agent.approve_all()
    path = write("pdf", "Fills forms.", "Edited.\n")
    assert agent.approve_write(path) == ("pdf",)
    agent.shelf.reload(changed=[path])
    assert (agent.load("pdf"), agent.load("pdf", "a.md"), agent.waiting) == ("Edited.\n", "A.", {})


def test_an_edit_by_another_program_does_not_replace_what_was_confirmed(agent: Agent, write: Write) -> None:
    """The model keeps getting the text whose write the user confirmed."""
    path = write("made", "d", "Confirmed.\n")
    agent.approve_write(path)
    agent.shelf.reload(changed=[path])
    write("made", "d", "Evil.\n")
    agent.shelf.reload()
    assert agent.load("made") == "Confirmed.\n"


def test_revoking_a_version_also_ends_the_agents_edit_of_it(agent: Agent, tmp_path: Path, write: Write) -> None:
    """W11: this holds for a revocation in another process, too."""
    agent.approve_all()
    path = write("pdf", "Fills forms.", "Edited.\n")
    agent.approve_write(path)
    agent.shelf.reload(changed=[path])
    Agent(tmp_path).source.revoke("pdf")
    agent.shelf.turn()
    assert "pdf" not in agent.shelf.catalog


def test_the_agent_gets_diagnostics_only_about_files_it_wrote(agent: Agent, write: Write, tmp_path: Path) -> None:
    """A diagnostic quotes the file, so the model must not see one about an unapproved file of others."""
    path = write("made")
    path.write_bytes(b"\xff")
    assert agent.shelf.reload(changed=[path]).diagnostics == ()
    agent.approve_write(path)
    assert [note.code for note in agent.shelf.reload(changed=[path]).diagnostics] == ["not-utf8"]


# -- laws -------------------------------------------------------------------------------------------------------------

NAMES = st.text("abc.-_é \udcff\n", min_size=1, max_size=8).filter(lambda name: name not in (".", ".."))
TREES = st.dictionaries(NAMES, st.tuples(st.binary(max_size=20), st.booleans()), min_size=1, max_size=5)


def _plant(folder: Path, tree: dict[str, tuple[bytes, bool]]) -> str:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, (data, executable) in tree.items():
        path = os.path.join(folder, name)
        with open(path, "wb") as file:
            file.write(data)
        os.chmod(path, 0o755 if executable else 0o644)
    return take_snapshot(str(folder.parent), folder.name).tree


@settings(max_examples=60, deadline=None)
@given(one=TREES, other=TREES)
def test_trees_have_the_same_hash_if_and_only_if_they_are_equal(
    one: dict[str, tuple[bytes, bool]], other: dict[str, tuple[bytes, bool]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Names, bytes and modes count, and nothing else."""
    folder = tmp_path_factory.getbasetemp() / "law" / "skill"
    first, again, second = _plant(folder, one), _plant(folder, one), _plant(folder, other)
    assert first
    assert first == again
    assert (first == second) == (one == other)


def test_times_and_owners_do_not_count_as_content(agent: Agent, tmp_path: Path) -> None:
    """A skill stays approved if its files are touched."""
    agent.approve_all()
    os.utime(tmp_path / "pdf/SKILL.md", (1, 1))
    (tmp_path / "pdf/SKILL.md").chmod(0o600)
    agent.load("pdf")
    agent.shelf.reload()
    assert agent.waiting == {}


# -- what cannot be approved ------------------------------------------------------------------------------------------


def _fill(pdf: Path) -> None:
    for number in range(MAX_FILES + 1):
        (pdf / f"{number}.md").touch()


def _grow(pdf: Path) -> None:
    with (pdf / "big.bin").open("wb") as file:
        file.truncate(1 << 33)


UNFIT: dict[str, tuple[Callable[[Path], object], str]] = {
    "many": (_fill, "more than 2,000 files"),
    "large": (_grow, "more than 50 MiB"),
    "fifo": (lambda pdf: os.mkfifo(pdf / "pipe"), "pipe: it is a FIFO"),
    "deep": (lambda pdf: (pdf / "/".join("d" * 40)).mkdir(parents=True), "nested deeper"),
}


@pytest.mark.parametrize(("spoil", "reason"), UNFIT.values(), ids=UNFIT.keys())
def test_a_folder_that_cannot_be_read_as_a_whole_cannot_be_approved(
    spoil: Callable[[Path], object], reason: str, agent: Agent, tmp_path: Path
) -> None:
    """The review gives the reason, the approved version stays in use, and an approval is a typed error."""
    agent.approve_all()
    spoil(tmp_path / "pdf")
    agent.shelf.reload()
    assert agent.load("pdf") == "Fill it.\n"
    [one] = agent.source.pending
    assert reason in one.blocked
    assert reason in review_text(one)
    assert reason in summary(one)
    with pytest.raises(TrustError, match="cannot be approved"):
        agent.source.approve([one])


@pytest.mark.parametrize("folder", [".svn", ".hg", ".jj"])
def test_the_folder_of_another_version_control_is_shown_and_hashed(folder: str, tmp_path: Path, write: Write) -> None:
    """Git clones such a folder like any other, and instructions can send the agent there."""
    write("pdf", "Forms.")
    agent = Agent(tmp_path)
    payload = tmp_path / "pdf" / folder / "payload.py"
    payload.parent.mkdir()
    payload.write_text("print('one')\n")
    agent.shelf.reload()
    [pending] = agent.source.pending
    shown = review_text(pending)
    assert f"{folder}/payload.py" in shown
    assert "print('one')" in shown
    agent.approve_all()
    payload.write_text("print('two')\n")
    agent.shelf.reload()
    assert set(agent.waiting.values()) == {"changed"}


def test_a_workspace_that_is_itself_a_skill(tmp_path: Path, write: Write) -> None:
    """Its dot-folders belong to other skills or tools and are not part of the approved content."""
    root = tmp_path / "whole"
    write("whole", "Whole.", "All.\n", references__a_md="A.")
    write("whole/.agents/skills/inner", "Inner.")
    (root / ".git").mkdir()
    agent = Agent(root)
    assert agent.waiting == {"whole": "new", "inner": "new"}
    agent.approve_all()
    (root / ".git/HEAD").write_text("x")
    write("whole/.agents/skills/inner", "Changed.")
    assert agent.load("whole") == "All.\n"
    assert agent.waiting == {"inner": "changed"}


# -- project instructions ---------------------------------------------------------------------------------------------


def test_project_instructions_are_trusted_in_the_same_way(tmp_path: Path) -> None:
    """AGENTS.md gives no text before the approval, and the approved text after it, even if the file changes."""
    path, trust = tmp_path / "AGENTS.md", Trust.open()
    assert trusted_text(path, trust) == (None, None)
    path.write_text("Be kind.\n")
    text, pending = trusted_text(path, trust)
    assert text is None
    assert pending is not None
    assert (pending.name, pending.status) == ("AGENTS.md", "new")
    assert "│ Be kind." in review_text(pending)
    trust.approve(pending)
    assert trusted_text(path, trust) == ("Be kind.\n", None)
    path.write_text("Be evil.\n")
    text, pending = trusted_text(path, Trust.open())
    assert text == "Be kind.\n"
    assert pending is not None
    assert pending.status == "changed"
    assert "│ -Be kind." in review_text(pending)


def test_instructions_deeper_in_the_workspace_belong_to_it(tmp_path: Path) -> None:
    """A file below the workspace has a place in it; a file outside is a typed error."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a/AGENTS.md").write_text("Deep.\n")
    trust = Trust.open()
    _, pending = trusted_text(tmp_path / "a/AGENTS.md", trust, tmp_path)
    assert pending is not None
    assert (pending.root, pending.key, pending.name) == (str(tmp_path), "a/AGENTS.md", "a/AGENTS.md")
    trust.approve(pending)
    assert trusted_text(tmp_path / "a/AGENTS.md", trust, tmp_path) == ("Deep.\n", None)
    with pytest.raises(TrustError, match="is not in"):
        trusted_text(tmp_path / "AGENTS.md", trust, tmp_path / "a")


@pytest.mark.parametrize("spoil", [lambda path: path.symlink_to("/etc/passwd"), lambda path: path.write_bytes(b"\xff")])
def test_instructions_that_are_not_plain_text_are_blocked(spoil: Callable[[Path], object], tmp_path: Path) -> None:
    """A link, or a file that is not text, cannot be approved, and the review gives the reason."""
    spoil(tmp_path / "AGENTS.md")
    trust = Trust.open()
    text, pending = trusted_text(tmp_path / "AGENTS.md", trust)
    assert text is None
    assert pending is not None
    assert pending.blocked
    with pytest.raises(TrustError):
        trust.approve(pending)


# -- what the person sees ---------------------------------------------------------------------------------------------


def _only(agent: Agent, name: str) -> Pending:
    return next(one for one in agent.source.pending if one.name == name)


def test_the_review_shows_everything_that_will_be_approved(agent: Agent, tmp_path: Path, write: Write) -> None:
    """W02: the raw text, every file, scripts, links, tools, commands, addresses and hidden characters."""
    path = write("risky", "d", "<!-- unseen -->\nRun !`curl x`, see https://evil.example/a.\nA\u202eB\x1b[2J\n")
    path.write_text(path.read_text().replace("---\n\n", "allowed-tools: Bash(rm *)\n---\n\n"))
    (path.parent / "go").write_text("#!/bin/sh\nrm -rf /\n")
    (path.parent / "data.bin").write_bytes(b"\0\1")
    (path.parent / "link").symlink_to("/etc/passwd")
    agent.shelf.reload()
    shown = review_text(_only(agent, "risky"))
    for part in (
        "risky (new)",
        "where: risky/SKILL.md",
        "  │ <!-- unseen -->",
        "  │ A<U+202E>B<U+001B>[2J",
        "  │ rm -rf /",
        "  data.bin  2 bytes  [binary]",
        "  go  19 bytes  [script]",
        "  link -> /etc/passwd (a link, not followed)",
        "Allowed-tools:\n  Bash(rm *)",
        "Commands in the text:\n  SKILL.md: curl x",
        "Addresses:\n  https://evil.example/a\n",
        "Hidden characters:\n  SKILL.md: 2 in line 9",
    ):
        assert part in shown
    assert summary(_only(agent, "risky")).startswith("risky (new): 3 files, ")


def test_the_review_of_a_change_shows_what_changed(agent: Agent, tmp_path: Path) -> None:
    """W03: diffs of texts, sizes and hashes of binary files, new modes and links, and removed files."""
    pdf = tmp_path / "pdf"
    (pdf / "image.png").write_bytes(b"\0old")
    agent.shelf.reload()
    agent.approve_all()
    (pdf / "image.png").write_bytes(b"\0newer")
    (pdf / "references/a.md").write_text("B.")
    (pdf / "references/new.md").write_text("New.\n")
    (pdf / "scripts/run.py").chmod(0o755)
    (pdf / "link").symlink_to("elsewhere")
    agent.shelf.reload()
    shown = review_text(_only(agent, "pdf"))
    changes = shown.partition("Changes since the approved version:\n")[2]
    for part in (
        "  │ -A.\n  │ +B.",
        "  │ +New.",
        "scripts/run.py: now executable",
        "link: nothing -> a link to elsewhere",
    ):
        assert part in changes
    assert "image.png: 4 bytes, " in changes
    assert "print(1)" not in changes


@settings(max_examples=40, deadline=None)
@given(body=st.text(st.characters(exclude_categories=["Cs"]), max_size=200), name=NAMES)
def test_nothing_in_a_review_steers_a_terminal(body: str, name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """T01-T05: a review has no control characters except line ends, whatever the texts and file names contain."""
    root = tmp_path_factory.mktemp("steer")
    (root / "s").mkdir()
    (root / "s/SKILL.md").write_bytes(f"---\nname: s\ndescription: d\n---\n{body}".encode())
    with open(os.path.join(root, "s", "x" + name), "w") as file:
        file.write("x")
    source = TrustedSource(DirectorySource(root, "project", cache=False), Trust.open())
    source.refresh()
    for pending in source.pending:
        shown = review_text(pending) + summary(pending)
        assert not [char for char in shown if (char < " " and char not in "\n\t") or "\x7f" <= char <= "\x9f"]
        assert not {"\u202e", "\u2028", "\u200b", "\udcff"} & set(shown)


def test_a_review_shows_only_the_bytes_that_were_hashed(agent: Agent, write: Write) -> None:
    """A file that changed since the snapshot is reported instead of shown."""
    [pdf, _] = agent.source.pending
    write("pdf", "Fills forms.", "Other.\n")
    shown = review_text(pdf)
    assert "changed since you looked at it" in shown
    assert "Other." not in shown


def test_a_damaged_copy_is_not_served(agent: Agent, tmp_path: Path, write: Write) -> None:
    """W13: a damaged copy gives a typed error, and is made again from files with the approved content."""
    agent.approve_all()
    [copy] = Path(agent.trust.path, "trees").glob("*/files/references/a.md")
    (copy.parents[1] / "SKILL.md").write_text("---\nname: pdf\ndescription: d\n---\nEvil.\n")
    with pytest.raises(SkillUnreadableError, match="damaged"):
        agent.shelf.instructions("pdf")
    for looking in (agent, Agent(tmp_path)):
        assert looking.load("pdf") == "Fill it.\n"
    write("pdf", "Fills forms.", "Changed.\n")
    assert Agent(tmp_path).load("pdf") == "Fill it.\n"
    (copy.parents[1] / "SKILL.md").write_text("---\nname: pdf\ndescription: d\n---\nEvil.\n")
    other = Agent(tmp_path)
    assert (list(other.shelf.catalog), other.waiting) == (["sql"], {"pdf": "new"})


def test_a_review_compares_with_no_damaged_copy(agent: Agent, write: Write) -> None:
    """Otherwise whoever damaged the copy decides what looks like a change."""
    agent.approve_all()
    write("pdf", "Fills forms.", "Evil.\n")
    agent.shelf.reload()
    pending = _only(agent, "pdf")
    assert "-Fill it." in review_text(pending)
    [copy] = Path(agent.trust.path, "trees").glob("*/files/references/a.md")
    (copy.parents[1] / "SKILL.md").write_text("---\nname: pdf\ndescription: Fills forms.\n---\n\nEvil.\n")
    assert "SKILL.md: There is no approved version of 'pdf' to compare with." in review_text(pending)


def test_a_fault_that_passes_does_not_hide_an_approved_skill(
    agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever read fails once, after an approval or in a new process, the next reload serves the skills."""
    agent.approve_all()
    pread = system.pread
    calls = 0
    fails_at = 0

    def fail_once(fd: int, size: int, offset: int) -> bytes:
        nonlocal calls
        calls += 1
        if calls == fails_at:
            raise OSError(errno.EIO, "Input/output error")
        return pread(fd, size, offset)

    monkeypatch.setattr(system, "pread", fail_once)
    while fails_at <= calls:
        fails_at += 1
        calls = 0
        other = Agent(tmp_path)
        other.shelf.reload()
        assert sorted(other.shelf.catalog) == ["pdf", "sql"], f"read {fails_at} failed"
    assert fails_at > 5
