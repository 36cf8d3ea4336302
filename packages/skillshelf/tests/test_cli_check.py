"""Test `skillshelf check` for users, CI, editors and code scanning."""

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from importable import PACKAGES, importable
from repository import SKILLS
from skillshelf.lint import CODES

CASES = SKILLS / "checking"
Run = Callable[..., tuple[int, str, str]]


def without_version(result: tuple[int, str, str]) -> tuple[int, str, str]:
    """Return output that is the same on every Python that runs the tests."""
    code, out, complaints = result
    return code, re.sub(r"Python 3\.\d+", "Python 3.x", out), complaints


@pytest.fixture
def faulty(tmp_path: Path) -> Path:
    """Create a workspace with an error, a warning and a note."""
    for case in ("broken-python", "reference-unnamed", "field-extension"):
        shutil.copytree(CASES / case, tmp_path / "skills" / case)
    return tmp_path


def test_text_output_has_a_line_per_diagnostic(run: Run, faulty: Path) -> None:
    """A line is `path:line: severity: code message`, with the fix below, then a summary. Errors exit with 1."""
    assert without_version(run("check")) == snapshot(
        (
            1,
            """\
skills/broken-python/scripts/count.py:1: python-invalid (error) Python 3.x cannot parse it: invalid syntax
    fix: correct it, check with the Python it is written for, or give a fragment another ending, such as .txt
skills/field-extension/SKILL.md:4: field-extension (info) skillshelf reads these fields, but the format does not know them: 'disclosure'
    fix: write `disclosure` under `metadata:`
skills/reference-unnamed/references/a.md:1: reference-unnamed (warning) neither the instructions nor a file they lead to names it, so a model has no reason to load it
    fix: say in the instructions when to load 'a.md', or remove it
3 skills checked: 1 error, 1 warning, 1 note
""",  # noqa: E501
            "",
        )
    )


def test_a_clean_workspace_exits_with_zero(run: Run, tmp_path: Path) -> None:
    """The output is one line."""
    shutil.copytree(CASES / "complete", tmp_path / "complete")
    assert run("check") == (0, "1 skill checked: no problems\n", "")


def test_warnings_alone_do_not_fail(run: Run, faulty: Path) -> None:
    """The exit code is 0 if the errors are ignored."""
    code, out, _ = run("check", "--ignore", "python-invalid", "--ignore", "field-extension")
    assert code == 0
    assert out.splitlines()[-1] == "3 skills checked: 1 warning"


def test_strict_turns_unknown_fields_into_errors(run: Run, tmp_path: Path) -> None:
    """A field outside the format is a note without --strict. This holds for every output format."""
    shutil.copytree(CASES / "field-known", tmp_path / "field-known")
    assert run("check")[0] == 0
    assert run("check", "--strict")[1].splitlines()[-1] == "1 skill checked: 1 error"
    for form, mild, severe in (("github", "::notice", "::error"), ("sarif", '"note"', '"error"')):
        code, out, _ = run("check", "--format", form)
        strict_code, strict_out, _ = run("check", "--format", form, "--strict")
        assert (code, mild in out) == (0, True)
        assert (strict_code, severe in strict_out) == (1, True)


def test_several_paths_are_checked_together(run: Run, faulty: Path) -> None:
    """Diagnostics that two paths share appear once."""
    out = run("check", "skills/broken-python/SKILL.md", "skills/reference-unnamed", "skills/broken-python")[1]
    assert out.count("python-invalid") == 1
    assert out.count("reference-unnamed (warning) neither") == 1
    assert "field-extension" not in out


@pytest.mark.parametrize("options", [(), ("--format", "sarif"), ("--hosts",)])
def test_a_missing_path_is_wrong_use(run: Run, options: tuple[str, ...]) -> None:
    """The complaint goes to standard error, and the exit code is 2, as for every other wrong argument."""
    code, out, complaints = run("check", "nowhere", *options)
    assert (code, out) == (2, "")
    assert complaints == "skillshelf: There is no file or folder 'nowhere' to check.\n"


def test_the_other_paths_are_checked_if_one_is_missing(run: Run, faulty: Path) -> None:
    """Their diagnostics are printed as usual; the exit code says that the check is not complete."""
    code, out, complaints = run("check", "skills/reference-unnamed", "nowhere", "skills/gone")
    assert (code, out.splitlines()[-1]) == (2, "1 skill checked: 1 warning")
    assert complaints == (
        "skillshelf check: there is no file or folder 'nowhere' or 'skills/gone'; the others are checked\n"
    )


def test_a_workspace_that_is_missing_is_wrong_use(run: Run) -> None:
    assert run("check", "-C", "nowhere") == (
        2,
        "",
        "skillshelf: There is no folder 'nowhere' to use as the workspace.\n",
    )


def test_a_diagnostic_about_a_folder_has_no_line(run: Run, tmp_path: Path, write: Callable[..., Path]) -> None:
    """The workspace itself is shown as a dot."""
    for number in range(40):
        write(f"skill-{number}", "Explains at length what it is for, and when to use it. " * 15)
    assert run("check")[1].startswith(".: crowded (warning) the descriptions of its 40 skills")
    (tmp_path / "empty").mkdir()
    assert run("check", "empty")[1].startswith("empty: no-skill (error)")


PACKAGE_FOLDERS = {"the project": "proj", "the package": "proj/src/my_skills", "a skill": "proj/src/my_skills/rag"}


@pytest.mark.parametrize("folder", PACKAGE_FOLDERS.values(), ids=PACKAGE_FOLDERS)
def test_a_folder_of_code_skills_is_not_imported_but_recognized(run: Run, tmp_path: Path, folder: str) -> None:
    """The fix names the package, which can be checked once it is installed."""
    skill = tmp_path / "proj/src/my_skills/rag/skill.py"
    skill.parent.mkdir(parents=True)
    for package in (skill.parent, skill.parents[1]):
        (package / "__init__.py").write_text("raise SystemExit('imported')\n")
    skill.write_text("raise SystemExit('imported')\nclass Rag(BaseSkill): pass\n")
    code, out, _ = run("check", folder)
    assert code == 1
    assert f"{folder}: package-unchecked (error)" in out
    assert "fix: install it (it has no pyproject.toml yet" in out
    assert "`skillshelf check --package my_skills`" in out

    (tmp_path / "proj/pyproject.toml").write_text("[project]\n")
    [note] = json.loads(run("check", "--json", folder)[1])["diagnostics"]
    assert note["fix"] == (
        f"install its project with `pip install -e {tmp_path}/proj`, then run `skillshelf check --package my_skills`"
    )


def test_a_code_skill_in_a_folder_that_cannot_be_imported_gets_another_advice(run: Run, tmp_path: Path) -> None:
    (tmp_path / "my-skill").mkdir()
    (tmp_path / "my-skill/skill.py").write_text("class Rag(BaseSkill): pass\n")
    out = run("check", "my-skill")[1]
    assert "fix: rename the folder 'my-skill', which Python cannot import, for example to 'my_skill'" in out


def test_other_files_named_skill_py_do_not_make_a_package(run: Run, tmp_path: Path) -> None:
    (tmp_path / "game").mkdir()
    (tmp_path / "game/skill.py").write_text("SKILLS = ['jump']\n")
    assert "no-skill" in run("check", "game")[1]


def test_json_output_has_every_field(run: Run, faulty: Path) -> None:
    read = json.loads(run("check", "--json")[1])
    assert read["skill_count"] == 3
    assert [(note["severity"], note["code"]) for note in read["diagnostics"]] == [
        ("error", "python-invalid"),
        ("info", "field-extension"),
        ("warning", "reference-unnamed"),
    ]
    assert set(read["diagnostics"][0]) == {"severity", "code", "message", "path", "line", "fix"}


def test_sarif_output_has_rules_and_results(run: Run, faulty: Path) -> None:
    """It follows SARIF 2.1.0: all codes are rules, and each result names its rule, a relative path and a line."""
    code, out, _ = run("check", "--format", "sarif")
    log = json.loads(out)
    (sarif_run,) = log["runs"]
    rules = sarif_run["tool"]["driver"]["rules"]
    assert (code, log["version"], sarif_run["tool"]["driver"]["name"]) == (1, "2.1.0", "skillshelf")
    assert {rule["id"]: rule["shortDescription"]["text"] for rule in rules} == CODES
    for result in sarif_run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["message"]["text"]
    assert [(result["level"], result["ruleId"]) for result in sarif_run["results"]] == [
        ("error", "python-invalid"),
        ("note", "field-extension"),
        ("warning", "reference-unnamed"),
    ]
    assert sarif_run["results"][0]["locations"] == [
        {
            "physicalLocation": {
                "artifactLocation": {"uri": "skills/broken-python/scripts/count.py"},
                "region": {"startLine": 1},
            }
        }
    ]
    assert "region" not in sarif_run["results"][2]["locations"][0]["physicalLocation"]


def test_sarif_escapes_odd_names(run: Run, tmp_path: Path) -> None:
    """A URI escapes special characters and bytes that are not UTF-8, and stays relative."""
    folder = tmp_path / os.fsdecode(b"a b%\xff")
    folder.mkdir()
    (folder / "SKILL.md").write_text("")
    (result,) = json.loads(run("check", "--format", "sarif")[1])["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "a%20b%25%FF/SKILL.md"


def test_sarif_uses_a_file_uri_outside_the_current_folder(run: Run) -> None:
    (result,) = json.loads(run("check", "--format", "sarif", str(CASES / "open-fence"))[1])["runs"][0]["results"]
    uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == (CASES / "open-fence/references/a.md").as_uri()


def test_github_output_has_an_annotation_per_line(run: Run, faulty: Path) -> None:
    assert without_version(run("check", "--format", "github")) == snapshot(
        (
            1,
            """\
::error file=skills/broken-python/scripts/count.py,line=1,title=python-invalid::Python 3.x cannot parse it: invalid syntax%0Afix: correct it, check with the Python it is written for, or give a fragment another ending, such as .txt
::notice file=skills/field-extension/SKILL.md,line=4,title=field-extension::skillshelf reads these fields, but the format does not know them: 'disclosure'%0Afix: write `disclosure` under `metadata:`
::warning file=skills/reference-unnamed/references/a.md,title=reference-unnamed::neither the instructions nor a file they lead to names it, so a model has no reason to load it%0Afix: say in the instructions when to load 'a.md', or remove it
""",  # noqa: E501
            "",
        )
    )


def test_github_annotations_are_escaped(run: Run, tmp_path: Path) -> None:
    """A name cannot end a property, and a newline cannot begin a new command."""
    folder = tmp_path / "a,b:c%\n::error::x"
    folder.mkdir()
    (folder / "SKILL.md").write_text("")
    (line,) = run("check", "--format", "github")[1].splitlines()
    assert line.startswith(
        "::error file=a%2Cb%3Ac%25 %3A%3Aerror%3A%3Ax/SKILL.md,line=1,title=empty::the file is empty%0A"
    )


# -- packages ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def company(tmp_path: Path) -> Iterator[Path]:
    """Make a complete package importable, for the test to damage. It is in a project below the workspace."""
    source = tmp_path / "proj/src"
    shutil.copytree(PACKAGES / "complete", source, ignore=shutil.ignore_patterns("__pycache__"))
    with importable(source):
        yield source / "company_skills"


def test_a_package_is_checked_by_its_name(run: Run, company: Path) -> None:
    """The workspace is not checked along with it."""
    assert run("check", "--package", "company_skills") == (0, "5 skills checked: no problems\n", "")


def test_problems_of_a_package_are_shown_with_their_files(run: Run, company: Path) -> None:
    """An editor can open them, and a workflow can annotate them."""
    shell = company / "shell/skill.py"
    shell.write_text(shell.read_text().replace("    @tool\n    def read", "    def read"))
    (company / "agentic_rag/references/new.md").write_text("# New")
    code, out, _ = run("check", "--package", "company_skills")
    places = [line.split()[0] for line in out.splitlines() if not line.startswith(" ")]
    assert (code, places[:2]) == (
        1,
        [
            "proj/src/company_skills/agentic_rag/references/new.md:1:",
            "proj/src/company_skills/shell/skill.py:14:",
        ],
    )
    assert out.splitlines()[-1] == "5 skills checked: 1 error, 1 warning"
    github = run("check", "--package", "company_skills", "--format", "github")[1]
    assert "file=proj/src/company_skills/shell/skill.py,line=14,title=tool-unmarked" in github
    assert run("check", "--package", "company_skills", "--ignore", "reference-unlisted")[0] == 0


def test_paths_and_packages_are_checked_together(run: Run, company: Path, write: Callable[..., Path]) -> None:
    write("skills/pdf")
    assert run("check", "skills", "--package", "company_skills")[1] == "6 skills checked: no problems\n"


@pytest.mark.parametrize("folder", ["proj", "proj/src/company_skills", "proj/src/company_skills/shell"])
def test_a_folder_is_not_reported_for_the_package_that_is_checked(run: Run, company: Path, folder: str) -> None:
    """Its code skills are checked by the name of the package, whichever of its folders is given beside it."""
    code, out, _ = run("check", folder, "--package", "company_skills")
    assert (code, out) == (0, "5 skills checked: no problems\n")


def test_another_package_in_the_folder_is_still_reported(run: Run, company: Path) -> None:
    other = company.parent / "other_skills/skill.py"
    other.parent.mkdir()
    other.write_text("class Rag(BaseSkill): pass\n")
    code, out, _ = run("check", "proj", "--package", "company_skills")
    assert (code, "src/other_skills/skill.py is a code skill, which is not imported here" in out) == (1, True)


def test_a_plain_check_leaves_installed_packages_to_their_authors(
    run: Run, company: Path, write: Callable[..., Path]
) -> None:
    """A package in the settings counts for the shelf; its faults are not faults of the workspace."""
    write("pdf")
    (company / "agentic_rag/references/new.md").write_text("# New")
    settings = Path.home() / ".config/skillshelf/config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text('packages = ["company_skills"]\n')
    assert "agentic-rag" in run("list")[1]
    assert run("check") == (0, "1 skill checked: no problems\n", "")


def test_a_package_that_is_not_installed_is_wrong_use(run: Run) -> None:
    code, out, complaints = run("check", "--package", "nowhere_skills")
    assert (code, out) == (2, "")
    assert "nowhere_skills" in complaints


def test_hosts_and_packages_exclude_each_other(run: Run, company: Path) -> None:
    """Other agents load files."""
    code, out, complaints = run("check", "--hosts", "--package", "company_skills")
    assert (code, out) == (2, "")
    assert "Leave out --package" in complaints


def test_list_names_the_package_to_check(run: Run, company: Path) -> None:
    shell = company / "shell/skill.py"
    shell.write_text(shell.read_text().replace('name = "shell"', 'name = "Shell"'))
    counts = run("list", "--package", "company_skills")[1].splitlines()[-1]
    assert "1 file has problems: run `skillshelf check --package company_skills`." in counts
