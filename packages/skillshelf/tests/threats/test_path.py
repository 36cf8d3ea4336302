"""PATH: whatever lies at a path, only plain files of the skill's own folder are read."""

import os
import re
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from effort import examples
from skillshelf import (
    DirectorySource,
    ReferenceNotAllowedError,
    ReferenceNotFoundError,
    ReferenceUnreadableError,
    Shelf,
    SkillError,
    SkillNotFoundError,
    SourceError,
    Turn,
)
from skillshelf.skillmd import render_skill
from threats.workspace import CANARY, GOOD, Workspace, assert_neighbour, assert_standard, collect_output, load

GUIDE = "references/guide.md"

# -- requests ---------------------------------------------------------------------------------------------------------

NEVER_LISTED = [
    "../secret.md",
    "../../secret.md",
    "references/../../../secret.md",
    "references/../references/guide.md",
    "../good/references/guide.md",
    "/etc/passwd",
    "//etc/passwd",
    "/references/guide.md",
    "/guide.md",
    "~/secret.md",
    "~root/.profile",
    "~",
    "file:///etc/passwd",
    "file://references/guide.md",
    "https://example.org/guide.md",
    "references\\guide.md",
    "..\\..\\secret.md",
    "C:\\secret.md",
    "c:/secret.md",
    "C:guide.md",
    "\\\\server\\share\\secret.md",
    "references/guide.md\0",
    "references/guide.md\0.txt",
    "\0",
    "%2e%2e/secret.md",
    "%2e%2e%2fsecret.md",
    "..%2fsecret.md",
    "references%2Fguide.md",
    "references/guide%2Emd",
    "%252e%252e/secret.md",
    "./references/guide.md",
    "./guide.md",
    "references/./guide.md",
    "references//guide.md",
    "references/guide.md/",
    "references/guide.md/.",
    "gu\u0131de.md",
    "GU\u0130DE.MD",
    "reference\u017f/guide.md",
    "guide.md ",
    " guide.md",
    "guide.md.",
    "guide.md\n",
    "\tguide.md",
    "guide．md",
    "references∕guide.md",
    "references／guide.md",
    "ｇuide.md",
    "guіde.md",
    "gui\u200bde.md",
    "guide\u202emd.",
    "\udcff",
    "SKILL.md",
    "references",
    "references/",
    ".",
    "..",
    "/",
    "...",
    "guide.md:stream",
    "guide.md::$DATA",
    "CON",
    "nul.md",
    "$HOME/secret.md",
    "${HOME}",
    "$(cat /etc/passwd)",
    "*",
    "*.md",
    "guid?.md",
    "[g]uide.md",
    "guide.md?x=1",
    "guide.md#part",
    "uide.md",
    "nces/guide.md",
    "a" * 100_000,
    "references/" + "a/" * 50_000 + "guide.md",
    "../" * 50_000 + "etc/passwd",
]


@pytest.mark.parametrize("requested", NEVER_LISTED, ids=lambda requested: ascii(requested)[:30])
def test_an_unlisted_reference_is_refused_before_any_file_is_touched(requested: str, workspace: Workspace) -> None:
    """P01: traversal, absolute, encoded, look-alike and overlong requests fail by comparison with the list alone."""
    workspace.skill("victim", files={GUIDE: "Inside."})
    turn = workspace.shelf().turn()
    with record_opened_files() as touched, pytest.raises(ReferenceNotAllowedError) as refused:
        turn.load("victim", requested)
    assert touched == []
    assert refused.value.allowed == (GUIDE,)
    assert len(str(refused.value)) < 1000
    assert str(refused.value).isprintable()


@pytest.mark.parametrize("requested", ["../outside", "/etc", "good/../good", "GOOD", "good\0", "", "a" * 100_000, "~"])
def test_a_name_is_never_a_path(requested: str, workspace: Workspace) -> None:
    """P17: a skill is found by comparing names; text that looks like a path opens nothing."""
    turn = workspace.shelf().turn()
    with record_opened_files() as touched, pytest.raises(SkillNotFoundError) as refused:
        turn.load(requested)
    assert touched == []
    assert len(str(refused.value)) < 1000


@pytest.mark.parametrize("name", ["../../outside", "/etc/passwd", "..", ".hidden", "a/b", "a\\b", "C:\\x", "~/x@y"])
def test_a_name_with_a_path_in_it_is_replaced_by_the_folders(name: str, workspace: Workspace) -> None:
    """P17: a name that could leave its folder on any system is refused, and the folder's name is used."""
    workspace.raw("honest", f"---\nname: '{name}'\ndescription: d\n---\nDo it.\n")
    shelf = workspace.shelf()
    assert list(shelf.catalog) == [GOOD, "honest"]
    assert_standard(workspace, shelf, [("name-refused", "honest/SKILL.md")])


PARTS = st.sampled_from(
    ["..", ".", "", "~", "references", "guide.md", "link", "linked", "secret.md", "SKILL.md", "good", "%2e%2e", "a\\b"]
)
PATHS = st.lists(PARTS, max_size=6).map("/".join)
REQUESTS = st.text(max_size=40) | PATHS | PATHS.map(lambda path: "/" + path) | st.sampled_from(NEVER_LISTED[:-3])


@pytest.fixture(scope="module")
def trap(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Return a workspace whose skill has links to every kind of outside target."""
    workspace = Workspace(tmp_path_factory.mktemp("trap"))
    folder = workspace.skill("victim", files={GUIDE: "Inside.", "linked.txt": "Inside too."})
    (folder / "references/link").symlink_to(workspace.secret)
    (folder / "references/linked").symlink_to(workspace.outside)
    (folder / "link").symlink_to(workspace.secret)
    (folder / "linked").symlink_to(workspace.outside)
    return workspace


INSIDE = {"Inside.", "Inside too.", "Do it.\n", "Good guide."}


@pytest.mark.sampled
@given(REQUESTS)
@settings(max_examples=examples(400), deadline=None)
def test_no_request_returns_a_byte_from_outside(trap: Workspace, requested: str) -> None:
    """P01, P02, P03: for any string as a reference, a load is a text of the skill or a typed error."""
    outcome = load(Turn(_shared_shelf(trap)), "victim", requested)
    assert outcome in INSIDE or reveals_nothing(outcome, requested)


@given(REQUESTS)
@example(f"../../outside-{CANARY}/secret.md")
@example("references/linked/secret.md")
@example("linked/secret.md")
@settings(max_examples=200, deadline=None)
def test_no_listed_path_returns_a_byte_from_outside(trap: Workspace, listed: str) -> None:
    """P01-P04: whatever path the author lists, a load is a text of the skill or a typed error."""
    folder = trap.root / "victim"
    (folder / "SKILL.md").write_text(
        render_skill({"name": "victim", "description": "d", "references": [listed]}, "Do it.\n"), errors="replace"
    )
    shelf = trap.shelf()
    for path in shelf.catalog["victim"].references:
        outcome = load(Turn(shelf), "victim", path)
        assert outcome in INSIDE or path == "SKILL.md" or reveals_nothing(outcome, path)


def reveals_nothing(outcome: str | SkillError, requested: str) -> bool:
    """Return True if this is an error that contains only what the caller already knew."""
    return isinstance(outcome, SkillError) and CANARY not in str(outcome).replace(repr(requested), "")


def _shared_shelf(workspace: Workspace) -> Shelf:
    """Return one shelf for all examples: the files do not change."""
    if not hasattr(workspace, "kept"):
        workspace.shared_shelf = workspace.shelf()  # type: ignore[attr-defined]
    return workspace.shared_shelf  # type: ignore[attr-defined,no-any-return]


# -- kinds of files ---------------------------------------------------------------------------------------------------


def _link_outside(path: Path, workspace: Workspace) -> None:
    path.symlink_to(workspace.secret)


def _link_inside(path: Path, workspace: Workspace) -> None:
    path.symlink_to(workspace.root / GOOD / "SKILL.md")


def _link_to_itself(path: Path, workspace: Workspace) -> None:
    path.symlink_to(path.name)


def _link_in_a_ring(path: Path, workspace: Workspace) -> None:
    other = workspace.outside / "ring"
    other.symlink_to(path)
    path.symlink_to(other)


def _dangling(path: Path, workspace: Workspace) -> None:
    path.symlink_to(workspace.outside / "gone")


def _fifo(path: Path, workspace: Workspace) -> None:
    os.mkfifo(path)


def _socket(path: Path, workspace: Workspace) -> None:
    os.mknod(path, stat.S_IFSOCK | 0o666)


def _device(path: Path, workspace: Workspace) -> None:
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))
    except PermissionError:
        path.symlink_to("/dev/zero")


def _device_link(path: Path, workspace: Workspace) -> None:
    path.symlink_to("/dev/zero")


def _environ_link(path: Path, workspace: Workspace) -> None:
    path.symlink_to("/proc/self/environ")


def _link_to_a_folder_outside(path: Path, workspace: Workspace) -> None:
    path.symlink_to(workspace.outside / "stolen")


Place = Callable[[Path, Workspace], None]
NOT_FILES: dict[str, Place] = {
    "P02-link-to-an-outside-file": _link_outside,
    "P02-link-to-an-inside-file": _link_inside,
    "P03-link-to-an-outside-folder": _link_to_a_folder_outside,
    "P07-link-to-itself": _link_to_itself,
    "P07-ring-of-links": _link_in_a_ring,
    "P08-dangling-link": _dangling,
    "P10-fifo": _fifo,
    "P14-socket": _socket,
    "P15-device": _device,
    "P15-link-to-dev-zero": _device_link,
    "P16-link-to-environ": _environ_link,
}
KINDS = pytest.mark.parametrize("place", NOT_FILES.values(), ids=NOT_FILES.keys())


@KINDS
def test_a_skill_file_that_is_not_a_plain_file_is_refused(place: Place, workspace: Workspace) -> None:
    """P05, P07, P08, P10, P14-P16: a link, FIFO, socket or device gets one diagnostic and never hangs."""
    folder = workspace.root / "bad"
    folder.mkdir()
    place(folder / "SKILL.md", workspace)
    shelf = workspace.shelf()
    assert list(shelf.catalog) == [GOOD]
    assert_standard(workspace, shelf, [("skill-file-unreadable", "bad/SKILL.md")])


@KINDS
def test_a_reference_that_is_not_a_plain_file_is_not_offered(place: Place, workspace: Workspace) -> None:
    """P02, P03, P07, P08, P11, P14-P16: such an entry below references/ is reported and not listed."""
    folder = workspace.skill("bad", files={GUIDE: "Inside."})
    place(folder / "references/odd.md", workspace)
    shelf = workspace.shelf()
    assert shelf.catalog["bad"].references == (GUIDE,)
    assert_standard(workspace, shelf, [("reference-refused", "bad/references/odd.md")])
    with pytest.raises(ReferenceNotAllowedError):
        shelf.turn().load("bad", "odd.md")


@KINDS
def test_loading_a_listed_reference_that_is_not_a_plain_file_is_refused(place: Place, workspace: Workspace) -> None:
    """P02, P03, P07, P08, P11, P14-P16: the author's list does not turn a link, FIFO, socket or device into a file."""
    folder = workspace.raw("bad", "---\nname: bad\ndescription: d\nreferences: [odd.md]\n---\nDo it.\n")
    place(folder / "odd.md", workspace)
    shelf = workspace.shelf()
    with pytest.raises(ReferenceNotAllowedError, match=r"it is a (symlink|FIFO|socket|device)"):
        shelf.turn().load("bad", "odd.md")
    assert_standard(workspace, shelf, [("reference-refused", "bad/odd.md")])


@KINDS
def test_a_reference_is_checked_again_when_it_is_loaded(place: Place, workspace: Workspace) -> None:
    """P02, P03, P07, P08, P11, P14-P16: the check applies to the file at the time of the load."""
    folder = workspace.skill("bad", files={GUIDE: "Inside."})
    shelf = workspace.shelf()
    (folder / GUIDE).unlink()
    place(folder / GUIDE, workspace)
    with pytest.raises(ReferenceNotAllowedError, match=r"it is a (symlink|FIFO|socket|device)"):
        Turn(shelf).load("bad", GUIDE)
    assert CANARY not in collect_output(shelf)


@KINDS
def test_a_skill_file_swapped_for_something_else_keeps_its_last_good_text(place: Place, workspace: Workspace) -> None:
    """P05, P10, P14-P16, K08: a SKILL.md that becomes a link or a FIFO between two turns serves its last text."""
    folder = workspace.skill("bad", body="The good text.\n")
    shelf = workspace.shelf()
    (folder / "SKILL.md").unlink()
    place(folder / "SKILL.md", workspace)
    assert shelf.turn().load("bad").text == "The good text.\n"
    assert_standard(workspace, shelf, [("kept-last-good", "bad/SKILL.md"), ("skill-file-unreadable", "bad/SKILL.md")])


@pytest.mark.parametrize("place", [_fifo, _link_outside, _environ_link, _dangling], ids=lambda place: place.__name__)
def test_an_ignore_file_that_is_not_a_plain_file_is_reported(place: Place, workspace: Workspace) -> None:
    """P02, P10, P16: an ignore file that cannot be read gets one diagnostic and ignores nothing."""
    place(workspace.root / ".skillshelfignore", workspace)
    assert_standard(workspace, workspace.shelf(), [("ignore-unreadable", ".skillshelfignore")])


def test_a_folder_in_place_of_a_file_is_refused(workspace: Workspace) -> None:
    """P12, P13: a folder called SKILL.md gets one diagnostic; a listed reference that is a folder is not loaded."""
    (workspace.root / "bad/SKILL.md").mkdir(parents=True)
    folder = workspace.raw("lister", "---\nname: lister\ndescription: d\nreferences: [odd.md]\n---\nDo it.\n")
    (folder / "odd.md").mkdir()
    shelf = workspace.shelf()
    with pytest.raises(ReferenceNotAllowedError, match="it is a folder"):
        shelf.turn().load("lister", "odd.md")
    assert_standard(workspace, shelf, [("skill-file-unreadable", "bad/SKILL.md")])


def test_a_references_folder_that_is_a_link_offers_nothing(workspace: Workspace) -> None:
    """P04: references/ as a link is reported as a whole; a listed path through it is refused."""
    folder = workspace.skill("bad")
    (folder / "references").symlink_to(workspace.outside / "stolen/references")
    lister = workspace.raw("lister", f"---\nname: lister\ndescription: d\nreferences: [{GUIDE}]\n---\nDo it.\n")
    (lister / "references").symlink_to(workspace.outside / "stolen/references")
    shelf = workspace.shelf()
    assert shelf.catalog["bad"].references == ()
    with pytest.raises(ReferenceNotAllowedError, match="symlink or not a folder"):
        shelf.turn().load("lister", GUIDE)
    assert_standard(
        workspace, shelf, [("reference-refused", "bad/references"), ("reference-refused", "lister/references")]
    )


def test_a_skill_folder_that_is_a_link_is_followed_only_inside(workspace: Workspace) -> None:
    """P06: a link inside the root, as installers create them, is one skill; a link that leaves is reported."""
    workspace.skill(".agents/skills/shared", body="Shared.\n")
    claude = workspace.root / ".claude/skills"
    claude.mkdir(parents=True)
    (claude / "shared").symlink_to("../../.agents/skills/shared")
    (claude / "stolen").symlink_to(workspace.outside / "stolen")
    shelf = workspace.shelf()
    assert list(shelf.catalog) == [GOOD, "shared"]
    assert shelf.turn().load("shared").text == "Shared.\n"
    assert_standard(workspace, shelf, [("link-outside", ".claude/skills/stolen")])


def test_a_link_to_an_otherwise_hidden_target_adds_its_skill(workspace: Workspace) -> None:
    """P06: the target of an inside link is found even if the walk does not reach it on its own."""
    workspace.skill("node_modules/pkg/skills/shipped", body="Shipped.\n")
    (workspace.root / "shipped").symlink_to("node_modules/pkg/skills/shipped")
    shelf = workspace.shelf()
    assert shelf.turn().load("shipped").text == "Shipped.\n"
    assert_standard(workspace, shelf, [])


def test_removing_a_link_removes_its_skill(workspace: Workspace) -> None:
    """P06: a skill that only a link led to is gone one turn after the link."""
    workspace.skill("node_modules/pkg/skills/shipped")
    (workspace.root / "shipped").symlink_to("node_modules/pkg/skills/shipped")
    shelf = workspace.shelf()
    (workspace.root / "shipped").unlink()
    shelf.turn()
    assert list(shelf.catalog) == [GOOD]


def test_loops_of_folders_are_walked_once(workspace: Workspace) -> None:
    """P07: links to the root, to their own folder and to each other add nothing and end the walk."""
    skills = workspace.root / "skills"
    workspace.skill("skills/inner")
    (skills / "up").symlink_to("..")
    (skills / "here").symlink_to(".")
    (skills / "ping").symlink_to("pong")
    (skills / "pong").symlink_to("ping")
    shelf = workspace.shelf()
    assert list(shelf.catalog) == [GOOD, "inner"]
    assert_standard(workspace, shelf, [("link-broken", "skills/ping"), ("link-broken", "skills/pong")])


def test_a_dangling_link_is_reported_until_it_is_repaired(workspace: Workspace) -> None:
    """P08: a link to nothing gets one diagnostic, and none once its target exists."""
    (workspace.root / "later").symlink_to("node_modules/later")
    shelf = workspace.shelf()
    assert_standard(workspace, shelf, [("link-broken", "later")])
    workspace.skill("node_modules/later")
    shelf.turn()
    assert_standard(workspace, shelf, [])
    assert list(shelf.catalog) == [GOOD, "later"]


def test_a_hard_link_is_read_with_a_note(workspace: Workspace) -> None:
    """P09: in a workspace a SKILL.md with other hard links loads, with a note to the author."""
    folder = workspace.skill("bad", body="Linked.\n")
    os.link(folder / "SKILL.md", workspace.outside / "other-name")
    shelf = workspace.shelf()
    assert shelf.turn().load("bad").text == "Linked.\n"
    assert [(note.severity, note.code) for note in shelf.catalog.diagnostics] == [("info", "hard-link")]
    assert_neighbour(shelf)


# -- permissions ------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("ordinary_user")
def test_an_unreadable_file_affects_only_its_skill(workspace: Workspace) -> None:
    """P18: a SKILL.md without read permission gets one diagnostic; such a reference raises a typed error."""
    bad = workspace.skill("bad")
    (bad / "SKILL.md").chmod(0)
    half = workspace.skill("half", files={GUIDE: "Inside."})
    (half / GUIDE).chmod(0)
    shelf = workspace.shelf()
    with pytest.raises(ReferenceUnreadableError, match="Permission denied"):
        shelf.turn().load("half", "guide.md")
    assert_standard(workspace, shelf, [("skill-file-unreadable", "bad/SKILL.md")])


@pytest.mark.usefixtures("ordinary_user")
def test_an_unreadable_file_is_read_once_permission_returns(workspace: Workspace) -> None:
    """P18: the next turn sees restored permission; removed permission keeps the last good text."""
    skill = workspace.skill("bad", body="The good text.\n") / "SKILL.md"
    skill.chmod(0)
    shelf = workspace.shelf()
    skill.chmod(0o644)
    assert shelf.turn().load("bad").text == "The good text.\n"
    skill.chmod(0)
    assert shelf.turn().load("bad").text == "The good text.\n"
    assert_standard(workspace, shelf, [("kept-last-good", "bad/SKILL.md"), ("skill-file-unreadable", "bad/SKILL.md")])


@pytest.mark.usefixtures("ordinary_user")
@pytest.mark.parametrize("mode", [0, 0o111, 0o222], ids=oct)
def test_an_unreadable_folder_is_reported(mode: int, workspace: Workspace) -> None:
    """P19: a skill's folder, a folder of skills and a references folder without permission each get one diagnostic."""
    folders = [workspace.skill("bad"), workspace.skill("many/inner").parent]
    folders.append(workspace.skill("half", files={GUIDE: "Inside."}) / "references")
    for folder in folders:
        folder.chmod(mode)
    try:
        shelf = workspace.shelf()
        assert list(shelf.catalog) == [GOOD, "half"]
        assert shelf.catalog["half"].references == ()
        assert_standard(
            workspace,
            shelf,
            [("folder-unreadable", "bad"), ("folder-unreadable", "half/references"), ("folder-unreadable", "many")],
        )
    finally:
        for folder in folders:
            folder.chmod(0o755)


@pytest.mark.usefixtures("ordinary_user")
def test_a_listed_but_unsearchable_folder_hides_its_files(workspace: Workspace) -> None:
    """P19: if names are visible but nothing can be opened (mode 444), each file raises its own typed error."""
    references = workspace.skill("half", files={GUIDE: "Inside."}) / "references"
    references.chmod(0o444)
    try:
        shelf = workspace.shelf()
        assert shelf.catalog["half"].references == (GUIDE,)
        with pytest.raises(ReferenceUnreadableError, match="Permission denied"):
            shelf.turn().load("half", "guide.md")
        assert_standard(workspace, shelf, [])
    finally:
        references.chmod(0o755)


@pytest.mark.usefixtures("ordinary_user")
@pytest.mark.parametrize("key", ["many/bad", "many"])
def test_a_folder_that_loses_its_permission_is_reported_and_comes_back(key: str, workspace: Workspace) -> None:
    """P19: a folder never disappears silently, and is back once it is readable again."""
    workspace.skill("many/bad")
    shelf = workspace.shelf()
    (workspace.root / key).chmod(0)
    try:
        shelf.turn()
        faults = workspace.faults(shelf)
    finally:
        (workspace.root / key).chmod(0o755)
    shelf.turn()
    assert list(shelf.catalog) == ["bad", GOOD]
    assert [path for _, path in faults] == [key]


@pytest.mark.usefixtures("ordinary_user")
def test_an_unreadable_root_is_one_fault(workspace: Workspace) -> None:
    """P19, K13: a root without permission gets one diagnostic, and everything is back once it is readable."""
    shelf = workspace.shelf()
    workspace.root.chmod(0)
    try:
        shelf.turn()
        assert workspace.faults(shelf) == [("root-unreadable", ".")]
        assert list(shelf.catalog) == []
    finally:
        workspace.root.chmod(0o755)
    shelf.turn()
    assert_standard(workspace, shelf, [])


# -- names and shapes of trees ----------------------------------------------------------------------------------------


def test_a_tree_400_folders_deep_is_cut_with_a_diagnostic(workspace: Workspace) -> None:
    """P20: neither the walk for skills nor the walk for references descends to the 400th level."""
    deep = "/".join("d" * 400)
    workspace.skill(f"tower/{deep}/lost")
    workspace.skill("bad", files={f"references/{deep}/lost.md": "Too deep."})
    shelf = workspace.shelf()
    assert list(shelf.catalog) == ["bad", GOOD]
    assert shelf.catalog["bad"].references == ()
    depth = "/".join("d" * 31)
    assert_standard(workspace, shelf, [("too-deep", f"bad/references/{depth}"), ("too-deep", f"tower/{depth}/d")])


ODD_NAMES: dict[str, bytes] = {
    "P21-not-utf8": b"caf\xe9.md",
    "P22-newline": b"a\nb.md",
    "P22-escape": b"a\x1b[2Jb.md",
    "P22-carriage-return": b"a\rb.md",
    "P22-bidi": "a\u202eb.md".encode(),
    "P25-stream": b"a.md:x",
    "P25-device": b"CON",
    "P25-device-with-suffix": b"nul.md",
    "P25-com1": b"Com1.txt",
    "P25-backslash": b"a\\b.md",
    "P25-trailing-dot": b"a.md.",
    "P25-trailing-space": b"a.md ",
    "P25-bar": b"a | b.md",
    "P25-angle": b"<a>.md",
    "P25-quote": b'a".md',
    "P25-star": b"*.md",
}


@pytest.mark.parametrize("name", ODD_NAMES.values(), ids=ODD_NAMES.keys())
def test_a_file_name_with_a_meaning_on_another_system_is_not_offered(name: bytes, workspace: Workspace) -> None:
    """P21, P22, P25: undecodable, control and special names of other systems each get one diagnostic."""
    folder = workspace.skill("bad", files={GUIDE: "Inside."})
    Path(os.fsdecode(os.fsencode(folder) + b"/references/" + name)).write_text("Odd.")
    shelf = workspace.shelf()
    assert shelf.catalog["bad"].references == (GUIDE,)
    assert_standard(workspace, shelf, [("filename-refused", f"bad/references/{os.fsdecode(name)}")])
    with pytest.raises(ReferenceNotAllowedError):
        shelf.turn().load("bad", os.fsdecode(name))
    assert shelf.listing().text.encode()


@pytest.mark.parametrize(
    "name", [*ODD_NAMES.values(), "a\u3164b".encode()], ids=[*ODD_NAMES.keys(), "U03-hangul-filler"]
)
def test_a_folder_name_with_a_meaning_on_another_system_offers_nothing(name: bytes, workspace: Workspace) -> None:
    """P21, P22, P25: a path is as untrusted in its folders as in its file name."""
    folder = workspace.skill("bad", files={GUIDE: "Inside."})
    inner = Path(os.fsdecode(os.fsencode(folder) + b"/references/" + name))
    inner.mkdir()
    (inner / "y.md").write_text("Odd.")
    shelf = workspace.shelf()
    assert shelf.catalog["bad"].references == (GUIDE,)
    assert_standard(workspace, shelf, [("filename-refused", f"bad/references/{os.fsdecode(name)}")])


@pytest.mark.parametrize("name", ODD_NAMES.values(), ids=ODD_NAMES.keys())
def test_a_skill_folder_with_an_odd_name_affects_only_itself(name: bytes, workspace: Workspace) -> None:
    """P21, P22, P25: a skill in such a folder has its declared name, and the listing and a reload still work."""
    folder = Path(os.fsdecode(os.fsencode(workspace.root) + b"/" + name))
    folder.mkdir()
    (folder / "SKILL.md").write_text("---\nname: bad\ndescription: d\n---\nDo it.\n")
    shelf = workspace.shelf()
    assert shelf.turn().load("bad").text == "Do it.\n"
    assert shelf.listing("full").text.encode()
    assert_standard(workspace, shelf, [])


@pytest.mark.parametrize("name", ODD_NAMES.values(), ids=ODD_NAMES.keys())
def test_a_folder_with_an_odd_name_provides_a_usable_one(name: bytes, workspace: Workspace) -> None:
    """P21, P22, P25: if the file declares no name, the one made from the folder is printable and not a path."""
    folder = Path(os.fsdecode(os.fsencode(workspace.root) + b"/" + name))
    folder.mkdir()
    (folder / "SKILL.md").write_text("---\ndescription: d\n---\nDo it.\n")
    shelf = workspace.shelf()
    (lent,) = set(shelf.catalog) - {GOOD}
    assert lent.isprintable()
    assert not set(lent) & set('/\\@<>"`|*?$')
    assert shelf.turn().load(lent).text == "Do it.\n"
    assert [code for code, _ in workspace.faults(shelf)] == ["name-missing"]


@pytest.mark.parametrize("listed", ["a.md:x", "CON", "aux.md", "refs\\a.md", "a%2e.md", "~/a.md", "a/../b.md", "/a.md"])
def test_a_listed_path_that_systems_read_differently_is_refused(listed: str, workspace: Workspace) -> None:
    """P01, P25: the author's list follows the same rules on every system, with one diagnostic per path."""
    workspace.raw("bad", render_skill({"name": "bad", "description": "d", "references": [listed, GUIDE]}, "Do it.\n"))
    shelf = workspace.shelf()
    assert shelf.catalog["bad"].references == (GUIDE,)
    assert_standard(workspace, shelf, [("reference-refused", "bad/SKILL.md")])


# -- the root ---------------------------------------------------------------------------------------------------------


def test_a_root_replaced_by_a_link_is_not_followed(workspace: Workspace) -> None:
    """P23: if the root becomes a link between two turns, its target is not served, and the root can come back."""
    shelf = workspace.shelf()
    parked = workspace.root.with_name("parked")
    workspace.root.rename(parked)
    workspace.root.symlink_to(workspace.outside)
    turn = shelf.turn()
    assert list(shelf.catalog) == []
    assert workspace.faults(shelf) == [("root-unreadable", ".")]
    assert CANARY not in collect_output(shelf) + str(load(turn, "stolen"))
    workspace.root.unlink()
    parked.rename(workspace.root)
    shelf.turn()
    assert_standard(workspace, shelf, [])


def test_a_root_replaced_by_a_link_within_a_turn_serves_nothing(workspace: Workspace) -> None:
    """P23: a load after the swap, without a sweep in between, is a typed error or the cached text."""
    workspace.skill("stolen", body="The good text.\n", files={GUIDE: "Inside."})
    shelf = workspace.shelf()
    workspace.root.rename(workspace.root.with_name("parked"))
    workspace.root.symlink_to(workspace.outside)
    turn = Turn(shelf)
    assert turn.load("stolen").text == "The good text.\n"
    with pytest.raises((ReferenceNotAllowedError, ReferenceNotFoundError)):
        turn.load("stolen", GUIDE)
    assert CANARY not in collect_output(shelf)


def test_a_root_given_as_a_link_is_the_folder_it_leads_to(workspace: Workspace) -> None:
    """P23: a path passed by the program is trusted as it is at that moment."""
    link = workspace.root.with_name("link")
    link.symlink_to(workspace.root)
    shelf = Shelf([DirectorySource(link, cache=False)])
    link.unlink()
    link.symlink_to(workspace.outside)
    shelf.turn()
    assert_standard(workspace, shelf, [])


def test_a_root_must_be_a_folder(workspace: Workspace) -> None:
    """P12: a root that is a file raises a typed error immediately."""
    with pytest.raises(SourceError, match="Not a directory"):
        DirectorySource(workspace.root / GOOD / "SKILL.md")


MOUNTS = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
uid, gid = os.getuid(), os.getgid()
# A private mount namespace; an ordinary user gets one inside a private user namespace.
if libc.unshare(0x20000 if uid == 0 else 0x10020000):
    sys.exit(99)
if uid:
    open("/proc/self/setgroups", "w").write("deny")
    open("/proc/self/uid_map", "w").write(f"0 {uid} 1")
    open("/proc/self/gid_map", "w").write(f"0 {gid} 1")
def mount(source, target, kind, flags):
    os.makedirs(target, exist_ok=True)
    if libc.mount(source.encode(), os.fsencode(target), kind, flags, None):
        sys.exit(99)
libc.mount(b"none", b"/", None, 0x44000, None)  # private: mounts are invisible outside
root, outside, kind = sys.argv[1:]
if kind != "tmpfs":
    name = "mounted" if kind == "bind" else "a\\u2028b\\rc\\u2028d\\x85e\\x0cf"
    mount(outside, f"{root}/{name}", None, 0x1000)
    mount(outside, f"{root}/lister/mounted", None, 0x1000)
else:
    for target in (f"{root}/mounted", f"{root}/lister/mounted"):
        mount("tmpfs", target, b"tmpfs", 0)
        os.makedirs(f"{target}/stolen")
        open(f"{target}/secret.md", "w").write(open(f"{outside}/secret.md").read())
        open(f"{target}/stolen/SKILL.md", "w").write(open(f"{outside}/stolen/SKILL.md").read())
from skillshelf import DirectorySource, Shelf, SkillError
shelf = Shelf([DirectorySource(root, cache=False)])
print(sorted(shelf.catalog))
print([note.code for note in shelf.catalog.diagnostics])
try:
    print(shelf.turn().load("lister", "mounted/secret.md"))
except SkillError as error:
    print(error.reason)
"""


def _read_with_mounts(workspace: Workspace, kind: str) -> list[str]:
    workspace.raw("lister", "---\nname: lister\ndescription: d\nreferences: [mounted/secret.md]\n---\nDo it.\n")
    completed = subprocess.run(
        [sys.executable, "-c", MOUNTS, str(workspace.root), str(workspace.outside), kind],
        capture_output=True,
        text=True,
        timeout=60,
    )
    if completed.returncode == 99:
        pytest.skip("this user may not mount, not even in a namespace of their own")
    assert completed.returncode == 0, completed.stderr
    return completed.stdout.splitlines()


def test_another_mount_is_not_entered(workspace: Workspace) -> None:
    """P24: a file system mounted inside the root is reported, and no listed path leads into it."""
    assert _read_with_mounts(workspace, "tmpfs") == [
        "['good', 'lister']",
        "['other-mount', 'other-mount']",
        "it is on another mount",
    ]


def test_a_bind_mount_is_not_entered(workspace: Workspace) -> None:
    """P24: a folder of the same file system mounted inside the root is treated like any other mount."""
    assert CANARY not in "".join(_read_with_mounts(workspace, "bind"))


def test_a_mount_is_not_entered_if_its_name_has_line_breaks(workspace: Workspace) -> None:
    """P24: nor does such a mount, which another user may have made anywhere, break every command."""
    found, *_ = _read_with_mounts(workspace, "odd")
    assert found == "['good', 'lister']"


# -- races ------------------------------------------------------------------------------------------------------------

FLIP = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
one, other = map(os.fsencode, sys.argv[1:])
exchange = lambda: libc.renameat2(-100, one, -100, other, 2)
if not hasattr(libc, "renameat2") or exchange():
    spare = one + b".spare"
    def exchange():
        os.rename(one, spare); os.rename(other, one); os.rename(spare, other)
print("flipping", flush=True)
while os.getppid() == int(os.environ["FLIP_PARENT"]):
    exchange()
"""


@contextmanager
def flip_with_link(real: Path, target: Path) -> Iterator[None]:
    """Swap `real` with a symlink to `target` in another process, as fast as possible, inside the `with` block."""
    link = real.with_name(".flip")
    link.symlink_to(target)
    environment = {**os.environ, "FLIP_PARENT": str(os.getpid())}
    process = subprocess.Popen(
        [sys.executable, "-c", FLIP, str(real), str(link)], stdout=subprocess.PIPE, env=environment
    )
    try:
        assert process.stdout
        assert process.stdout.readline() == b"flipping\n"
        yield
    finally:
        process.kill()
        process.communicate()


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("flipped", "target"),
    [(f"victim/{GUIDE}", "secret.md"), ("victim/references", "stolen/references"), ("victim", "stolen")],
    ids=["the-file", "the-references-folder", "the-skills-folder"],
)
def test_swapping_a_component_for_a_link_never_returns_an_outside_byte(
    flipped: str, target: str, workspace: Workspace, long: bool
) -> None:
    """P02-P06: in thousands of reads while a link comes and goes, the gate returns the file or a typed error."""
    reads = 34_000 if long else 8_500
    workspace.skill("victim", files={GUIDE: "Inside."})
    shelf = workspace.shelf()
    place, descriptor = shelf.catalog.find("victim").place, shelf.catalog["victim"]
    (source,) = shelf.sources
    texts = errors = 0
    deadline = time.monotonic() + 60
    with flip_with_link(workspace.root / flipped, workspace.outside / target):
        while texts + errors < reads or not (texts and errors):
            assert time.monotonic() < deadline, f"{texts} texts, {errors} errors: the race was not run"
            try:
                assert source.reference(place.key, descriptor, GUIDE, 0, 4096).data == b"Inside."
                texts += 1
            except (ReferenceNotAllowedError, ReferenceNotFoundError):
                errors += 1


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("flipped", "target"),
    [("victim/SKILL.md", "stolen/SKILL.md"), ("victim", "stolen"), ("many", "")],
    ids=["the-file", "the-skills-folder", "the-folder-of-skills"],
)
def test_swapping_a_skill_for_a_link_never_serves_an_outside_skill(
    flipped: str, target: str, workspace: Workspace, long: bool
) -> None:
    """P05, P06: in hundreds of sweeps while a link comes and goes, no outside skill, description or text is served."""
    workspace.skill("victim", files={GUIDE: "Inside."})
    workspace.skill("many/stolen", files={GUIDE: "Inside."})
    shelf = workspace.shelf()
    outcomes: set[bool] = set()
    sweeps = 700 if long else 175
    rounds, deadline = 0, time.monotonic() + 60
    with flip_with_link(workspace.root / flipped, workspace.outside / target):
        while rounds < sweeps or len(outcomes) < 2:
            assert time.monotonic() < deadline, "the race was not run"
            turn = shelf.turn()
            rounds += 1
            outcomes.add(bool(shelf.catalog.diagnostics))
            texts = [str(load(turn, name, reference)) for name in ("victim", "stolen") for reference in ("", GUIDE)]
            assert CANARY not in "".join(texts)
            assert CANARY not in repr([*shelf.catalog.values(), *shelf.catalog.diagnostics])
    assert_neighbour(shelf)


@pytest.mark.sampled
def test_swapping_a_folder_for_a_link_never_stops_a_reload(workspace: Workspace, long: bool) -> None:
    """P06: seconds of sweeps while a link comes and goes raise nothing."""
    workspace.skill("many/victim")
    shelf = workspace.shelf()
    deadline = time.monotonic() + (3 if long else 1)
    with flip_with_link(workspace.root / "many", workspace.outside):
        while time.monotonic() < deadline:
            shelf.reload()


# -- recording opened files -------------------------------------------------------------------------------------------

_touched: list[str] | None = None


def _record(event: str, arguments: tuple[object, ...]) -> None:
    if _touched is not None and (event == "open" or re.match(r"os\.(scandir|listdir|chdir)", event)):
        _touched.append(f"{event} {arguments[0]!r}")


sys.addaudithook(_record)  # a hook cannot be removed, so it is switched on and off


@contextmanager
def record_opened_files() -> Iterator[list[str]]:
    """Yield the paths that are opened or listed inside the `with` block."""
    global _touched
    touched: list[str] = []
    _touched = touched
    try:
        yield touched
    finally:
        _touched = None
