"""Trust by content: what of a workspace reaches the shelf, and what keeps serving while it changes."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillshelf import DirectorySource, Shelf, SkillNotFoundError, SkillUnreadableError
from skillshelf.errors import TrustError
from skillshelf.trust import Pending, Trust, TrustedSource, review_text, summary, trusted_text
from skillshelf.trust._snapshot import MAX_FILES, take_snapshot

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

    def approve_all(self) -> None:
        self.source.approve(self.source.pending)
        self.shelf.reload()


@pytest.fixture
def agent(tmp_path: Path, write: Write) -> Agent:
    """A workspace of two skills that nobody has looked at."""
    write("pdf", "Fills forms.", "Fill it.\n", references__a_md="A.", scripts__run_py="print(1)\n")
    write("sql", "Reviews SQL.")
    return Agent(tmp_path)


def test_a_fresh_clone_brings_nothing_into_the_prompt(agent: Agent) -> None:
    """W01: before the person agreed there is no skill, no word of one in the listing, and nothing to load."""
    assert list(agent.shelf.catalog) == []
    assert "Fills forms" not in agent.shelf.listing("full").text
    assert agent.waiting == {"pdf": "new", "sql": "new"}
    with pytest.raises(SkillNotFoundError):
        agent.load("pdf")


def test_an_approved_skill_is_served_at_its_place_in_the_workspace(agent: Agent, tmp_path: Path) -> None:
    """After a yes to one of two, that one is on the shelf with its references and its path in the workspace."""
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
    """W03, W04: any change of the tree makes the skill pending, and what the model gets stays as it was agreed to."""
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
    """After a yes to the change nothing waits, in this process and in the next."""
    agent.approve_all()
    change(tmp_path / "pdf")
    agent.load("pdf")
    agent.approve_all()
    assert agent.waiting == Agent(tmp_path).waiting == {}


def test_a_change_is_served_after_the_yes(agent: Agent, write: Write) -> None:
    """The new text comes with the approval, as one change of the catalog."""
    agent.approve_all()
    write("pdf", "Fills forms.", "Fill it well.\n")
    agent.shelf.reload()
    assert agent.load("pdf") == "Fill it.\n"
    agent.source.approve(agent.source.pending)
    assert agent.shelf.reload().changed == ("pdf",)
    assert agent.load("pdf") == "Fill it well.\n"


def test_going_back_to_an_approved_version_asks_nothing(agent: Agent, write: Write, tmp_path: Path) -> None:
    """W05: a branch switched back and forth between approved versions never waits, and serves what lies there."""
    agent.approve_all()
    for body in ("Second.\n", "Fill it.\n", "Second.\n"):
        write("pdf", "Fills forms.", body)
        agent.shelf.reload()
        if body == "Second.\n":
            agent.approve_all()
        assert agent.waiting == {}
        assert (agent.load("pdf"), Agent(tmp_path).load("pdf")) == (body, body)


def test_what_served_last_keeps_serving(agent: Agent, write: Write, tmp_path: Path) -> None:
    """After a switch back to an older approved version, a change leaves that one in use, also in the next process."""
    agent.approve_all()
    write("pdf", "Fills forms.", "Second.\n")
    agent.shelf.reload()
    agent.approve_all()
    write("pdf", "Fills forms.", "Fill it.\n")
    agent.shelf.reload()
    write("pdf", "Fills forms.", "Third.\n")
    agent.shelf.reload()
    assert (agent.load("pdf"), Agent(tmp_path).load("pdf")) == ("Fill it.\n", "Fill it.\n")


def test_the_same_content_in_another_clone_asks_nothing(agent: Agent, tmp_path: Path, write: Write) -> None:
    """Trust is bound to content: a second clone has it at once, and there too the approved text survives a change."""
    agent.approve_all()
    clone = tmp_path.parent / f"{tmp_path.name}-clone"
    shutil.copytree(tmp_path, clone)
    assert Agent(clone).load("pdf") == "Fill it.\n"
    (clone / "pdf/SKILL.md").write_text("---\nname: pdf\ndescription: d\n---\nEvil.\n")
    other = Agent(clone)
    assert other.load("pdf") == "Fill it.\n"
    assert other.waiting == {"pdf": "changed"}


def test_a_skill_that_is_gone_is_gone(agent: Agent, tmp_path: Path) -> None:
    """A removed folder leaves the shelf, its copy notwithstanding, and comes back with the same content unasked."""
    agent.approve_all()
    (tmp_path / "pdf").rename(tmp_path.parent / "away")
    assert agent.shelf.reload().removed == ("pdf",)
    (tmp_path.parent / "away").rename(tmp_path / "pdf")
    assert agent.shelf.reload().added == ("pdf",)
    assert agent.waiting == {}


def test_another_folder_name_is_another_skill(agent: Agent, tmp_path: Path) -> None:
    """The folder names a skill whose file does not, so its name is part of what is agreed to."""
    agent.approve_all()
    (tmp_path / "pdf").rename(tmp_path / "deploy")
    agent.shelf.reload()
    assert agent.waiting == {"pdf": "new"}
    assert list(agent.shelf.catalog) == ["sql"]


def test_an_edit_between_look_and_yes_is_not_approved(agent: Agent, write: Write) -> None:
    """The yes is to what was shown: with other bytes on disk by then it is refused, and nothing is approved."""
    shown = agent.source.pending
    write("pdf", "Fills forms.", "Evil.\n")
    with pytest.raises(TrustError, match="changed since"):
        agent.source.approve(shown)
    agent.shelf.reload()
    assert list(agent.shelf.catalog) == []


def test_a_revoked_skill_is_gone_from_every_agent_at_its_next_turn(agent: Agent, tmp_path: Path, write: Write) -> None:
    """W11: what one process approves or revokes, another has or loses with its next turn, in all versions."""
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
    """A caller or a watcher that names a script gets the skill marked as changed, and nothing else is read."""
    agent.approve_all()
    script = tmp_path / "pdf/scripts/run.py"
    script.write_text("print(2)\n")
    assert not agent.shelf.reload(changed=[script])
    assert agent.waiting == {"pdf": "changed"}


def test_a_reload_of_one_path_looks_at_that_skill_alone(agent: Agent, tmp_path: Path, write: Write) -> None:
    """Cost follows the change: a neighbour that changed unseen is not read for it, and is found when it is loaded."""
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
    """The folder behind the source is watched, and a change there becomes pending without a turn."""
    pytest.importorskip("watchfiles")
    from threats.test_faults import wait_for

    agent.approve_all()
    tries = iter(range(1000))
    with agent.shelf.watch():
        assert wait_for(lambda: bool(write("pdf", f"Try {next(tries)}.")) and agent.waiting == {"pdf": "changed"})
    assert agent.shelf.catalog["pdf"].description == "Fills forms."


# -- what the agent writes itself -------------------------------------------------------------------------------------


def test_a_skill_the_agent_wrote_lives_in_this_session_only(agent: Agent, tmp_path: Path, write: Write) -> None:
    """W08: after a confirmed write the skill serves here and is marked; the next process asks."""
    path = write("made", "Made by the agent.", "Do.\n")
    assert agent.source.grant([path]) == ("made",)
    assert agent.shelf.reload(changed=[path]).added == ("made",)
    assert agent.load("made") == "Do.\n"
    assert agent.source.granted == {"made"}
    assert [one.granted for one in agent.source.pending if one.name == "made"] == [True]
    assert "made" not in Agent(tmp_path).shelf.catalog
    agent.approve_all()
    assert (agent.source.granted, agent.waiting) == (frozenset(), {})
    assert Agent(tmp_path).load("made") == "Do.\n"


def test_files_written_one_by_one_are_granted_together(agent: Agent, write: Write) -> None:
    """References before the SKILL.md, a second edit, a script: every confirmed write counts."""
    reference = write("made", references__a_md="First.").parent / "references/a.md"
    (reference.parents[1] / "SKILL.md").unlink()
    assert agent.source.grant([reference]) == ()
    path = write("made")
    assert agent.source.grant([path]) == ("made",)
    agent.shelf.reload(changed=[path])
    reference.write_text("Second.")
    agent.source.grant([reference])
    agent.shelf.reload(changed=[reference])
    assert agent.load("made", "a.md") == "Second."


def test_one_confirmed_write_does_not_vouch_for_the_rest_of_a_skill(agent: Agent, tmp_path: Path, write: Write) -> None:
    """An agent led to edit a skill nobody approved does not bring its other files in by that."""
    path = write("pdf", "Fills forms.", "Typo mended.\n")
    assert agent.source.grant([path]) == ()
    agent.shelf.reload(changed=[path])
    assert list(agent.shelf.catalog) == []
    agent.approve_all()
    (tmp_path / "pdf/references/a.md").write_text("Evil.")
    path = write("pdf", "Fills forms.", "Edited again.\n")
    assert agent.source.grant([path]) == ()


def test_the_agents_edit_of_an_approved_skill_serves(agent: Agent, write: Write) -> None:
    """On top of approved files a confirmed write is live, and shown as a change of the approved version."""
    agent.approve_all()
    path = write("pdf", "Fills forms.", "Edited.\n")
    assert agent.source.grant([path]) == ("pdf",)
    agent.shelf.reload(changed=[path])
    assert (agent.load("pdf"), agent.load("pdf", "a.md"), agent.waiting) == ("Edited.\n", "A.", {"pdf": "changed"})


def test_a_granted_copy_keeps_serving_what_was_confirmed(agent: Agent, write: Write) -> None:
    """Somebody else's edit after the confirmed write does not reach the model."""
    path = write("made", "d", "Confirmed.\n")
    agent.source.grant([path])
    agent.shelf.reload(changed=[path])
    write("made", "d", "Evil.\n")
    agent.shelf.reload()
    assert agent.load("made") == "Confirmed.\n"


def test_a_revoked_version_takes_what_was_granted_on_top_along(agent: Agent, tmp_path: Path, write: Write) -> None:
    """W11: a revocation elsewhere ends the session's edit of that skill too."""
    agent.approve_all()
    path = write("pdf", "Fills forms.", "Edited.\n")
    agent.source.grant([path])
    agent.shelf.reload(changed=[path])
    Agent(tmp_path).source.revoke("pdf")
    agent.shelf.turn()
    assert "pdf" not in agent.shelf.catalog


def test_the_agent_hears_what_it_broke_and_nothing_of_others(agent: Agent, write: Write, tmp_path: Path) -> None:
    """A diagnostic quotes the file, so that of a file nobody agreed to is told only to who wrote it."""
    path = write("made")
    path.write_bytes(b"\xff")
    assert agent.shelf.reload(changed=[path]).diagnostics == ()
    agent.source.grant([path])
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
def test_trees_have_one_hash_exactly_when_they_are_equal(
    one: dict[str, tuple[bytes, bool]], other: dict[str, tuple[bytes, bool]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Any difference of names, bytes or modes is a difference of the hash, and nothing else is."""
    folder = tmp_path_factory.getbasetemp() / "law" / "skill"
    first, again, second = _plant(folder, one), _plant(folder, one), _plant(folder, other)
    assert first
    assert first == again
    assert (first == second) == (one == other)


def test_times_and_owners_are_no_content(agent: Agent, tmp_path: Path) -> None:
    """A touched or copied file is the same skill."""
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
def test_what_cannot_be_taken_whole_cannot_be_approved(
    spoil: Callable[[Path], object], reason: str, agent: Agent, tmp_path: Path
) -> None:
    """The person hears why, an earlier version goes on serving, and a yes is a typed error."""
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
    """Git clones it like any other folder, and the instructions can send the agent there."""
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
    """Its dot-folders are other skills' or tools' business, and are no part of what is agreed to."""
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
    """AGENTS.md: nothing before the yes, the text after it, the approved text while it changes."""
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
    """With the workspace named, a file below it has its place there; one outside is a typed error."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a/AGENTS.md").write_text("Deep.\n")
    trust = Trust.open()
    _, pending = trusted_text(tmp_path / "a/AGENTS.md", trust, tmp_path)
    assert pending is not None
    assert (pending.root, pending.key, pending.name) == (str(tmp_path), "/a/AGENTS.md", "a/AGENTS.md")
    trust.approve(pending)
    assert trusted_text(tmp_path / "a/AGENTS.md", trust, tmp_path) == ("Deep.\n", None)
    with pytest.raises(TrustError, match="does not lie in"):
        trusted_text(tmp_path / "AGENTS.md", trust, tmp_path / "a")


@pytest.mark.parametrize("spoil", [lambda path: path.symlink_to("/etc/passwd"), lambda path: path.write_bytes(b"\xff")])
def test_instructions_that_are_no_plain_text_are_blocked(spoil: Callable[[Path], object], tmp_path: Path) -> None:
    """A link or bytes that are no text are shown as what they are and cannot be approved."""
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


def test_the_review_shows_everything_that_is_agreed_to(agent: Agent, tmp_path: Path, write: Write) -> None:
    """W02: raw text with comments, every file, scripts, links, tools, commands, addresses and what hides."""
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
    """W03: a unified diff of each text, sizes and hashes of a binary, new modes and links, removed files."""
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
    """T01-T05: whatever is in texts and file names, what is shown has no control character but the line's end."""
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


def test_a_review_is_of_the_bytes_that_were_hashed(agent: Agent, write: Write) -> None:
    """A file that changed since the look is not shown as what the hash stands for."""
    [pdf, _] = agent.source.pending
    write("pdf", "Fills forms.", "Other.\n")
    shown = review_text(pdf)
    assert "changed since you looked at it" in shown
    assert "Other." not in shown


def test_a_damaged_copy_is_not_served(agent: Agent, tmp_path: Path, write: Write) -> None:
    """W13: a copy that no longer fits its hash gives a typed error, and is made again from files that do fit it."""
    agent.approve_all()
    [copy] = Path(agent.trust.path, "trees").glob("*/files/references/a.md")
    (copy.parents[1] / "SKILL.md").write_text("---\nname: pdf\ndescription: d\n---\nEvil.\n")
    with pytest.raises(SkillUnreadableError, match="damaged"):
        agent.shelf.instructions("pdf")
    for looking in (agent, Agent(tmp_path)):
        assert looking.load("pdf") == "Fill it.\n"
    write("pdf", "Fills forms.", "Changed.\n")
    other = Agent(tmp_path)
    assert (list(other.shelf.catalog), other.waiting) == (["sql"], {"pdf": "new"})
