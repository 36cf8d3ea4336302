"""Test check_package: the one line that keeps a project's skills and their references complete."""

import shutil
import sys
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from importable import PACKAGES, importable
from skillshelf.errors import SourceError
from skillshelf.lint import check_code_skills
from skillshelf.testing import check_package

RAG = "company_skills/agentic_rag"
CONFIG = f"{RAG}/references/azure_search_config.md"


@pytest.fixture
def company(tmp_path: Path) -> Iterator[Path]:
    """Copy the complete package, for the test to damage."""
    shutil.copytree(PACKAGES / "complete", tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    with importable(tmp_path):
        yield tmp_path


def problems() -> list[str]:
    """Return the output of check_package, as `path: code` for each line."""
    with pytest.raises(AssertionError) as raised:
        check_package("company_skills")
    return [" ".join(line.split()[:2]) for line in str(raised.value).splitlines()]


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_a_complete_package_passes(company: Path) -> None:
    """It passes by name, as a module, and a second time."""
    check_package("company_skills")
    check_package(sys.modules["company_skills"])


def test_a_complete_package_passes_from_a_zip(tmp_path: Path) -> None:
    """The check reads the installed package, even from an archive."""
    place = PACKAGES / "complete"
    with zipfile.ZipFile(tmp_path / "company.zip", "w") as archive:
        for path in place.rglob("*.*"):
            archive.write(path, path.relative_to(place).as_posix())
    with importable(tmp_path / "company.zip"):
        check_package("company_skills")


@pytest.mark.parametrize("name", [".DS_Store", "__pycache__/x.py", "old.pyc", ".hidden/a.md"])
def test_files_left_by_tools_need_no_listing(company: Path, name: str) -> None:
    """Dot files, bytecode and caches under references/ are not references."""
    file = company / RAG / "references" / name
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(b"")
    check_package("company_skills")


FAULTS: dict[str, tuple[Callable[[Path], object], list[str]]] = {
    "a listed file is gone": (
        lambda root: (root / RAG / "scripts/sandbox_runner.py").unlink(),
        [
            f"{RAG}/scripts/sandbox_runner.py: reference-missing",
            f"{CONFIG}:3: markdown-invalid",
        ],
    ),
    "a listed path leaves the folder": (
        lambda root: edit(root / RAG / "skill.py", '"scripts/sandbox', '"../scripts/sandbox'),
        [f"{RAG}/../scripts/sandbox_runner.py: reference-missing"],
    ),
    "a listed file is a link": (
        lambda root: (
            (root / CONFIG).rename(root / "elsewhere.md"),
            (root / CONFIG).symlink_to(root / "elsewhere.md"),
        ),
        [f"{CONFIG}: reference-missing"],
    ),
    "a file is not listed": (
        lambda root: (root / RAG / "references/new.yaml").write_text("a: 1"),
        [f"{RAG}/references/new.yaml: reference-unlisted"],
    ),
    "a file in a subfolder is not listed": (
        lambda root: (root / RAG / "references/neo4j/new.md").write_text("# New"),
        [f"{RAG}/references/neo4j/new.md: reference-unlisted"],
    ),
    "a file of a skill without any list is not listed": (
        lambda root: (
            (root / "company_skills/shell/references").mkdir(),
            (root / "company_skills/shell/references/new.md").write_text("# New"),
        ),
        ["company_skills/shell/references/new.md: reference-unlisted"],
    ),
    "a file of a skill.py with two skills is not listed": (
        lambda root: (root / "company_skills/pair/references/middle.md").write_text("# Middle"),
        ["company_skills/pair/references/middle.md: reference-unlisted"],
    ),
    "the instructions do not name it": (
        lambda root: edit(root / RAG / "skill.py", "'azure_search_config.md'", "'my_azure_search_config.md'"),
        [f"{CONFIG}: reference-unnamed"],
    ),
    "the Markdown is not UTF-8": (
        lambda root: (root / CONFIG).write_bytes(b"# Caf\xc3\xa9\n\ncaf\xe9\n"),
        [f"{CONFIG}:3: markdown-invalid"],
    ),
    "the Markdown holds a NUL": (
        lambda root: (root / CONFIG).write_bytes(b"# A\n\0\n"),
        [f"{CONFIG}:2: markdown-invalid"],
    ),
    "a link leads to no file": (
        lambda root: edit(root / CONFIG, "neo4j/cypher_templates.py", "neo4j/renamed.py"),
        [f"{CONFIG}:3: markdown-invalid"],
    ),
    "an image leads to no file, on the second line of its paragraph": (
        lambda root: (root / CONFIG).write_text("One.\n\nTwo\n![a plan](plan.png#left).\n"),
        [f"{CONFIG}:4: markdown-invalid"],
    ),
    "the Python does not compile": (
        lambda root: (root / RAG / "scripts/sandbox_runner.py").write_text("x = 1\ny = (\n"),
        [f"{RAG}/scripts/sandbox_runner.py:2: python-invalid"],
    ),
    "the Python holds a NUL": (
        lambda root: (root / RAG / "scripts/sandbox_runner.py").write_bytes(b"x = 1\0"),
        [f"{RAG}/scripts/sandbox_runner.py:1: python-invalid"],
    ),
    "the Python nests deeper than the compiler goes": (
        lambda root: (root / RAG / "scripts/sandbox_runner.py").write_text("-" * 100_000 + "1"),
        [f"{RAG}/scripts/sandbox_runner.py:1: python-invalid"],
    ),
    "a skill cannot be imported": (
        lambda root: (root / "company_skills/shell/skill.py").write_text("import library_that_nobody_has"),
        ["company_skills/shell/skill.py:1: import-failed"],
    ),
    "a class is no valid skill": (
        lambda root: edit(root / "company_skills/shell/skill.py", '"shell"', '"Shell"'),
        ["company_skills/shell/skill.py:5: invalid-skill"],
    ),
    "a skill.py holds no skill": (
        lambda root: (root / "company_skills/shell/skill.py").write_text(""),
        ["company_skills/shell/skill.py: no-skill"],
    ),
    "the instructions are over budget": (
        lambda root: edit(
            root / "company_skills/pair/skill.py", '"See left.md."', '"See left.md. " + "And so on. " * 3000'
        ),
        ["company_skills/pair/skill.py: instructions-too-long"],
    ),
    "a method lacks its @tool": (
        lambda root: edit(root / "company_skills/shell/skill.py", "    @tool\n    def read", "    def read"),
        ["company_skills/shell/skill.py:14: tool-unmarked"],
    ),
    "a method that replaces a tool lacks its @tool": (
        lambda root: edit(
            root / "company_skills/web/browser/skill.py",
            "    def _home(self) -> str:\n        return",
            "    def open(self): ...\n\n    def _home(self) -> str:\n        return",
        ),
        ["company_skills/web/browser/skill.py:24: tool-unmarked"],
    ),
    "name is a property": (
        lambda root: edit(
            root / "company_skills/shell/skill.py",
            '    name = "shell"',
            '    @property\n    def name(self):\n        return "shell"\n',
        ),
        ["company_skills/shell/skill.py:6: invalid-skill"],
    ),
    "the descriptor is an attribute": (
        lambda root: edit(
            root / "company_skills/shell/skill.py",
            '    name = "shell"',
            '    name = "shell"\n    descriptor = object()',
        ),
        ["company_skills/shell/skill.py:6: invalid-skill"],
    ),
    "the descriptor is a method of instances": (
        lambda root: edit(
            root / "company_skills/shell/skill.py",
            '    name = "shell"',
            '    name = "shell"\n    def descriptor(self): ...\n',
        ),
        ["company_skills/shell/skill.py:6: invalid-skill"],
    ),
    "the tools are a property": (
        lambda root: edit(
            root / "company_skills/shell/skill.py",
            '    name = "shell"',
            '    name = "shell"\n    tools = property(list)\n',
        ),
        ["company_skills/shell/skill.py:6: invalid-skill"],
    ),
    "there is no skill at all": (
        lambda root: [path.unlink() for path in root.rglob("skill.py")],
        ["company_skills: no-skill"],
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_reported(company: Path, fault: str) -> None:
    """One fault in a complete package yields exactly one line, with its file and code."""
    damage, lines = FAULTS[fault]
    damage(company)
    assert problems() == lines


def test_all_faults_are_listed_at_once(company: Path) -> None:
    """One run names every problem, each on its own line with a fix."""
    (company / RAG / "references/new.md").write_text("# New")
    (company / RAG / "scripts/sandbox_runner.py").write_text("x = (")
    with pytest.raises(AssertionError) as raised:
        check_package("company_skills")
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert str(raised.value).splitlines() == [
        f"{RAG}/scripts/sandbox_runner.py:1: python-invalid Python {version} cannot parse it: '(' was never closed "
        "(correct it, check with the Python it is written for, or give a fragment another ending, such as .txt)",
        f"{RAG}/references/new.md: reference-unlisted the file is not on the skill's list, so no model can load it "
        "(add 'references/new.md' to `references`)",
    ]


def test_a_class_of_another_library_gets_all_faults_at_once(company: Path) -> None:
    """One run names each fault at its line, with the class's own name, whatever else is wrong with the class."""
    (company / "company_skills/shell/references").mkdir()
    (company / "company_skills/shell/references/new.md").write_text("# New")
    (company / "company_skills/shell/skill.py").write_text(
        """\
from skillshelf import BaseSkill, tool


class SafeShellSkill(BaseSkill):
    references = ("references/gone.md",)

    @property
    def name(self):
        return "shell"

    @property
    def instructions(self):
        return "Call run."

    def get_tools(self):
        return [self.run]

    @tool
    def run(self, command, seconds) -> str:
        return ""

    @tool
    def screenshot(self) -> bytes | None:
        return None
"""
    )
    path = "company_skills/shell/skill.py"
    notes = {}
    for note in check_code_skills("company_skills").diagnostics:
        notes[f"{note.path}:{note.line} {note.code}"] = f"{note.message} {note.fix}"
    assert list(notes) == [
        f"{path}:8 invalid-skill",
        f"{path}:4 invalid-skill",
        f"{path}:12 invalid-skill",
        f"{path}:19 invalid-skill",
        "company_skills/shell/references/gone.md:0 reference-missing",
        "company_skills/shell/references/new.md:0 reference-unlisted",
        f"{path}:15 tool-unmarked",
        f"{path}:22 tool-returns-bytes",
    ]
    assert 'Write `name = "safe-shell"` in the class' in notes[f"{path}:8 invalid-skill"]
    assert "parameter 'command'" in notes[f"{path}:19 invalid-skill"]
    assert "parameter 'seconds'" in notes[f"{path}:19 invalid-skill"]
    assert "delete it, and write @tool above" in notes[f"{path}:15 tool-unmarked"]


def test_references_of_an_unfinished_class_are_checked(company: Path) -> None:
    edit(company / RAG / "skill.py", 'name = "agentic-rag"', 'name = "Agentic RAG"')
    (company / RAG / "references/new.yaml").write_text("a: 1")
    assert [line.split()[-1] for line in problems()] == ["invalid-skill", "reference-unlisted"]


def test_guidance_that_is_all_inline_gets_a_note(company: Path) -> None:
    """It suggests references. A skill that has some, or a paragraph or two, gets none; no test fails of it."""
    skill = company / "company_skills/shell/skill.py"
    edit(skill, '    category = "raw"', '    category = "raw"\n    instructions = "Never remove a file. " * 40')
    [note] = check_code_skills("company_skills").diagnostics
    assert (note.severity, note.code) == ("info", "guidance-inline")
    assert "references/" in note.fix
    check_package("company_skills")


NOT_TOOLS = {
    "a leading underscore": "def _helper(self): ...",
    "a property": "@property\n    def ready(self): ...",
    "a cached property": "@__import__('functools').cached_property\n    def ready(self): ...",
    "a class method": "@classmethod\n    def from_env(cls): ...",
    "a static method": "@staticmethod\n    def parse(text): ...",
    "a method of BaseSkill": "def with_policy(self, policy): return super().with_policy(policy)",
    "a special method": "def __enter__(self): ...",
    "a nested class": "class Settings: ...",
    "a value that can be called": "factory = dict",
}


@pytest.mark.parametrize("case", NOT_TOOLS)
def test_members_that_cannot_be_meant_as_tools_pass(company: Path, case: str) -> None:
    edit(
        company / "company_skills/shell/skill.py",
        "    @tool\n    def run",
        f"    {NOT_TOOLS[case]}\n\n    @tool\n    def run",
    )
    check_package("company_skills")


def test_methods_that_a_library_asks_for_pass(company: Path) -> None:
    """They implement the interface of a class from another package. Its other methods are its own matter."""
    edit(
        company / "company_skills/shell/skill.py",
        "class ShellSkill(BaseSkill):",
        "from ast import NodeVisitor\n\n\nclass ShellSkill(BaseSkill, NodeVisitor):\n    def visit(self, node): ...\n",
    )
    check_package("company_skills")


def test_a_forgotten_tool_of_a_common_base_is_reported_once(company: Path) -> None:
    """Both skills of the file inherit it; the line is that of the base class."""
    pair = company / "company_skills/pair/skill.py"
    edit(pair, "(BaseSkill):\n    name", "(Common):\n    name")
    edit(pair, "class LeftSkill", "class Common(BaseSkill):\n    def ask(self): ...\n\n\nclass LeftSkill")
    assert problems() == ["company_skills/pair/skill.py:5: tool-unmarked"]


def test_a_check_for_programs_returns_the_same_problems(company: Path) -> None:
    """`check_code_skills` counts the skills and returns diagnostics; `check_package` raises them."""
    assert check_code_skills("company_skills").skills == 5
    assert check_code_skills("company_skills").diagnostics == []
    (company / RAG / "references/new.yaml").write_text("a: 1")
    assert [note.code for note in check_code_skills("company_skills").diagnostics] == ["reference-unlisted"]


FENCES = {
    "never closed": ("# A\n\n```python\nx = 1\n", 3),
    "never closed, and no newline at the end": ("```python\nx = 1", 1),
    "only opened": ("text\n\n```", 3),
    "closed by a shorter marker": ("````\na\n```\n", 1),
    "closed by the other marker": ("~~~\na\n```\n", 1),
    "closed by a line with an info string": ("```\na\n```text\n", 1),
    "closed by a line indented too far": ("```\na\n    ```\n", 1),
    "closed outside of its list item": ("- a\n\n  ```\n  b\n\n```\nc\n```\n", 3),
    "in a quote that ends": ("> ```\n> a\n\nb\n", 1),
    "closed": ("```\na\n```\n", 0),
    "closed by a longer marker and spaces": ("~~~ info ~~~\na\n~~~~  \n", 0),
    "closed, indented by three": ("   ```\n   a\n   ```\n", 0),
    "inside a list": ("1. a\n\n   ```\n   b\n   ```\n", 0),
    "on the line of a list marker": ("- ```\n  a\n  ```\n", 0),
    "inside a quote": ("> ~~~\n> a\n> ~~~\n", 0),
    "not a fence: a backtick in the info string": ("``` a`b\ntext\n", 0),
    "not a fence: indented code": ("a\n\n    ```\n    b\n", 0),
    "empty": ("```\n```\n", 0),
    "with CRLF and a BOM": ("\ufeff```\r\na\r\n```\r\n", 0),
}


@pytest.mark.parametrize("case", FENCES)
def test_fences_follow_commonmark(company: Path, case: str) -> None:
    """A fence without its closing line is reported at its opening line, by the rules of CommonMark."""
    text, line = FENCES[case]
    (company / CONFIG).write_bytes(text.encode())
    if line:
        assert f"{CONFIG}:{line}: markdown-invalid" in problems()
    else:
        check_package("company_skills")


@pytest.mark.parametrize(
    "link",
    [
        "[web](https://example.org/gone.md)",
        "[mail](mailto:a@example.md)",
        "[above](#heading)",
        "[part](neo4j/cypher_templates.py#L3)",
        "[from the skill's folder](references/neo4j/cypher_templates.py)",
        "[folder](neo4j)",
        "[outside the skill](../../web/gone.md)",
        "[a figure of speech](url)",
        "[filled in later](${SKILL_DIR}/gone.md)",
        "`[code](gone.md)`",
        "<!-- [comment](gone.md) -->",
        r"\[escaped](gone.md)",
    ],
)
def test_valid_links_and_links_that_cannot_be_checked_pass(company: Path, link: str) -> None:
    """Only a relative link to a file that is missing in the skill's folder is dead."""
    (company / CONFIG).write_text(f"See {link}.\n")
    check_package("company_skills")


@pytest.mark.parametrize(
    "link", ["[a](gone.md)", "[a](./gone.md#x)", "[a](<go ne.md>)", "[a][b]\n\n[b]: gone.md 'Gone'"]
)
def test_dead_links_in_every_notation_are_reported(company: Path, link: str) -> None:
    """An inline link, one in angle brackets and a definition are each reported at their line."""
    (company / CONFIG).write_text(f"# A\n\nSee {link}\n")
    assert problems() == [f"{CONFIG}:3: markdown-invalid"]


def test_a_shared_file_name_must_be_named_by_its_path(company: Path) -> None:
    """A bare name that two references share loads neither, so it does not count as naming them."""
    browser = company / "company_skills/web/browser"
    (browser / "references/old").mkdir()
    (browser / "references/old/selectors.md").write_text("# Old")
    edit(
        browser / "skill.py",
        '("references/selectors.md",)',
        '("references/selectors.md", "references/old/selectors.md")',
    )
    top = "company_skills/web/browser/references"
    assert problems() == [f"{top}/selectors.md: reference-unnamed", f"{top}/old/selectors.md: reference-unnamed"]
    edit(browser / "skill.py", "load selectors.md", "load references/selectors.md or references/old/selectors.md")
    for name in [name for name in sys.modules if name.startswith("company_skills")]:
        del sys.modules[name]
    check_package("company_skills")


def test_an_inherited_list_is_checked_where_it_was_written(company: Path) -> None:
    """A skill may inherit another's references; files in its own folder still need a list of its own."""
    folder = company / "company_skills/ours"
    (folder / "references").mkdir(parents=True)
    (folder / "skill.py").write_text(
        "from company_skills.web.browser.skill import BrowserSkill\n"
        "class OurBrowserSkill(BrowserSkill):\n"
        "    name = 'our-browser'\n"
    )
    check_package("company_skills")
    (folder / "references/ours.md").write_text("# Ours")
    assert problems() == ["company_skills/ours/references/ours.md: reference-unlisted"]


def test_references_are_compiled_and_never_run(company: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Code in references leaves no trace: no effect, no warning, no bytecode."""
    mark = company / "was-run"
    script = company / RAG / "scripts/sandbox_runner.py"
    script.write_text(f"open({str(mark)!r}, 'w')\nprint('ran')\nx = '\\d' is 1\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_package("company_skills")
    assert (mark.exists(), capfd.readouterr(), sorted(script.parent.iterdir())) == (False, ("", ""), [script])


def test_large_references_are_read_to_the_end(company: Path) -> None:
    """A fault beyond the first page is found."""
    (company / CONFIG).write_text("word " * 200_000 + "\n" + "```\n")
    assert problems() == [f"{CONFIG}:2: markdown-invalid"]


def test_a_package_that_cannot_be_imported_fails() -> None:
    """A wrong name must not look like a package without faults."""
    with pytest.raises(SourceError, match="no_such_skills"):
        check_package("no_such_skills")
