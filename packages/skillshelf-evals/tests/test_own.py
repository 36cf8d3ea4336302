"""Our own skills have evals: they pass as they are, and a broken copy of a skill fails them and says by which check."""

import json
import re
import shutil
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import pytest

from docs_examples import WORKSPACE
from repository import REPO
from skillshelf.skill_authoring.skill import SkillAuthoringSkill

Run = Callable[..., tuple[int, str, str]]
Break = Callable[[Path], None]
SKILLS = ("skill-authoring", "sql-review", "pdf-forms")


@pytest.fixture
def copied(tmp_path: Path) -> Callable[[str], Path]:
    """A copy of one of our skills, with its evals."""

    def copy(name: str) -> Path:
        folder = tmp_path / "skills" / name
        if name == SkillAuthoringSkill.name:
            _write_bundled(folder)
        else:
            shutil.copytree(WORKSPACE / ".claude" / "skills" / name, folder)
        return folder

    return copy


def _write_bundled(folder: Path) -> None:
    """The class as the folder that it would be."""
    skill = SkillAuthoringSkill
    for reference in skill.references:
        target = folder / reference
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(resources.files("skillshelf.skill_authoring").joinpath(reference).read_bytes())
    (folder / "evals").mkdir()
    shutil.copy(REPO / "packages/skillshelf-evals/tests/own" / f"{skill.name}.yaml", folder / "evals" / "cases.yaml")
    head = f"---\nname: {skill.name}\ndescription: {skill.description}\n---\n"
    (folder / "SKILL.md").write_text(head + skill.instructions)


@pytest.mark.parametrize("name", SKILLS)
def test_our_own_skills_pass(run: Run, copied: Callable[[str], Path], name: str) -> None:
    folder = copied(name)
    code, out, said = run("eval", str(folder), "--json")
    assert (code, said) == (0, "")
    assert {trial["status"] for trial in json.loads(out)["trials"]} == {"passed"}


def test_every_reference_of_our_own_skills_is_loaded_by_a_case(run: Run, copied: Callable[[str], Path]) -> None:
    for name in SKILLS:
        copied(name)
    code, out, _ = run("eval", "skills")
    assert code == 0
    assert re.findall(r"^(\S+) +(\d)/(\d) .*$", out.partition("Coverage")[2], re.M) == [
        ("pdf-forms", "3", "3"),
        ("skill-authoring", "2", "2"),
        ("sql-review", "2", "2"),
    ]


def test_the_evals_of_the_example_workspace_are_found_and_are_no_references(run: Run, tmp_path: Path) -> None:
    shutil.copytree(WORKSPACE, tmp_path, dirs_exist_ok=True)
    code, out, _ = run("eval", "list", "--json")
    assert code == 0
    assert {case["skill"] for case in json.loads(out)["cases"]} == {"sql-review", "pdf-forms"}
    assert "evals" not in run("show", "sql-review")[1]


def reference_removed(folder: Path) -> None:
    next(iter(sorted((folder / "references").iterdir()))).unlink()


def references_removed(folder: Path) -> None:
    (folder / "references").rename(folder.parent / "more")


def file_broken(folder: Path) -> None:
    (folder / "SKILL.md").write_bytes(b"")


def name_changed(folder: Path) -> None:
    path = folder / "SKILL.md"
    path.write_text(path.read_text().replace(f"name: {folder.name}", "name: something-else"))


@pytest.mark.parametrize("name", SKILLS)
@pytest.mark.parametrize(
    ("broken", "checks"),
    [
        (reference_removed, {"reference_loaded", "not reference_denied"}),
        (references_removed, {"reference_loaded"}),
        (file_broken, {"listing_contains", "skill_loaded"}),
        (name_changed, {"listing_contains", "skill_loaded"}),
    ],
)
def test_a_broken_copy_fails_and_the_reason_names_the_check(
    run: Run, copied: Callable[[str], Path], name: str, broken: Break, checks: set[str]
) -> None:
    folder = copied(name)
    broken(folder)
    code, out, _ = run("eval", str(folder), "--json")
    assert code == 1
    failed = [one for trial in json.loads(out)["trials"] for one in trial["checks"] if not one["passed"]]
    assert all(any(one["name"].startswith(check) for one in failed) for check in checks)
    assert all(one["reason"] or one["problem"] for one in failed)
    code, out, _ = run("eval", str(folder))
    assert code == 1
    assert any(check in out for check in checks)


@pytest.mark.parametrize("name", SKILLS)
def test_cases_whose_skill_is_gone_are_not_run(run: Run, copied: Callable[[str], Path], name: str) -> None:
    """A renamed SKILL.md leaves cases without a skill, which is neither a pass nor a miss."""
    folder = copied(name)
    (folder / "SKILL.md").rename(folder / "INSTRUCTIONS.md")
    code, out, said = run("eval", str(folder))
    assert code == 2
    assert "cases.yaml" in out
    assert "nothing was run" in said


def test_a_case_notices_an_edit_without_effect(run: Run, copied: Callable[[str], Path]) -> None:
    """The evals of a skill do not pass whatever happens: without the write, nothing is reloaded."""
    folder = copied("sql-review")
    path = folder / "evals" / "cases.yaml"
    path.write_text(re.sub(r"      - write:\n.*\n", "", path.read_text()))
    code, out, _ = run("eval", str(folder), "-k", "edit")
    assert code == 1
    assert "skill_reloaded" in out
