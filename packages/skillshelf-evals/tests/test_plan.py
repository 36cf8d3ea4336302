"""What a run has to do: cases, arms and repeats, and where an old version of a skill comes from."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from skillshelf.errors import EvalError
from skillshelf_evals import Case, CaseInfo, Message, make_plan

Write = Callable[..., Path]


def case(name: str, *folders: Path, skill: str = "pdf", **more: object) -> Case:
    return Case(name, (Message(f"do {name}"),), skill=skill, skills=tuple(map(str, folders)), **more)  # type: ignore[arg-type]


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, "-C", str(folder), *words], check=True, capture_output=True)


def old_text(plan_case: Case) -> str:
    return (Path(plan_case.skills[-1]) / "SKILL.md").read_text()


def test_a_plan_is_cases_by_arms_by_repeats(write: Write) -> None:
    """The ids of its trials stay the same when it is made again."""
    folder = write("pdf").parent
    cases = [case("a", folder), case("b", folder, skill="")]
    plan = make_plan(cases, 2, "none")
    ids = ["pdf/a#with#1", "pdf/a#with#2", "pdf/a#without#1", "pdf/a#without#2", "b#with#1", "b#with#2"]
    assert [trial.id for trial in plan.trials] == ids
    assert make_plan(cases, 2, "none") == plan
    assert plan.infos[0] == CaseInfo("pdf/a", "a", "pdf", None, "", "do a", turns_digest=cases[0].turns_digest)
    assert plan.skills == {"pdf": str(folder / "SKILL.md")}


def test_the_without_arm_leaves_out_the_skill_and_nothing_else(write: Write, tmp_path: Path) -> None:
    """It may be in a folder of skills, under the name in its file, or in the workspace."""
    write("all/xlsx")
    write("all/pdf")
    files = {".skillshelf/skills/pdf/SKILL.md": b"x", ".skillshelf/skills/pdf/references/a.md": b"y", "a.txt": b"z"}
    [_, without] = [trial.case for trial in make_plan([case("a", tmp_path / "all", files=files)], 1, "none").trials]
    assert without.skills == (str(tmp_path / "all" / "xlsx"),)
    assert dict(without.files) == {"a.txt": b"z"}


def test_a_skill_that_is_not_there_cannot_be_left_out(write: Write) -> None:
    """Both arms would be the same."""
    with pytest.raises(EvalError, match="nothing to leave out"):
        make_plan([case("a", write("xlsx").parent)], 1, "none")


def test_two_cases_of_one_name_are_refused(write: Write) -> None:
    """They would be counted as one."""
    with pytest.raises(EvalError, match="Give one of them another name"):
        make_plan([case("a"), case("a")])


def test_an_old_version_in_a_folder_replaces_the_skill(write: Write, tmp_path: Path) -> None:
    """It gets the skill's own name, whatever its folder is called. Other skills stay."""
    now, other = write("skills/pdf").parent, write("skills/xlsx").parent
    write("before/pdf", body="The old way.\n")
    for given in ("before", "before/pdf"):
        stage = tmp_path / f"stage-{given.replace('/', '-')}"
        plan = make_plan([case("a", now, other)], 1, str(tmp_path / given), str(stage))
        old = plan.trials[1].case
        assert [trial.arm for trial in plan.trials] == ["with", "old"]
        assert old.skills[0] == str(other)
        assert Path(old.skills[1]).name == "pdf"
        assert old_text(old).endswith("The old way.\n")


def test_a_baseline_folder_without_the_skill_is_refused(write: Write, tmp_path: Path) -> None:
    folder = write("skills/pdf").parent
    write("before/xlsx")
    with pytest.raises(EvalError, match="there is no skill 'pdf'"):
        make_plan([case("a", folder)], 1, str(tmp_path / "before"), str(tmp_path / "stage"))


def test_a_revision_gives_the_skill_as_it_was(write: Write, tmp_path: Path) -> None:
    """It has the committed bytes, modes and links; no filter, hook or checkout is involved."""
    file = write("skills/pdf", body="The old way.\n", references__a_md="Old.\n")
    script = file.parent / "run.sh"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    (file.parent / "link.md").symlink_to("SKILL.md")
    (tmp_path / ".gitattributes").write_text("*.md filter=evil export-ignore\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "old")
    git(tmp_path, "tag", "v1")
    git(tmp_path, "config", "filter.evil.smudge", f"touch {tmp_path}/ran")
    file.write_text(file.read_text().replace("old", "new"))
    plan = make_plan([case("a", file.parent)], 1, "v1", str(tmp_path / "stage"))
    old = Path(plan.trials[1].case.skills[-1])
    assert old_text(plan.trials[1].case).endswith("The old way.\n")
    assert (old / "references" / "a.md").read_text() == "Old.\n"
    assert (old / "run.sh").stat().st_mode & 0o777 == 0o755
    assert (old / "link.md").is_symlink()
    assert not (tmp_path / "ran").exists()
    assert file.read_text().endswith("The new way.\n")


@pytest.mark.parametrize(
    ("revision", "says"),
    [("v9", "neither such a folder nor such a revision"), ("--help", "neither such a folder")],
)
def test_an_unusable_revision_is_refused(write: Write, tmp_path: Path, revision: str, says: str) -> None:
    """It may be unknown, or made to look like an option."""
    (tmp_path / "README.md").write_text("x")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "nothing yet")
    git(tmp_path, "tag", "v0")
    with pytest.raises(EvalError, match=says):
        make_plan([case("a", write("pdf").parent)], 1, revision, str(tmp_path / "stage"))


def test_a_skill_that_is_new_since_the_revision_is_not_compared(write: Write, tmp_path: Path) -> None:
    """The plan names it."""
    git(tmp_path, "init", "-q")
    there = write("skills/pdf").parent
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "one")
    fresh = write("skills/fresh").parent
    plan = make_plan([case("a", there), case("b", fresh, skill="fresh")], 1, "HEAD", str(tmp_path / "stage"))
    assert [trial.id for trial in plan.trials] == ["pdf/a#with#1", "pdf/a#old#1", "fresh/b#with#1"]
    assert plan.new == ("fresh",)


def test_skills_in_folders_of_one_name_have_old_versions_of_their_own(write: Write, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    folders = [write(f"{name}/skills/pdf", body=f"Of {name}.\n").parent for name in "ab"]
    for name, folder in zip("ab", folders, strict=True):
        file = folder / "SKILL.md"
        file.write_text(file.read_text().replace("name: pdf", f"name: pdf-{name}"))
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "both")
    cases = [case("x", folder, skill=f"pdf-{name}") for name, folder in zip("ab", folders, strict=True)]
    plan = make_plan(cases, 1, "HEAD", str(tmp_path / "stage"))
    assert [old_text(trial.case)[-6:] for trial in plan.trials if trial.arm == "old"] == ["Of a.\n", "Of b.\n"]


def test_a_tree_made_by_hand_writes_nothing_outside(write: Write, tmp_path: Path) -> None:
    """git allows an entry named `..`."""
    file = write("repo/pdf")
    repo = tmp_path / "repo"
    git(repo, "init", "-q")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "good")

    def made(kind: str, data: bytes) -> bytes:
        words = ["git", "-C", str(repo), "hash-object", "-w", "--literally", "-t", kind, "--stdin"]
        return bytes.fromhex(subprocess.run(words, input=data, check=True, capture_output=True).stdout.decode().strip())

    blob = made("blob", b"escaped")
    skill = made("blob", file.read_bytes())
    above = made("tree", b"100644 escaped.txt\0" + blob)
    inner = made("tree", b"40000 ..\0" + above + b"100644 SKILL.md\0" + skill)
    top = made("tree", b"40000 pdf\0" + inner).hex()
    who = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    words = ["git", *who, "-C", str(repo), "commit-tree", top, "-m", "bad"]
    bad = subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()
    with pytest.raises(EvalError, match="is not inside the workspace"):
        make_plan([case("a", file.parent)], 1, bad, str(tmp_path / "stage"))
    assert list(tmp_path.rglob("escaped.txt")) == []


def test_a_copy_of_the_skill_in_the_workspace_is_left_out_too(write: Write) -> None:
    """It is found by the name in its file: a model that finds its text has the skill."""
    folder = write("pdf").parent
    files = {"SKILL.md": (folder / "SKILL.md").read_bytes(), "copy/SKILL.md": (folder / "SKILL.md").read_bytes()}
    plan = make_plan([case("a", folder, files={**files, "copy/a.md": b"x", "b.md": b"y"})], 1, "none")
    assert dict(plan.trials[1].case.files) == {"b.md": b"y"}


def test_a_baseline_for_cases_without_a_skill_is_refused(write: Write) -> None:
    with pytest.raises(EvalError, match="no case belongs to a skill"):
        make_plan([case("a", skill="")], 1, "none")


def test_a_revision_needs_a_repository(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(EvalError, match="is not in a git repository"):
        make_plan([case("a", write("pdf").parent)], 1, "main", str(tmp_path / "stage"))
