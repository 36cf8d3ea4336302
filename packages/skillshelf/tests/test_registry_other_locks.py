"""The locks of other tools: vercel's is kept up to date, and `tree` names where all of them got a skill from."""

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from git_server import commit_files, make_repository

Run = Callable[..., tuple[int, str, str]]
SKILL = "---\nname: pdf\ndescription: Does it.\n---\n\nDo it.\n"
# As `localeCompare` of Node 20 sorts them.
FILES = {
    "assets/t.md": "1",
    "LICENSE.txt": "2",
    "README.md": "3",
    "references/a.md": "4",
    "scripts/x.py": "5",
    "SKILL.md": SKILL,
}


@pytest.fixture
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("srv") / "skills"
    make_repository(folder, {f"pdf/{path}": text for path, text in FILES.items()})
    return f"file://{folder}"


def compute(files: Mapping[str, str]) -> str:
    return hashlib.sha256("".join(f"{path}{text}" for path, text in files.items()).encode()).hexdigest()


def test_vercels_lock_is_kept_up_to_date_if_there_is_one(run: Run, url: str, tmp_path: Path) -> None:
    """Sorted, without times, with fields that we do not know; and no such file is made."""
    run("add", url, "--yes")
    lock = tmp_path / "skills-lock.json"
    assert not lock.exists()
    run("remove", "pdf")
    row = {"source": "x/y", "sourceType": "github", "computedHash": "0", "later": 1}
    lock.write_text(json.dumps({"version": 1, "skills": {"zip": row, "pdf": row}, "later": 2}))
    run("add", url, "--yes", "--ref", "main")
    expected = {"source": url, "sourceType": "git", "computedHash": compute(FILES), "ref": "main"}
    assert json.loads(lock.read_text()) == {"version": 1, "skills": {"pdf": expected, "zip": row}, "later": 2}
    assert lock.read_text().startswith('{\n  "version": 1,\n  "skills": {\n    "pdf": {\n')
    assert lock.read_text().endswith("}\n")

    commit_files(Path(url.removeprefix("file://")), {"pdf/README.md": "newer"})
    run("update", "--yes")
    changed = compute({**FILES, "README.md": "newer"})
    assert json.loads(lock.read_text())["skills"]["pdf"]["computedHash"] == changed
    run("remove", "pdf")
    assert list(json.loads(lock.read_text())["skills"]) == ["zip"]


@pytest.mark.parametrize("text", ["<<<<<<< HEAD\n", '{"version": 9, "skills": {}}', '{"version": 1}', "[]"])
def test_a_lock_that_is_not_understood_stays_as_it_is(text: str, run: Run, url: str, tmp_path: Path) -> None:
    (tmp_path / "skills-lock.json").write_text(text)
    assert run("add", url, "--yes")[0] == 0
    assert (tmp_path / "skills-lock.json").read_text() == text


def test_the_hash_of_names_beyond_ascii_is_left_alone(run: Run, tmp_path: Path) -> None:
    """Their order needs ICU, so it cannot be computed or checked."""
    folder = tmp_path / "vendor/pdf"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(SKILL)
    (folder / "größe.md").write_text("")
    row = {"source": "x/y", "sourceType": "github", "computedHash": "0"}
    text = json.dumps({"version": 1, "skills": {"pdf": row}}, indent=2) + "\n"
    (tmp_path / "skills-lock.json").write_text(text)
    assert run("add", "./vendor", "--yes")[0] == 0
    assert (tmp_path / "skills-lock.json").read_text() == text
    (tmp_path / "skills.lock").unlink()
    assert "cannot be checked" in run("tree")[1]


def test_tree_names_what_other_tools_installed(run: Run, tmp_path: Path) -> None:
    skills = tmp_path / ".agents/skills"
    for name in ("by-vercel", "by-gh", "by-apm", "own"):
        (skills / name).mkdir(parents=True)
        (skills / name / "SKILL.md").write_text(SKILL.replace("pdf", name))
    text = SKILL.replace("pdf", "by-vercel")
    row = {"source": "a/b", "sourceType": "github", "computedHash": compute({"SKILL.md": text}), "ref": "v1"}
    (tmp_path / "skills-lock.json").write_text(json.dumps({"version": 1, "skills": {"by-vercel": row}}))
    fields = "metadata:\n  github-repo: https://github.com/c/d\n  github-path: x\n  github-ref: v2\n---\n\n"
    (skills / "by-gh/SKILL.md").write_text(SKILL.replace("pdf", "by-gh").replace("---\n\n", fields))
    (tmp_path / "apm.lock.yaml").write_text(
        "lockfile_version: '1'\ndependencies:\n- repo_url: e/f\n  resolved_commit: 0123456789abcdef\n"
        "  deployed_files: [.agents/skills/by-apm]\n"
    )
    code, output, _ = run("tree")
    assert code == 0
    assert [line.split() for line in output.splitlines()[1:4]] == [
        ["by-apm", "0123456789ab", "not", "pinned", "e/f", "(apm)"],
        ["by-gh", "v2", "not", "pinned", "https://github.com/c/d/x", "(gh", "skill)"],
        ["by-vercel", "v1", "same", "a/b", "(skills)"],
    ]
    others = json.loads(run("tree", "--json")[1])["others"]
    assert [other["tool"] for other in others] == ["apm", "gh skill", "skills"]
    assert run("verify")[0] == 2, "there is still no lock of ours"


def test_tree_names_the_users_skills_of_other_tools(run: Run) -> None:
    home = Path(os.environ["HOME"], ".agents")
    (home / "skills/pdf").mkdir(parents=True)
    (home / "skills/pdf/SKILL.md").write_text(SKILL)
    row = {"source": "a/b", "skillFolderHash": "1", "pinnedRef": "v3"}
    (home / ".skill-lock.json").write_text(json.dumps({"version": 3, "skills": {"pdf": row}}))
    assert run("tree", "--user")[1].splitlines()[1].split() == ["pdf", "v3", "not", "pinned", "a/b", "(skills)"]
