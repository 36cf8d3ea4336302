"""`[tool.skillshelf.skills]` in pyproject.toml: what `sync` installs."""

from collections.abc import Callable
from pathlib import Path

import pytest

from git_server import commit_files, git, make_repository
from skillshelf.trust import Trust

Run = Callable[..., tuple[int, str, str]]
SKILL = "---\nname: {}\ndescription: Does it.\n---\n\nDo it.\n"


@pytest.fixture
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("srv") / "skills"
    make_repository(folder, {f"tools/{name}/SKILL.md": SKILL.format(name) for name in ("pdf", "sql")})
    git(folder, "tag", "v1")
    return folder


def write_manifest(place: Path, *lines: str) -> None:
    (place / "pyproject.toml").write_text("[tool.skillshelf.skills]\n" + "".join(f"{line}\n" for line in lines))


def test_sync_installs_what_is_listed_and_not_pinned(run: Run, repository: Path, tmp_path: Path) -> None:
    """As any skill of a lock, it waits for review; once pinned, another sync changes nothing."""
    write_manifest(tmp_path, f'"file://{repository}@v1" = ["pdf"]')
    code, _, complaint = run("sync", "--frozen")
    assert code == 1
    assert "which skills.lock does not pin" in complaint
    assert not (tmp_path / "skills.lock").exists()
    code, output, complaint = run("sync")
    assert (code, output.split()[:2]) == (0, ["installed", "pdf"])
    assert "1 skill to review" in complaint
    assert Trust.open().approvals.trees == {}
    assert [path.name for path in (tmp_path / ".agents/skills").iterdir()] == ["pdf"]
    assert run("sync", "--frozen")[:2] == (0, "Everything is as skills.lock pins it.\n")


def test_a_star_means_all_and_another_version_replaces_the_first(run: Run, repository: Path, tmp_path: Path) -> None:
    write_manifest(tmp_path, f'"file://{repository}@v1" = "*"')
    assert run("sync")[0] == 0
    assert sorted(path.name for path in (tmp_path / ".agents/skills").iterdir()) == ["pdf", "sql"]
    commit_files(repository, {"tools/pdf/SKILL.md": SKILL.format("pdf") + "More.\n"})
    git(repository, "tag", "v2")
    assert run("sync", "--frozen")[0] == 0
    write_manifest(tmp_path, f'"file://{repository}@v2" = "*"')
    assert run("sync", "--frozen")[0] == 1
    assert run("sync")[0] == 0
    assert (tmp_path / ".agents/skills/pdf/SKILL.md").read_text().endswith("More.\n")
    assert 'asked = "v1"' not in (tmp_path / "skills.lock").read_text()


def test_a_folder_is_relative_to_the_manifest(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "vendor/pdf").mkdir(parents=True)
    (tmp_path / "vendor/pdf/SKILL.md").write_text(SKILL.format("pdf"))
    (tmp_path / "docs").mkdir()
    git(tmp_path, "init", "--quiet")
    write_manifest(tmp_path, '"./vendor" = ["pdf"]')
    monkeypatch.chdir(tmp_path / "docs")
    assert run("sync")[0] == 0
    assert (tmp_path / ".agents/skills/pdf/SKILL.md").exists()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('"acme/skills" = 1', "needs a list of names"),
        ('"acme/skills" = []', "needs a list of names"),
        ('"nonsense" = "*"', "pyproject.toml, [tool.skillshelf.skills]: 'nonsense' is not a source"),
        ('"/etc" = "*"', "outside the workspace"),
        ("<<<<<<<", "cannot be read"),
    ],
)
def test_a_bad_manifest_is_named(line: str, reason: str, run: Run, tmp_path: Path) -> None:
    write_manifest(tmp_path, line)
    code, _, complaint = run("sync")
    assert code == 1
    assert reason in complaint
    (tmp_path / "pyproject.toml").write_text('[tool.skillshelf]\nskills = ["acme/skills"]\n')
    assert "has lines such as" in run("sync")[2]


def test_a_project_that_lists_nothing_is_left_alone(run: Run, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "skillshelf-user"\n')
    assert run("sync")[0] == 2


def test_a_manifest_that_would_take_all_memory_is_refused(run: Run, tmp_path: Path) -> None:
    """A clone can bring one: a key of 20,000 parts takes 1.6 GB to read."""
    write_manifest(tmp_path, f'"acme/skills" = ["{"." * 2000}"]')
    code, _, complaint = run("sync")
    assert (code, "a line has more than 500 dots" in complaint) == (1, True)
