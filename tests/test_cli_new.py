"""Test `skillshelf new`: only the author's own sentences are missing, and nothing is ever overwritten."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from zipfile import ZipFile

import pytest
from inline_snapshot import snapshot

from importable import importable
from killed import die_at
from skillshelf import PackageSource, Shelf
from skillshelf.lint import check_code_skills, check_path
from skillshelf.shelf.workspace_skills import WorkspaceSkills
from skillshelf.skillmd.templates import find_template_sentences
from skillshelf.sources import EntryPointSource, ObjectSource
from skillshelf.testing import check_package
from skillshelf.trust import Trust
from skillshelf_evals import find_cases

Run = Callable[..., tuple[int, str, str]]


def files(folder: Path) -> list[str]:
    """Return the files below a folder, without the bytecode that Python leaves beside modules."""
    paths = [path for path in folder.rglob("*") if path.is_file() and path.parent.name != "__pycache__"]
    return sorted(str(path.relative_to(folder)) for path in paths)


def fill_in(folder: Path) -> None:
    """Replace every sentence that the templates leave to the author."""
    for path in files(folder):
        file = folder / path
        for sentence in find_template_sentences(file.read_bytes()):
            file.write_text(file.read_text().replace(sentence.text, "It does."))


def test_a_new_skill_is_in_use_at_once(run: Run, tmp_path: Path) -> None:
    """The answer names the file and the next steps. Nobody has to review what they have just made."""
    assert run("new", "pdf-forms") == snapshot(
        (
            0,
            """\
.agents/skills/pdf-forms/SKILL.md

Write the description first: a model sees nothing else before it loads the skill. Then replace the steps,
check the skill, and approve what you have made of it:
  skillshelf check .agents/skills/pdf-forms
  skillshelf trust --yes pdf-forms
""",
            "",
        )
    )
    assert files(tmp_path) == [".agents/skills/pdf-forms/SKILL.md"]
    assert run("why", "pdf-forms")[0] == 0
    skills = WorkspaceSkills(tmp_path, trust=Trust.open())
    assert (list(skills.shelf.catalog), skills.pending) == (["pdf-forms", "skill-authoring"], ())


def test_a_review_is_mentioned_only_if_there_is_one(run: Run, tmp_path: Path) -> None:
    """Skills of the user, and of a repository of their own, apply as they change."""
    home = Path.home() / ".claude/skills"
    _, out, _ = run("new", "mine", "--in", str(home))
    assert out.endswith(f"and check the skill:\n  skillshelf check {home}/mine\n")
    assert run("list")[1].count("mine") == 1

    (tmp_path / ".git").mkdir()
    Trust.open().declare_own(str(tmp_path))
    assert "trust --yes" not in run("new", "pdf-forms")[1]


def test_only_what_new_wrote_is_approved(run: Run, tmp_path: Path) -> None:
    """Another skill beside it, and a later change of this one, wait for a review."""
    other = tmp_path / ".agents/skills/other/SKILL.md"
    other.parent.mkdir(parents=True)
    other.write_text("---\nname: other\ndescription: From a clone.\n---\n")
    run("new", "pdf-forms")
    fill_in(tmp_path)
    pending = WorkspaceSkills(tmp_path, trust=Trust.open()).pending
    assert [(skill.name, skill.status) for skill in pending] == [("other", "new"), ("pdf-forms", "changed")]


def test_a_skill_that_cannot_be_approved_is_created_all_the_same(run: Run, tmp_path: Path) -> None:
    state_home = Path(os.environ["HOME"]) / ".local/state"
    state_home.mkdir(parents=True)
    (state_home / "skillshelf").write_text("")
    code, _, err = run("new", "pdf-forms")
    assert (code, files(tmp_path)) == (0, [".agents/skills/pdf-forms/SKILL.md"])
    assert "waits for your review: `skillshelf trust`" in err


def test_a_check_names_the_one_line_that_is_left_to_write(run: Run, tmp_path: Path) -> None:
    """An untouched skill fails for its description and nothing else, and passes once it has one."""
    run("new", "pdf-forms")
    assert [(note.severity, note.code, note.line) for note in check_path(tmp_path)] == [("error", "template-text", 3)]
    assert run("check")[0] == 1

    fill_in(tmp_path)
    assert check_path(tmp_path) == []
    assert run("check")[0] == 0


def test_a_sentence_of_the_template_is_found_with_other_line_breaks(run: Run, tmp_path: Path) -> None:
    """An author's editor may have wrapped it. The line is that of its first word."""
    run("new", "pdf-forms")
    skill = tmp_path / ".agents/skills/pdf-forms/SKILL.md"
    text = skill.read_text()
    wrapped = text.replace("description: ", "description: >\n  ").replace("does, and when", "does,\r\n   and\twhen")
    skill.write_text(wrapped)
    assert [(note.code, note.line) for note in check_path(tmp_path) if note.severity == "error"] == [
        ("template-text", 4)
    ]
    skill.write_text(text.replace("Say here what", "It says what"))
    assert check_path(tmp_path) == []


def test_a_new_skill_can_be_created_elsewhere(run: Run, tmp_path: Path) -> None:
    """The place is a given folder or another workspace."""
    assert run("new", "pdf", "--in", ".claude/skills")[0] == 0
    assert run("new", "pdf", "-C", "app")[0] == 0
    assert (tmp_path / ".claude/skills/pdf/SKILL.md").exists()
    assert (tmp_path / "app/.agents/skills/pdf/SKILL.md").exists()


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("My Skill", "my-skill"),
        ("my_skill", "my-skill"),
        ("../escape", "escape"),
        ("/etc/x", "etc-x"),
        ("reload", "reload-skill"),
        ("", "my-skill"),
        ("  ", "my-skill"),
        ("рdf", "pdf"),
        ("a" * 65, "a" * 64),
    ],
)
def test_invalid_names_are_refused(run: Run, tmp_path: Path, name: str, right: str) -> None:
    """Nothing is created. The answer suggests a name, and that one works."""
    code, out, err = run("new", name)
    assert (code, out, files(tmp_path)) == (2, "", [])
    assert f"Try: skillshelf new {right}\n" in err
    assert run("new", right)[0] == 0


@pytest.mark.parametrize("existing", ["folder", "file", "link"])
def test_nothing_is_overwritten(run: Run, tmp_path: Path, existing: str) -> None:
    """An existing file or folder stays unchanged."""
    place = tmp_path / ".agents/skills/pdf"
    place.parent.mkdir(parents=True)
    if existing == "folder":
        place.mkdir()
    elif existing == "file":
        place.write_text("mine")
    else:
        place.symlink_to("/nowhere")
    code, _, err = run("new", "pdf")
    assert code == 1
    assert ".agents/skills/pdf already exists" in err
    assert files(tmp_path) == ([".agents/skills/pdf"] if existing == "file" else [])


@pytest.mark.parametrize(
    ("name", "module"), [("graph-rag", "graph_rag"), ("3d", "skill_3d"), ("import", "skill_import")]
)
def test_a_new_code_skill_lacks_only_its_own_text(run: Run, tmp_path: Path, name: str, module: str) -> None:
    """It is a subpackage that the project's own test accepts once these sentences are replaced."""
    assert run("new", name, "--code", "fresh_skills")[0] == 0
    assert files(tmp_path) == [
        "fresh_skills/__init__.py",
        f"fresh_skills/{module}/__init__.py",
        f"fresh_skills/{module}/references/guide.md",
        f"fresh_skills/{module}/skill.py",
    ]
    with importable(tmp_path):
        assert {note.code for note in check_code_skills("fresh_skills").diagnostics} == {"template-text"}
    fill_in(tmp_path)
    with importable(tmp_path):
        check_package("fresh_skills")


def test_two_new_code_skills_can_share_a_shelf(run: Run, tmp_path: Path) -> None:
    """Their tools have different names, and each finds the paragraphs of its own guide."""
    for name in ("one", "two"):
        run("new", name, "--code", "shared_skills")
    guide = tmp_path / "shared_skills/one/references/guide.md"
    guide.write_text("# One\n\nRefunds take five days.\n\nInvoices are sent\nat once.\n")
    with importable(tmp_path):
        one = import_module("shared_skills.one.skill").OneSkill()
        two = import_module("shared_skills.two.skill").TwoSkill()
        tools = {tool.name: tool for tool in ObjectSource([one, two]).tools()}
        assert list(tools) == ["search_one", "search_two"]
        assert tools["search_one"].call({"words": "days refunds"}) == ["Refunds take five days."]
        assert tools["search_one"].call({"words": "sent at once"}) == ["Invoices are sent\nat once."]
        assert tools["search_one"].call({"words": "nothing"}) == []


def test_a_code_skill_can_join_an_existing_package(run: Run, tmp_path: Path) -> None:
    """The package's files stay unchanged, and two skills live side by side."""
    (tmp_path / "more_skills").mkdir()
    (tmp_path / "more_skills/__init__.py").write_text('"""Ours."""\n')
    assert [run("new", name, "--code", "more_skills")[0] for name in ("one", "two", "two")] == [0, 0, 1]
    assert (tmp_path / "more_skills/__init__.py").read_text() == '"""Ours."""\n'
    fill_in(tmp_path)
    with importable(tmp_path):
        check_package("more_skills")


def test_an_unwritable_place_is_reported(run: Run, tmp_path: Path) -> None:
    """The message is one sentence without a traceback."""
    (tmp_path / "file").write_text("")
    code, _, err = run("new", "pdf", "--in", "file/below")
    assert code == 1
    assert "cannot be written" in err


def test_a_draft_left_by_a_killed_process_is_not_a_skill(run: Run, tmp_path: Path) -> None:
    """It is not listed and does not block the name, and the next `new` removes it."""
    code = "from skillshelf.cli import main; main(['new', 'pdf'])"
    die_at("rename", code, tmp_path)
    (draft,) = (tmp_path / ".agents/skills/.skillshelf-new").iterdir()
    assert (draft / "SKILL.md").exists()
    listed = json.loads(run("list", "--json")[1])
    assert "pdf" not in [skill["name"] for skill in listed["skills"]]
    assert run("new", "pdf")[0] == 0
    assert [path.name for path in (tmp_path / ".agents/skills").iterdir()] == ["pdf"]


def test_a_link_in_place_of_the_drafts_folder_is_not_followed(run: Run, tmp_path: Path) -> None:
    """A clone cannot make `new` write outside the folder."""
    (tmp_path / ".agents/skills").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (tmp_path / ".agents/skills/.skillshelf-new").symlink_to(tmp_path / "outside")
    code, _, err = run("new", "pdf")
    assert (code, "cannot be written" in err) == (1, True)
    assert list((tmp_path / "outside").iterdir()) == []


@pytest.mark.parametrize("link", [".agents", ".agents/skills"])
def test_a_link_out_of_the_workspace_is_not_followed(run: Run, tmp_path: Path, link: str) -> None:
    """A clone cannot choose where a new skill goes. A folder that the user names with --in may be anywhere."""
    outside = tmp_path / "outside"
    workspace = tmp_path / "clone"
    for folder in (outside, (workspace / link).parent):
        folder.mkdir(parents=True, exist_ok=True)
    (workspace / link).symlink_to(outside)
    code, out, err = run("new", "pdf", "-C", str(workspace))
    assert (code, out, "is a link out of the workspace" in err) == (1, "", True)
    assert list(outside.iterdir()) == []
    assert run("new", "pdf", "--in", str(outside))[0] == 0


# -- a project ---------------------------------------------------------------------------------------------------------


def test_a_new_project_has_everything_that_a_package_of_skills_needs(run: Run, tmp_path: Path) -> None:
    """Its code, references, packaging, a test and evals are there, and the answer names the next steps."""
    code, out, err = run("new", "--package", "my_skills")
    assert (code, err) == (0, "")
    assert files(tmp_path) == [
        "my_skills/.github/workflows/skills.yml",
        "my_skills/.gitignore",
        "my_skills/README.md",
        "my_skills/evals/cases.yaml",
        "my_skills/pyproject.toml",
        "my_skills/src/my_skills/__init__.py",
        "my_skills/src/my_skills/team_guide/__init__.py",
        "my_skills/src/my_skills/team_guide/references/guide.md",
        "my_skills/src/my_skills/team_guide/skill.py",
        "my_skills/tests/test_skills.py",
    ]
    assert out.endswith(
        """
Install it where skillshelf is installed, then see what is left to write:
  cd my_skills
  pip install -e '.[dev]'
  skillshelf check --package my_skills
The project's test fails, too, until every sentence of the template is replaced. See README.md for more.
"""
    )


def test_a_project_has_the_skills_that_the_user_names(run: Run, tmp_path: Path) -> None:
    """Each has a subpackage, a test and a case. Only sentences of the template are reported."""
    assert run("new", "--package", "our_skills", "rag", "web-browser", "--in", "work")[0] == 0
    source = tmp_path / "work/our_skills/src"
    with importable(source):
        report = check_code_skills("our_skills")
    assert (report.skills, {note.code for note in report.diagnostics}) == (2, {"template-text"})

    fill_in(tmp_path / "work")
    with importable(source):
        check_package("our_skills")
        shelf = Shelf([PackageSource("our_skills")])
    assert list(shelf.catalog) == ["rag", "web-browser"]


def test_the_tests_of_a_new_project_fail_for_template_text_alone(run: Run, tmp_path: Path) -> None:
    """Its own test names each sentence. All tests pass once they are replaced."""
    run("new", "--package", "tested_skills", "rag")
    project = tmp_path / "tested_skills"

    def run_tests() -> str:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly"]
        environment = os.environ | {"PYTHONPATH": str(project / "src")}
        return subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True).stdout

    untouched = run_tests()
    assert "1 failed, 1 passed" in untouched
    assert "tested_skills/rag/skill.py:8: template-text" in untouched
    fill_in(project)
    assert "2 passed" in run_tests()


def test_the_wheel_of_a_new_project_carries_the_references(run: Run, tmp_path: Path) -> None:
    """The skills of the built wheel are complete, and its entry point puts them on the shelf."""
    run("new", "--package", "built_skills", "rag")
    project = tmp_path / "built_skills"
    fill_in(project)
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel"]
    subprocess.run(command, cwd=project, check=True, capture_output=True)
    (wheel,) = (project / "dist").glob("*.whl")
    with ZipFile(wheel) as archive:
        assert "built_skills/rag/references/guide.md" in archive.namelist()
        assert not any("tests/" in name or "evals/" in name for name in archive.namelist())
        archive.extractall(tmp_path / "installed")

    with importable(tmp_path / "installed"):
        check_package("built_skills")
        assert list(Shelf([EntryPointSource()]).catalog) == ["rag"]


def test_the_cases_of_a_new_project_run_without_a_key(run: Run, tmp_path: Path) -> None:
    """A script plays the model, and every check passes, even before anything is replaced."""
    run("new", "--package", "scripted_skills", "rag", "web-browser")
    with importable(tmp_path / "scripted_skills/src"):
        cases, notes = find_cases([tmp_path / "scripted_skills"])
        assert (len(cases), notes) == (2, ())
        assert run("eval", "scripted_skills", "--trust-workspace")[0] == 0


@pytest.mark.parametrize(
    ("package", "right"),
    [
        ("my-skills", "my_skills"),
        ("My Skills", "my_skills"),
        ("../escape", "escape"),
        ("json", "my_json"),
        ("skillshelf", "my_skillshelf"),
        ("class", "my_class"),
        ("3d", "my_3d"),
        ("", "my_skill"),
    ],
)
def test_names_that_no_package_can_have_are_refused(run: Run, tmp_path: Path, package: str, right: str) -> None:
    """Nothing is created. The answer suggests a name, and that one works."""
    code, out, err = run("new", "--package", package)
    assert (code, out, files(tmp_path)) == (2, "", [])
    assert f"Try: skillshelf new --package {right}\n" in err
    assert run("new", "--package", right)[0] == 0


WRONG_USE = {
    "no name": ((), "give one NAME"),
    "two names": (("one", "two"), "give one NAME"),
    "two kinds of package": (("one", "--code", "a", "--package", "b"), "cannot be used together"),
    "a name given twice": (("one", "one", "--package", "b"), "one is given twice"),
    "an invalid name in a project": (("One", "--package", "b"), "must be lowercase"),
}


@pytest.mark.parametrize("case", WRONG_USE)
def test_wrong_use_creates_nothing(run: Run, tmp_path: Path, case: str) -> None:
    words, message = WRONG_USE[case]
    code, out, err = run("new", *words)
    assert (code, out, message in err) == (2, "", True)
    assert files(tmp_path) == []


def test_a_project_never_goes_over_an_existing_folder(run: Run, tmp_path: Path) -> None:
    (tmp_path / "my_skills").mkdir()
    (tmp_path / "my_skills/notes.txt").write_text("mine")
    code, out, err = run("new", "--package", "my_skills")
    assert (code, out, err) == (1, "", "skillshelf: my_skills already exists; nothing was changed.\n")
    assert files(tmp_path) == ["my_skills/notes.txt"]
