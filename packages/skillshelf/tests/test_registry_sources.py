"""Where skills can be taken from: folders, archives, and Git repositories on a real server."""

import io
import os
import shutil
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from git_server import GitServer, commit_files, git, make_repository, serving
from skillshelf.errors import RegistryError
from skillshelf.registry import (
    Origin,
    Pin,
    SkillContent,
    choose_offered,
    find_offered,
    open_source,
    parse_source,
    read_content,
)
from skillshelf.trust import take_snapshot

SKILL = "---\nname: {}\ndescription: Does it.\n---\n\nDo it.\n"
NO_PIN = Pin()
FILES = {
    "README.md": "Not a skill.\n",
    "LICENSE": "Free.\n",
    "skills/pdf/SKILL.md": SKILL.format("pdf"),
    "skills/pdf/scripts/fill.py": "print()\n",
    "skills/sql/SKILL.md": SKILL.format("sql"),
    "skills/sql/examples/SKILL.md": SKILL.format("part-of-sql"),
    "node_modules/x/SKILL.md": SKILL.format("dependency"),
}


def fetch(origin: Origin, place: Path, *names: str, pin: Pin = NO_PIN) -> dict[str, SkillContent]:
    with open_source(origin, pin, str(place), anywhere=True) as package:
        offered = find_offered(package, origin)
        chosen = choose_offered(offered, names) if names else offered
        return {skill.name: read_content(package, skill.name, skill.path) for skill in chosen}


def parse(text: str, place: Path, asked: str = "") -> Origin:
    return parse_source(text, asked, str(place), anywhere=True)


def write_files(folder: Path, files: Mapping[str, str]) -> Path:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


# -- what a SOURCE means -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("acme/skills", Origin("git", "acme/skills")),
        ("acme/skills@v1.2", Origin("git", "acme/skills", "", "v1.2")),
        ("acme/skills/tools/pdf@feature/x", Origin("git", "acme/skills", "tools/pdf", "feature/x")),
        ("https://host/a/b.git", Origin("git", "https://host/a/b.git")),
        ("https://host/a/b.git/tools/pdf@v1", Origin("git", "https://host/a/b.git", "tools/pdf", "v1")),
        ("https://github.com/a/b", Origin("git", "https://github.com/a/b")),
        ("github.com/a/b/", Origin("git", "https://github.com/a/b")),
        ("acme/skills/", Origin("git", "acme/skills")),
        ("https://github.com/a/b/tree/main", Origin("git", "a/b", "", "main")),
        ("https://github.com/a/b/tree/main/tools/pdf", Origin("git", "a/b", "tools/pdf", "main")),
        ("https://github.com/a/b/blob/main/tools/pdf/SKILL.md", Origin("git", "a/b", "tools/pdf", "main")),
        ("https://github.com/a/b/blob/main/SKILL.md", Origin("git", "a/b", "", "main")),
        ("git+https://host/a/b@v1", Origin("git", "https://host/a/b", "", "v1")),
        ("git@host:a/b.git@v1", Origin("git", "git@host:a/b.git", "", "v1")),
        ("ssh://git@host/a/b.git", Origin("git", "ssh://git@host/a/b.git")),
        ("file:///srv/repository", Origin("git", "file:///srv/repository")),
    ],
)
def test_a_source_is_read_as_it_is_written_elsewhere(text: str, origin: Origin, tmp_path: Path) -> None:
    assert parse(text, tmp_path) == origin


@pytest.mark.parametrize(
    ("text", "asked", "reason"),
    [
        ("ftp://example.com/skills", "", "is not a source"),
        ("nonsense", "", "is not a source"),
        ("ext::sh -c touch% x", "", "is not a source"),
        ("./nowhere", "", r"There is no folder '\./nowhere'"),
        ("nowhere.zip", "", "no archive"),
        ("acme/skills@v1", "v2", "Give one of them"),
        ("acme/skills", "--upload-pack=x", "cannot be a branch"),
        ("acme/skills/../../x", "", "leads out"),
        ("https://ada:secret@host/a.git", "", "Don't put a password"),
        ("https://token@github.com/a/b", "", "Don't put a password"),
        ("https://ada:secret@host/a", "", "Don't put a password"),
        ("https://[host/a.git", "", "is not a URL"),
        ("file:///srv/\0", "", "characters that no source can have"),
        ("file:///srv/caf\udce9", "", "characters that no source can have"),
    ],
)
def test_anything_else_is_refused_with_the_reason(text: str, asked: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(RegistryError, match=reason) as caught:
        parse(text, tmp_path, asked)
    assert "secret" not in str(caught.value)


def test_a_folder_that_reads_like_a_repository_is_not_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path / "vendor/skills", FILES)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RegistryError, match=r"Give \./vendor/skills or https://github\.com/vendor/skills\."):
        parse("vendor/skills", tmp_path)
    assert parse("./vendor/skills", tmp_path) == Origin("folder", "vendor/skills")


def test_only_the_user_takes_skills_from_outside_the_workspace(tmp_path: Path) -> None:
    """Nobody else has that folder, and a lock that names one does not get it read."""
    write_files(tmp_path / "outside", FILES)
    (tmp_path / "work").mkdir()
    with pytest.raises(RegistryError, match="outside the workspace"):
        parse_source(str(tmp_path / "outside"), "", str(tmp_path / "work"), anywhere=False)
    with pytest.raises(RegistryError, match="outside the workspace"):
        open_source(Origin("folder", "/etc"), Pin(), str(tmp_path / "work"), anywhere=False)


# -- folders -----------------------------------------------------------------------------------------------------------


def test_a_folder_offers_its_skills(tmp_path: Path) -> None:
    """Everything below a skill belongs to it; what is installed has the hash that trust computes for it."""
    folder = write_files(tmp_path / "vendor", FILES)
    (folder / "skills/pdf/scripts/fill.py").chmod(0o755)
    origin = parse(str(folder), tmp_path)
    assert origin == Origin("folder", "vendor")
    contents = fetch(origin, tmp_path)
    assert {name: list(content.files) for name, content in contents.items()} == {
        "pdf": ["SKILL.md", "scripts/fill.py"],
        "sql": ["SKILL.md", "examples/SKILL.md"],
    }
    for name, content in contents.items():
        assert content.snapshot == take_snapshot(str(folder), f"skills/{name}").snapshot
        assert content.snapshot.tree


def test_a_folder_can_itself_be_the_skill(tmp_path: Path) -> None:
    """Skills in its dot-folders are others."""
    files = {"SKILL.md": SKILL.format("whole"), "a.md": "A.\n", ".claude/skills/x/SKILL.md": SKILL.format("x")}
    folder = write_files(tmp_path / "whole", files)
    contents = fetch(parse(str(folder), tmp_path), tmp_path)
    assert {name: list(content.files) for name, content in contents.items()} == {
        "whole": ["SKILL.md", "a.md"],
        "x": ["SKILL.md"],
    }


def test_links_become_copies_if_they_stay_inside(tmp_path: Path) -> None:
    folder = write_files(tmp_path / "vendor", FILES)
    (folder / "skills/pdf/LICENSE").symlink_to("../../LICENSE")
    (folder / "skills/sql/passwd").symlink_to("/etc/passwd")
    origin = parse(str(folder), tmp_path)
    content = fetch(origin, tmp_path, "pdf")["pdf"]
    assert content.files["LICENSE"] == b"Free.\n"
    with pytest.raises(RegistryError, match=r"passwd.*leads to no file"):
        fetch(origin, tmp_path, "sql")


def test_a_broken_skill_does_not_hide_the_others(tmp_path: Path) -> None:
    """It is listed with the reason, and only it cannot be installed."""
    folder = write_files(tmp_path / "vendor", {**FILES, "skills/huge/SKILL.md": "x" * (2 << 20)})
    (folder / "skills/linked").mkdir()
    (folder / "skills/linked/SKILL.md").symlink_to("/etc/passwd")
    origin = parse(str(folder), tmp_path)
    with open_source(origin, NO_PIN, str(tmp_path), anywhere=True) as package:
        problems = {skill.name: skill.problem for skill in find_offered(package, origin)}
    assert {name for name, problem in problems.items() if problem} == {"huge", "linked"}
    assert fetch(origin, tmp_path, "pdf")
    with pytest.raises(RegistryError, match=r"'linked' cannot be installed: .* of the same source\.$"):
        fetch(origin, tmp_path, "linked")


def test_names_and_paths_choose_among_skills(tmp_path: Path) -> None:
    """Copies count as one; different skills of one name need a path."""
    files = {f"{agent}/same/SKILL.md": SKILL.format("same") for agent in ("a", "b")}
    files |= {f"{agent}/odd/SKILL.md": SKILL.format("odd") + agent for agent in ("a", "b")}
    files["c/bad/SKILL.md"] = SKILL.format("büro")
    files["c/caf\udce9/SKILL.md"] = SKILL.format("cafe")
    files["c/hiding/SKILL.md"] = SKILL.format("Skill.MD")
    origin = parse(str(write_files(tmp_path / "vendor", files)), tmp_path)
    assert fetch(origin, tmp_path, "same").keys() == {"same"}
    assert fetch(origin, tmp_path, "b/odd")["odd"].files["SKILL.md"].endswith(b"b")
    with pytest.raises(RegistryError, match=r"Give the path of one: a/odd"):
        fetch(origin, tmp_path, "odd")
    with pytest.raises(RegistryError, match="There is no skill 'none'"):
        fetch(origin, tmp_path, "none")
    for path in ("c/bad", "c/hiding"):
        with pytest.raises(RegistryError, match="cannot be the name of a folder"):
            fetch(origin, tmp_path, path)
    with pytest.raises(RegistryError, match=r"'c/caf\\udce9' cannot be a path in skills\.lock\.$"):
        fetch(origin, tmp_path, "cafe")


# -- archives ----------------------------------------------------------------------------------------------------------


def write_zip(path: Path, members: Mapping[str, str]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = 0o755 << 16 if name.endswith(".py") else 0o644 << 16
            archive.writestr(info, text)
    return path


def write_tar(path: Path, members: Mapping[str, str]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, text in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            info.mode = 0o755 if name.endswith(".py") else 0o644
            archive.addfile(info, io.BytesIO(text.encode()))
    return path


@pytest.mark.parametrize("write", [write_zip, write_tar])
def test_an_archive_offers_its_skills(write: Callable[[Path, Mapping[str, str]], Path], tmp_path: Path) -> None:
    """Its hash is pinned, and another archive in its place is refused."""
    path = write(tmp_path / ("a.zip" if write is write_zip else "a.tar.gz"), FILES)
    origin = parse(str(path), tmp_path)
    assert origin.kind == "archive"
    content = fetch(origin, tmp_path)["pdf"]
    assert content.snapshot.entry("scripts/fill.py").executable  # type: ignore[union-attr]
    with open_source(origin, Pin(), str(tmp_path), anywhere=True) as package:
        pin = package.pin
    assert fetch(origin, tmp_path, pin=pin).keys() == {"pdf", "sql"}
    write(path, {**FILES, "more": "x"})
    with pytest.raises(RegistryError, match="not the archive that the lock pins"):
        fetch(origin, tmp_path, pin=pin)


@pytest.mark.parametrize("write", [write_zip, write_tar])
@pytest.mark.parametrize("name", ["../evil", "a/../../evil", "/evil"])
def test_an_archive_whose_paths_leave_it_is_refused(
    write: Callable[[Path, Mapping[str, str]], Path], name: str, tmp_path: Path
) -> None:
    """Z01, Z02."""
    path = write(tmp_path / ("a.zip" if write is write_zip else "a.tgz"), {**FILES, name: "x"})
    with pytest.raises(RegistryError, match="leads out of it"):
        fetch(parse(str(path), tmp_path), tmp_path)


@pytest.mark.parametrize("name", ["skills/pdf/a\\b", "skills/pdf/a\x1bb", "skills/pdf/.GIT/config"])
def test_a_skill_with_a_strange_path_is_refused_and_others_are_not(name: str, tmp_path: Path) -> None:
    """Z06."""
    origin = parse(str(write_tar(tmp_path / "a.tar.gz", {**FILES, name: "x"})), tmp_path)
    with pytest.raises(RegistryError, match="cannot be the path of a file"):
        fetch(origin, tmp_path, "pdf")
    assert fetch(origin, tmp_path, "sql")


def test_archives_with_links_devices_and_duplicates(tmp_path: Path) -> None:
    """Z03, Z05, Z09: links inside become copies, and the rest is refused."""
    with zipfile.ZipFile(tmp_path / "link.zip", "w") as archive:
        for path, text in FILES.items():
            archive.writestr(path, text)
        for name, target in (("skills/pdf/LICENSE", "../../LICENSE"), ("skills/sql/evil", "../../../../etc/passwd")):
            link = zipfile.ZipInfo(name)
            link.external_attr = (stat.S_IFLNK | 0o777) << 16
            archive.writestr(link, target)
    origin = parse(str(tmp_path / "link.zip"), tmp_path)
    assert fetch(origin, tmp_path, "pdf")["pdf"].files["LICENSE"] == b"Free.\n"
    with pytest.raises(RegistryError, match="leads to no file"):
        fetch(origin, tmp_path, "sql")

    for kind in (tarfile.LNKTYPE, tarfile.CHRTYPE):
        with tarfile.open(tmp_path / "device.tgz", "w:gz") as tar:
            info = tarfile.TarInfo("skills/pdf/evil")
            info.type = kind
            info.linkname = "x"
            tar.addfile(info)
        with pytest.raises(RegistryError, match="hard link or a device"):
            fetch(parse(str(tmp_path / "device.tgz"), tmp_path), tmp_path)

    with zipfile.ZipFile(tmp_path / "twice.zip", "w") as archive:
        archive.writestr("a/SKILL.md", SKILL.format("a"))
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("a/SKILL.md", SKILL.format("b"))
    with pytest.raises(RegistryError, match="twice"):
        fetch(parse(str(tmp_path / "twice.zip"), tmp_path), tmp_path)


def test_bombs_and_damaged_archives_are_refused(tmp_path: Path) -> None:
    """Z04: neither takes much memory."""
    write_zip(tmp_path / "bomb.zip", {**FILES, "skills/pdf/zeros": "\0" * (60 << 20)})
    write_tar(tmp_path / "bomb.tgz", {**FILES, "zeros": "\0" * (257 << 20)})
    with pytest.raises(RegistryError, match="zeros' has more than 50 MiB"):
        fetch(parse(str(tmp_path / "bomb.zip"), tmp_path), tmp_path)
    with pytest.raises(RegistryError, match="more than 256 MiB"):
        fetch(parse(str(tmp_path / "bomb.tgz"), tmp_path), tmp_path)

    whole = write_zip(tmp_path / "cut.zip", FILES).read_bytes()
    (tmp_path / "cut.zip").write_bytes(whole[: len(whole) // 2])
    whole = write_tar(tmp_path / "cut.tgz", FILES).read_bytes()
    (tmp_path / "cut.tgz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "text.zip").write_text("not an archive")
    for name in ("cut.zip", "cut.tgz", "text.zip"):
        with pytest.raises(RegistryError, match=f"{name} cannot be unpacked"):
            fetch(parse(str(tmp_path / name), tmp_path), tmp_path)


# -- git ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GitServer]:
    make_repository(tmp_path / "srv/acme/skills.git", FILES)
    with serving(tmp_path / "srv") as server:
        yield server


def test_a_repository_offers_its_skills(server: GitServer, tmp_path: Path) -> None:
    """The commit is pinned, and fetched from the server once."""
    repository = server.folder / "acme/skills.git"
    commit = git(repository, "rev-parse", "HEAD")
    origin = parse(f"{server.url}/acme/skills.git", tmp_path)
    with open_source(origin, Pin(), str(tmp_path), anywhere=False) as package:
        assert package.pin == Pin(commit=commit)
    content = fetch(origin, tmp_path)["pdf"]
    assert content.files == {"SKILL.md": SKILL.format("pdf").encode(), "scripts/fill.py": b"print()\n"}

    server.requests.clear()
    assert fetch(origin, tmp_path, pin=Pin(commit=commit)).keys() == {"pdf", "sql"}
    assert server.requests == []


def test_owner_and_repository_are_enough_for_github(
    server: GitServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user's own configuration counts, here one that leads to a mirror."""
    (Path(os.environ["HOME"]) / ".gitconfig").write_text(f'[url "{server.url}/"]\ninsteadOf = https://github.com/\n')
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    for text in ("acme/skills/skills/pdf", "acme/skills.git/skills/pdf"):
        assert fetch(parse(text, tmp_path), tmp_path).keys() == {"pdf"}


def test_branches_tags_and_commits_can_be_asked_for(server: GitServer, tmp_path: Path) -> None:
    repository = server.folder / "acme/skills.git"
    first = git(repository, "rev-parse", "HEAD")
    git(repository, "tag", "--annotate", "--message=One", "v1")
    git(repository, "checkout", "--quiet", "-b", "feature/x")
    second = commit_files(repository, {"skills/pdf/SKILL.md": SKILL.format("pdf") + "More.\n"})
    url = f"{server.url}/acme/skills.git"
    for asked, commit in (("v1", first), ("main", first), ("feature/x", second), (second, second), ("", second)):
        with open_source(parse(url, tmp_path, asked), Pin(), str(tmp_path), anywhere=False) as package:
            assert package.pin.commit == commit, asked
    with pytest.raises(RegistryError, match=r"no branch or tag 'v2'\.$"):
        fetch(parse(url, tmp_path, "v2"), tmp_path)
    with pytest.raises(RegistryError, match="Give a commit with all its digits"):
        fetch(parse(url, tmp_path, first[:7]), tmp_path)
    git(repository, "tag", "main")
    git(repository, "branch", "--force", "main", first)
    with pytest.raises(RegistryError, match=r"a branch and a tag 'main'\. Give refs/heads/main or refs/tags/main"):
        fetch(parse(url, tmp_path, "main"), tmp_path)
    assert fetch(parse(url, tmp_path, "refs/heads/main"), tmp_path)


def test_a_pinned_commit_is_fetched_after_its_branch_moved(server: GitServer, tmp_path: Path) -> None:
    """G11: a new machine gets what the lock pins, while the server has it; otherwise it is told so."""
    repository = server.folder / "acme/skills.git"
    first = git(repository, "rev-parse", "HEAD")
    git(repository, "commit", "--quiet", "--amend", "--message=Other")
    origin = parse(f"{server.url}/acme/skills.git", tmp_path, "main")
    assert fetch(origin, tmp_path, pin=Pin(commit=first))
    with pytest.raises(RegistryError, match=r"cannot be fetched|no longer has"):
        fetch(origin, tmp_path, pin=Pin(commit="1" * 40))


def test_processes_that_fetch_at_once_share_the_cache(server: GitServer, tmp_path: Path) -> None:
    """None fails, whoever makes it."""
    origin = parse(f"{server.url}/acme/skills.git", tmp_path)
    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(lambda _: fetch(origin, tmp_path).keys(), range(32)))
    assert results == [{"pdf", "sql"}] * 32


def test_a_fetch_that_was_killed_does_not_stand_in_the_way(server: GitServer, tmp_path: Path) -> None:
    """What Git leaves when it is killed: locks, part of a pack, and a commit without all its files."""
    repository = server.folder / "acme/skills.git"
    origin = parse(f"{server.url}/acme/skills.git", tmp_path)
    fetch(origin, tmp_path)
    [cache] = (path for path in (Path(os.environ["HOME"]) / ".cache/skillshelf/git").iterdir() if path.is_dir())
    assert len(list(cache.glob("objects/pack/*.pack"))) == 1, "whole or not there, and within the limit of one file"
    commit = commit_files(repository, {"skills/new/SKILL.md": SKILL.format("new")})
    for name in (commit, git(repository, "rev-parse", "HEAD^{tree}")):
        (cache / "objects" / name[:2]).mkdir(exist_ok=True)
        shutil.copy(repository / ".git/objects" / name[:2] / name[2:], cache / "objects" / name[:2])
    leftovers = [cache / name for name in ("shallow.lock", "config.lock", f"refs/skillshelf/{commit}.lock")]
    leftovers.append(cache / "objects/pack/tmp_pack_x")
    for file in leftovers:
        file.parent.mkdir(exist_ok=True)
        file.touch()
    assert fetch(origin, tmp_path).keys() == {"pdf", "sql", "new"}
    assert not any(file.exists() for file in leftovers)


def test_nothing_of_a_repository_runs(server: GitServer, tmp_path: Path) -> None:
    """G05, G06: neither filters nor hooks, and links and submodules lead nowhere."""
    repository = server.folder / "acme/skills.git"
    evil = f"touch {tmp_path}/ran"
    commit_files(
        repository,
        {
            ".gitattributes": "* filter=lfs\n",
            ".lfsconfig": f'[filter "lfs"]\nsmudge = {evil}\n',
            ".gitmodules": '[submodule "x"]\npath = skills/sub\nurl = http://127.0.0.1:1/x.git\n',
            "skills/lfs/SKILL.md": SKILL.format("lfs"),
            "skills/lfs/big.bin": "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
        },
    )
    (repository / "skills/pdf/LICENSE").symlink_to("../../LICENSE")
    (repository / "skills/sql/evil").symlink_to("../../../../../etc/passwd")
    git(repository, "add", "--all")
    git(repository, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},skills/pdf/module")
    git(repository, "commit", "--quiet", "--message", "Links")
    (repository / ".git/hooks/post-upload-pack").write_text(f"#!/bin/sh\n{evil}\n")
    origin = parse(f"{server.url}/acme/skills.git", tmp_path)
    content = fetch(origin, tmp_path, "pdf")["pdf"]
    assert content.files["LICENSE"] == b"Free.\n"
    assert "module" not in content.files
    assert fetch(origin, tmp_path, "lfs")["lfs"].files["big.bin"].startswith(b"version https://git-lfs")
    with pytest.raises(RegistryError, match="leads to no file"):
        fetch(origin, tmp_path, "sql")
    assert not (tmp_path / "ran").exists()


def test_private_repositories_take_a_credential_helper_and_never_ask(tmp_path: Path) -> None:
    make_repository(tmp_path / "srv/private.git", FILES)
    with serving(tmp_path / "srv", password="secret") as server:
        origin = parse(f"{server.url}/private.git", tmp_path)
        with pytest.raises(RegistryError, match="no such repository, or it is private") as caught:
            fetch(origin, tmp_path)
        helper = "!f() { echo username=ada; echo password=secret; }; f"
        (Path(os.environ["HOME"]) / ".gitconfig").write_text(f'[credential]\nhelper = "{helper}"\n')
        assert fetch(origin, tmp_path).keys() == {"pdf", "sql"}
    assert "secret" not in str(caught.value)


def test_errors_of_git_are_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        RegistryError, match="cannot be fetched: '/nowhere/at/all' does not appear to be a git"
    ) as caught:
        fetch(parse("file:///nowhere/at/all", tmp_path), tmp_path)
    assert "\n" not in str(caught.value)
    # As in the user's configuration, and what it says is part of the reason.
    config = Path(os.environ["HOME"]) / ".gitconfig"
    config.write_text("[core]\nsshCommand = echo >&2 Permission denied; false\n")
    with pytest.raises(RegistryError, match=r"fetched: Permission denied.*; Could not read from remote repository"):
        fetch(parse("git@host:a/b.git", tmp_path), tmp_path)
    make_repository(tmp_path / "empty", {"README.md": "x"})
    with pytest.raises(RegistryError, match=r"There is no SKILL\.md in"):
        fetch(parse(f"file://{tmp_path}/empty", tmp_path), tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RegistryError, match="git is not installed"):
        fetch(parse("acme/skills", tmp_path), tmp_path)
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(RegistryError, match=r"cannot be kept in .*file.*: Not a directory\. Set XDG_CACHE_HOME"):
        fetch(parse("acme/skills", tmp_path), tmp_path)
