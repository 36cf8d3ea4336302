"""The workspace around a folder: the whole repository, or the folder and the skills folders of its parents."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillshelf import Catalog, DirectorySource, Shelf, SkillDescriptor, SourceError
from skillshelf.skills import Found, Place
from skillshelf.sources.workspace import find_workspace

Write = Callable[..., Path]
ANOTHER_USER = 12345

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")


def git(*arguments: str, cwd: Path) -> None:
    identity = ["-c", "user.name=A", "-c", "user.email=a@b.c", "-c", "protocol.file.allow=always"]
    subprocess.run(["git", *identity, *arguments], cwd=cwd, check=True, capture_output=True)


def make_folder(path: Path) -> Path:
    path.mkdir(parents=True)
    return path


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A folder that no repository is around."""
    return Path(os.path.realpath(tmp_path))


# -- inside a repository ----------------------------------------------------------------------------------------------


def test_a_subfolder_belongs_to_the_repository_around_it(base: Path) -> None:
    (base / "proj/.git").mkdir(parents=True)
    package = make_folder(base / "proj/src/pkg")
    workspace = find_workspace(package)
    assert workspace.folder == str(package)
    assert workspace.root == str(base / "proj")
    assert workspace.outer == ()
    assert workspace.searched[0].reason == "the root of the repository you are in"
    assert workspace.levels() == [str(base / "proj"), str(base / "proj/src"), str(package)]


def test_the_root_of_a_repository_is_its_own_workspace(base: Path) -> None:
    (base / "proj/.git").mkdir(parents=True)
    workspace = find_workspace(base / "proj")
    assert workspace.root == workspace.folder == str(base / "proj")
    assert workspace.levels() == [str(base / "proj")]


def test_the_nearest_repository_counts(base: Path) -> None:
    (base / "outer/.git").mkdir(parents=True)
    (base / "outer/inner/.git").mkdir(parents=True)
    assert find_workspace(make_folder(base / "outer/inner/src")).root == str(base / "outer/inner")
    assert find_workspace(make_folder(base / "outer/docs")).root == str(base / "outer")


def test_worktrees_and_submodules_are_repositories_of_their_own(base: Path) -> None:
    """Git marks both with a file called .git instead of a folder."""
    main = make_folder(base / "main")
    git("init", "-q", cwd=main)
    git("commit", "-q", "--allow-empty", "-m", "first", cwd=main)
    git("worktree", "add", "-q", str(base / "tree"), cwd=main)
    assert (base / "tree/.git").is_file()
    assert find_workspace(make_folder(base / "tree/src")).root == str(base / "tree")

    library = make_folder(base / "library")
    git("init", "-q", cwd=library)
    git("commit", "-q", "--allow-empty", "-m", "first", cwd=library)
    git("submodule", "add", "-q", str(library), "vendor/library", cwd=main)
    assert (main / "vendor/library/.git").is_file()
    assert find_workspace(make_folder(main / "vendor/library/src")).root == str(main / "vendor/library")
    assert find_workspace(main / "vendor").root == str(main)


def test_a_broken_git_link_does_not_make_a_repository(base: Path) -> None:
    package = make_folder(base / "proj/src")
    (base / "proj/.git").symlink_to("nowhere")
    assert find_workspace(package).root == str(package)


def test_a_repository_at_the_home_folder_does_not_count(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many users keep their dotfiles in one, and a scan of the whole home would be neither wanted nor quick."""
    monkeypatch.setenv("HOME", str(base / "home"))
    (base / "home/.git").mkdir(parents=True)
    folder = make_folder(base / "home/notes/2026")
    workspace = find_workspace(folder)
    assert workspace.root == str(folder)
    assert workspace.notes == (f"{base}/home and the folders above it do not count: it is your home folder.",)


def test_a_symlinked_folder_counts_where_it_really_is(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (base / "proj/.git").mkdir(parents=True)
    (base / "elsewhere/.git").mkdir(parents=True)
    package = make_folder(base / "proj/src")
    (base / "elsewhere/src").symlink_to(package)
    monkeypatch.chdir(base / "elsewhere/src")
    assert find_workspace() == find_workspace(package)
    assert find_workspace().root == str(base / "proj")


# -- outside a repository ---------------------------------------------------------------------------------------------


def test_skills_folders_of_parents_count_nearest_first(base: Path, write: Write) -> None:
    write("a/.claude/skills/far")
    write("a/.agents/skills/far")
    write("a/b/.skillshelf/skills/near")
    write("a/b/other/skills/unrelated")
    folder = make_folder(base / "a/b/c")
    workspace = find_workspace(folder)
    assert workspace.folders == (
        str(folder),
        f"{base}/a/b/.skillshelf/skills",
        f"{base}/a/.agents/skills",
        f"{base}/a/.claude/skills",
    )
    assert workspace.root == str(folder)


def test_the_home_folder_and_folders_above_it_are_not_searched(
    base: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(base / "users/me"))
    write("users/.agents/skills/above")
    write("users/me/.cursor/skills/mine")
    write("users/me/src/.agents/skills/team")
    folder = make_folder(base / "users/me/src/x")
    assert find_workspace(folder).outer == (f"{base}/users/me/src/.agents/skills",)
    assert find_workspace(base / "users/me").outer == ()


def test_a_skills_folder_never_comes_twice(base: Path, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither through a link to the user's own or to another one, nor from inside it."""
    monkeypatch.setenv("HOME", str(base / "home"))
    write("home/.claude/skills/mine")
    write("a/.agents/skills/one")
    (base / "a/.claude").mkdir()
    (base / "a/.claude/skills").symlink_to(base / "a/.agents/skills")
    (base / "a/.codex").mkdir()
    (base / "a/.codex/skills").symlink_to(base / "home/.claude/skills")
    assert find_workspace(make_folder(base / "a/b")).outer == (f"{base}/a/.agents/skills",)
    assert find_workspace(base / "a/.agents/skills/one").outer == ()


# -- folders of other users -------------------------------------------------------------------------------------------


@needs_root
def test_the_climb_stops_below_a_folder_of_another_user(base: Path, write: Write) -> None:
    write("theirs/.agents/skills/planted")
    (base / "theirs/.git").mkdir()
    folder = make_folder(base / "theirs/mine/src")
    os.chown(base / "theirs", ANOTHER_USER, ANOTHER_USER)
    workspace = find_workspace(folder)
    assert workspace.folders == (str(folder),)
    assert workspace.notes == (f"{base}/theirs and the folders above it do not count: it belongs to another user.",)


@needs_root
def test_the_climb_does_not_leave_a_folder_of_another_user(base: Path, write: Write) -> None:
    write("mine/.agents/skills/team")
    (base / "mine/.git").mkdir()
    theirs = make_folder(base / "mine/theirs")
    os.chown(theirs, ANOTHER_USER, ANOTHER_USER)
    assert find_workspace(theirs).folders == (str(theirs),)
    inner = make_folder(theirs / "src")
    assert find_workspace(inner).folders == (str(inner),)


@needs_root
def test_what_another_user_planted_in_an_own_folder_does_not_count(base: Path, write: Write) -> None:
    """A folder may be the user's and yet open to others."""
    write("shared/.agents/skills/planted")
    (base / "shared/.git").mkdir()
    folder = make_folder(base / "shared/src")
    for planted in (".git", ".agents/skills"):
        os.chown(base / "shared" / planted, ANOTHER_USER, ANOTHER_USER)
    workspace = find_workspace(folder)
    assert workspace.folders == (str(folder),)
    assert f"{base}/shared does not count as a repository: its .git belongs to another user." in workspace.notes


def test_a_folder_that_all_users_share_is_never_a_project(base: Path, write: Write) -> None:
    """Anyone can create `.git` in /tmp, even if that belongs to the user who runs skillshelf."""
    write("tmp/.agents/skills/planted")
    (base / "tmp/.git").mkdir()
    folder = make_folder(base / "tmp/build/src")
    (base / "tmp").chmod(0o1777)
    workspace = find_workspace(folder)
    assert workspace.folders == (str(folder),)
    assert workspace.notes == (
        f"{base}/tmp and the folders above it do not count: all users of this machine share it.",
    )


# -- faults -----------------------------------------------------------------------------------------------------------


def test_a_deleted_current_folder_is_a_typed_error(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = make_folder(base / "gone")
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(SourceError, match="no longer exists"):
        find_workspace()
    with pytest.raises(SourceError, match="no longer exists"):
        Shelf.open()


def test_a_start_that_is_not_a_folder_is_a_typed_error(base: Path) -> None:
    (base / "file").touch()
    for start in ("file", "missing"):
        with pytest.raises(SourceError, match="There is no folder"):
            find_workspace(base / start)


def test_a_parent_that_vanishes_ends_the_climb(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (base / "a/.git").mkdir(parents=True)
    folder = make_folder(base / "a/b/c")
    real_stat = os.stat

    def stat(path: str, **options: bool) -> os.stat_result:
        if path == f"{base}/a/b":
            shutil.rmtree(base / "a", ignore_errors=True)
        return real_stat(path, **options)

    monkeypatch.setattr("skillshelf.files.system.stat", stat)
    workspace = find_workspace(folder)
    assert workspace.folders == (str(folder),)
    assert "cannot be examined (No such file or directory)" in workspace.notes[0]


# -- the shelf --------------------------------------------------------------------------------------------------------


def test_a_shelf_without_a_root_has_the_whole_repository(
    base: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    (base / "proj/.git").mkdir(parents=True)
    write("proj/.agents/skills/deploy")
    write("proj/src/pkg/skills/local")
    monkeypatch.chdir(base / "proj/src/pkg")
    assert {"deploy", "local"} <= set(Shelf.open().catalog)
    assert "deploy" not in Shelf.open(".").catalog
    assert "deploy" in Shelf.open(find_workspace(base / "proj/src")).catalog


def test_the_nearest_of_two_skills_with_one_name_wins(base: Path, write: Write) -> None:
    (base / "proj/.git").mkdir(parents=True)
    write("proj/.agents/skills/deploy", "Of the root.")
    write("proj/apps/web/.agents/skills/deploy", "Of web.")
    write("proj/apps/api/skills/deploy", "Of api.")
    (base / "proj/apps/web/src").mkdir()
    (base / "proj/docs").mkdir()

    def seen_from(folder: str) -> str:
        return Shelf.open(find_workspace(base / "proj" / folder)).catalog["deploy"].description

    assert seen_from(".") == seen_from("docs") == "Of the root."
    assert seen_from("apps/web") == seen_from("apps/web/src") == "Of web."
    assert seen_from("apps/api") == "Of api."


def test_parents_come_after_the_folder_and_before_the_users_own(
    base: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(base / "home"))
    write("home/.agents/skills/deploy", "Mine.")
    write("a/.agents/skills/deploy", "Far.")
    write("a/b/.claude/skills/deploy", "Near.")
    folder = write("a/b/c/skills/deploy", "Here.").parents[2]
    shelf = Shelf.open(find_workspace(folder))
    order = [candidate.descriptor.description for candidate in shelf.catalog.candidates("deploy")]
    assert order == ["Here.", "Near.", "Far.", "Mine."]
    assert [candidate.descriptor.source for candidate in shelf.catalog.candidates("deploy")] == [
        "project",
        "parent",
        "parent",
        "user",
    ]


def test_a_nearer_folder_cannot_take_a_name_that_it_does_not_carry(base: Path, write: Write) -> None:
    """The rule of the folder's name comes first, wherever the user is."""
    write("skills/good")
    evil = write("src/skills/evil", "Evil.")
    evil.write_text(evil.read_text().replace("name: evil", "name: good"))
    shelf = Shelf([DirectorySource(base)], here=base / "src")
    assert shelf.catalog["good"].description == "Does it."


NAMES = st.sampled_from("abc")
PATHS = st.lists(NAMES, max_size=4).map("/".join)


def count_folders_above_both(path: str, other: str) -> int:
    """Return how many folders below the root hold both paths, or are one of them."""
    folder = PurePosixPath(other)
    return sum(PurePosixPath(path).is_relative_to(above) for above in [folder, *folder.parents] if above.name)


@given(st.permutations(["", "a", "a/b", "b/a", "a/b/c", "c/c/c", "a/b/b/a", "b"]), st.integers(2, 8), PATHS)
def test_the_nearest_comes_first_then_the_shallowest_then_the_path(order: list[str], count: int, here: str) -> None:
    """This holds for every folder the user may be in, and in whatever order the skills were found."""
    keys = [f"{parent}/x".lstrip("/") for parent in order[:count]]
    catalog = Catalog(here=[here])
    for key in keys:
        skill = SkillDescriptor("x", f"At {key}.", location=f"/top/{key}/SKILL.md")
        catalog, _ = catalog.apply({Place(0, key): Found(skill)})

    expected = sorted(keys, key=lambda key: (-count_folders_above_both(key, here), key.count("/"), key))
    assert [candidate.place.key for candidate in catalog.candidates("x")] == expected
