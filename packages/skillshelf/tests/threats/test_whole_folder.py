"""FOLDER: without a list, every file of a skill's folder can be loaded, and nothing else."""

import os
import socket
from pathlib import Path

import pytest

from skillshelf import AmbiguousReferenceError, ReferenceNotAllowedError, Turn
from skillshelf.sources import MAX_SKILL_BYTES, MAX_SKILL_FILES
from threats.test_path import record_opened_files
from threats.workspace import GOOD, Workspace, assert_standard, load, read_in_process


def has_case(folder: Path) -> bool:
    """Return True if two names that differ only in case are two files here."""
    (folder / "case").touch()
    return not (folder / "CASE").exists()


@pytest.mark.parametrize("requested", ["FORMS.md", "forms.MD", "./FORMS.md", "RULES/A.md", "A.MD"])
def test_another_case_leads_to_the_one_file_that_has_the_name(requested: str, workspace: Workspace) -> None:
    """It is compared with the list as text: only the listed file is opened, under its own name."""
    workspace.skill("victim", files={"forms.md": "Inside.", "rules/a.md": "Inside too."})
    turn = workspace.shelf().turn()
    if requested.startswith("."):
        assert isinstance(load(turn, "victim", requested), ReferenceNotAllowedError)
        return
    with record_opened_files() as touched:
        loaded = turn.load("victim", requested)
    assert loaded.text.startswith("Inside")
    assert loaded.reference in ("forms.md", "rules/a.md")
    assert not [path for path in touched if requested in path]


def test_another_case_never_chooses_between_two_files(workspace: Workspace) -> None:
    """Each is loaded by its own name only; any other case is refused and opens nothing."""
    if not has_case(workspace.outside):
        pytest.skip("this file system does not tell case")
    workspace.skill("victim", files={"forms.md": "Small.", "FORMS.md": "Large.", "a/X.md": "One.", "b/x.md": "Two."})
    turn = workspace.shelf().turn()
    assert (turn.load("victim", "forms.md").text, turn.load("victim", "FORMS.md").text) == ("Small.", "Large.")
    assert (turn.load("victim", "X.md").text, turn.load("victim", "x.md").text) == ("One.", "Two.")
    for requested in ("Forms.md", "forms.MD", "x.MD"):
        with record_opened_files() as touched, pytest.raises(AmbiguousReferenceError):
            turn.load("victim", requested)
        assert touched == []


@pytest.mark.parametrize(
    ("listed", "requested"),
    [
        ("k.md", "\u212a.md"),
        ("s.md", "\u017f.md"),
        ("i.md", "\u0131.md"),
        ("i.md", "\u0130.md"),
        ("strasse.md", "stra\u00dfe.md"),
        ("fi.md", "\ufb01.md"),
        ("cafe\u0301.md", "caf\u00e9.md"),
        ("a.md", "\u0410.md"),
        ("ω.md", "\u2126.md"),
    ],
    ids=ascii,
)
def test_a_letter_that_only_folds_to_another_is_not_its_case(listed: str, requested: str, workspace: Workspace) -> None:
    """Kelvin sign, long s, dotless i, ligatures, composed accents and Cyrillic lead nowhere; case in Greek does."""
    workspace.skill("victim", files={listed: "Inside."})
    turn = workspace.shelf().turn()
    with record_opened_files() as touched, pytest.raises(ReferenceNotAllowedError):
        turn.load("victim", requested)
    assert touched == []
    assert turn.load("victim", listed.upper()).text == "Inside."


def test_a_file_added_after_the_scan_waits_for_the_reload(workspace: Workspace) -> None:
    """A turn that runs cannot load it, in no folder and in no case."""
    body = "Read rules/new.md, NEW.md and deep/er/new.md.\n"
    folder = workspace.skill("victim", body=body, files={"rules/a.md": "A"})
    shelf = workspace.shelf()
    turn = Turn(shelf)
    added = ("new.md", "rules/new.md", "deep/er/new.md")
    for name in added:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("Added.")
        for requested in (name, name.upper(), "new.md"):
            with record_opened_files() as touched, pytest.raises(ReferenceNotAllowedError):
                turn.load("victim", requested)
            assert touched == []
    shelf.reload()
    assert shelf.catalog["victim"].references == (*sorted(added), "rules/a.md")
    assert {Turn(shelf).load("victim", name).text for name in added} == {"Added."}


def test_hidden_files_and_what_a_search_skips_are_not_offered(workspace: Workspace) -> None:
    """Naming them in the instructions does not offer them either."""
    kept_out = (
        ".env",
        ".git/config",
        "rules/.secret.md",
        "node_modules/a/index.js",
        "__pycache__/a.md",
        "venv/a.md",
        "a.pyc",
        "Skill.md",
    )
    body = f"Read {', '.join(kept_out)} and rules/a.md.\n"
    workspace.skill("victim", body=body, files={"rules/a.md": "Inside.", **dict.fromkeys(kept_out, "Kept out.")})
    shelf = workspace.shelf()
    assert shelf.catalog["victim"].references == ("rules/a.md",)
    for name in kept_out:
        assert isinstance(load(Turn(shelf), "victim", name), ReferenceNotAllowedError)


@pytest.mark.parametrize("nested", ["rules/inner/SKILL.md", "references/inner/skill.md"])
def test_the_folder_of_a_nested_skill_is_not_offered(nested: str, workspace: Workspace) -> None:
    """Its instructions and files are neither this skill's nor another one's."""
    below = f"{os.path.dirname(nested)}/deep/a.md"
    body = f"Read {nested} and {below}.\n"
    workspace.skill("victim", body=body, files={nested: "Nested.", below: "Nested.", "rules/a.md": "Inside."})
    shelf = workspace.shelf()
    assert shelf.catalog["victim"].references == ("rules/a.md",)
    assert_standard(workspace, shelf, [("nested-skill", f"victim/{nested}")])


def test_links_and_special_files_are_not_offered_wherever_they_are(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even if the instructions name them. A file that becomes one is refused when it is loaded."""
    body = "Read rules/link.md, rules/pipe.md, rules/sock.md and stolen/references/guide.md.\n"
    folder = workspace.skill("victim", body=body, files={"rules/a.md": "Inside.", "rules/later.md": "Inside."})
    (folder / "stolen").symlink_to(workspace.outside / "stolen")
    (folder / "rules/link.md").symlink_to(workspace.secret)
    os.mkfifo(folder / "rules/pipe.md")
    monkeypatch.chdir(folder / "rules")  # the address of a socket has room for about 100 bytes
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind("sock.md")
    shelf = workspace.shelf()
    assert shelf.catalog["victim"].references == ("rules/a.md", "rules/later.md")
    refused = ("rules/link.md", "rules/pipe.md", "rules/sock.md", "stolen")
    assert_standard(workspace, shelf, [("reference-refused", f"victim/{name}") for name in refused])

    for make in (lambda path: path.symlink_to(workspace.secret), os.mkfifo):
        (folder / "rules/later.md").unlink()
        make(folder / "rules/later.md")
        assert isinstance(load(Turn(shelf), "victim", "LATER.md"), ReferenceNotAllowedError)


def test_a_folder_of_100_000_files_offers_512_and_says_so(workspace: Workspace) -> None:
    """The named ones are among them, however late they come in the order of names."""
    folder = workspace.skill("victim", body="Read zz/named.md.\n", files={"zz/named.md": "Inside."})
    (folder / "data").mkdir()
    descriptor = os.open(folder / "data", os.O_RDONLY)
    for number in range(100_000):
        os.mknod(f"{number}.md", dir_fd=descriptor)
    os.close(descriptor)
    outcome = read_in_process(workspace.root, "zz/named.md", "ZZ/NAMED.MD", "99999.md")
    assert outcome["codes"] == ["too-many-files"]
    assert outcome["loaded"]["victim/ZZ/NAMED.MD"] == len("Inside.")
    assert outcome["loaded"]["victim/99999.md"] == "ReferenceNotAllowedError"

    shelf = workspace.shelf()
    skill = shelf.catalog["victim"]
    assert (len(skill.references), skill.main_references) == (MAX_SKILL_FILES - 1, ("zz/named.md",))
    assert len(str(Turn(shelf).load("victim"))) < 5_000
    assert len(shelf.listing().text) < 2_000


def test_a_tree_of_20_000_folders_takes_time_in_proportion(workspace: Workspace) -> None:
    """Each folder is looked at once; the process that reads it would otherwise run into its limit."""
    folder = workspace.skill("victim")
    for top in range(200):
        for inner in range(100):
            os.makedirs(folder / f"{top}/{inner}")
    (folder / "199/99/a.md").write_text("Inside.")
    outcome = read_in_process(workspace.root, "199/99/a.md")
    assert outcome == {"codes": [], "loaded": {f"{GOOD}/199/99/a.md": "ReferenceNotAllowedError", **_LOADED}}


_LOADED = {GOOD: 7, "victim": 7, "victim/199/99/a.md": 7}


def test_files_beyond_16_mib_are_not_offered_and_named_ones_come_first(workspace: Workspace) -> None:
    """A file that does not fit leaves room for those that do."""
    files = {"a.bin": "", "b.bin": "", "huge.bin": "", "z.bin": "", "small.md": "Inside."}
    folder = workspace.skill("victim", body="Use z.bin.\n", files=files)
    for name, size in (("a", 6 << 20), ("b", 6 << 20), ("huge", MAX_SKILL_BYTES), ("z", 6 << 20)):
        os.truncate(folder / f"{name}.bin", size)
    shelf = workspace.shelf()
    assert shelf.catalog["victim"].references == ("z.bin", "a.bin", "small.md")
    assert_standard(workspace, shelf, [("too-many-files", "victim/SKILL.md")])
