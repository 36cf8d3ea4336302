"""Test `reference-unnamed`: which texts count as naming a reference."""

from pathlib import Path

import pytest

from skillshelf.lint import check_skill

Files = dict[str, str]

NAMED: dict[str, Files] = {
    "by its path": {"SKILL.md": "Load references/a.md."},
    "by its bare name": {"SKILL.md": "Load `a.md` first."},
    "with an anchor": {"SKILL.md": "Read [the part](references/a.md#part)."},
    "in brackets": {"SKILL.md": "See [[references/a.md]]."},
    "with an underscore first": {"SKILL.md": "Load `references/_in/a.md`.", "references/_in/a.md": "", "x/a.md": ""},
    "in italics": {"SKILL.md": "Load _a.md_ first."},
    "with other capitals": {"SKILL.md": "Load A.MD."},
    "between letters of another script": {"SKILL.md": "请先读a.md再继续。"},
    "behind a variable": {"SKILL.md": "Open ${SKILL_DIR}/references/a.md or <skill>/references/a.md."},
    "without its ending": {"SKILL.md": "Load references/a for details."},
    "without its ending, set apart": {"SKILL.md": "| topic | file |\n|---|---|\n| fields | `a` |"},
    "by a folder": {"SKILL.md": "Choose a file from references/tones/.", "references/tones/a.md": ""},
    "by its folder as a whole": {"SKILL.md": "See the `references/` folder."},
    "by a placeholder": {"SKILL.md": "Load references/<operation>.md."},
    "by a placeholder in braces": {"SKILL.md": "Load `references/{operation}.md`."},
    "by a star": {"SKILL.md": "Read references/*.md."},
    "by a prefix": {"SKILL.md": "| security | `sec-` |", "references/sec-a.md": ""},
    "by a chain": {
        "SKILL.md": "Start with index.md.",
        "references/index.md": "Then [b](b.md).",
        "references/b.md": "a.md",
    },
    "by a README beside it": {"SKILL.md": "Do it.", "references/README.md": "- a.md: all about it"},
    "by a command of the plugin": {"SKILL.md": "Do it.", "commands/go.md": "Read references/a.md."},
    "by the name of its folder": {"SKILL.md": "Load b.md. The `references/` folder has more.", "references/b.md": ""},
    "by the frontmatter": {"SKILL.md": "Do it.", "frontmatter": "compatibility: needs references/a.md\n"},
}


@pytest.mark.parametrize("how", NAMED)
def test_a_reference_can_be_named_in_many_ways(tmp_path: Path, how: str) -> None:
    """Each of these leads a model to the file."""
    files = NAMED[how]
    missing = {} if any(path.endswith("a.md") for path in files) else {"references/a.md": "# A\n"}
    assert find_unnamed(tmp_path, {**files, **missing}) == []


UNNAMED: dict[str, Files] = {
    "nothing names it": {"SKILL.md": "Do it."},
    "a word that is also its name": {"SKILL.md": "Write a test.", "references/a.md": ""},
    "part of a longer name": {"SKILL.md": "Load ba.md, a.mdx and aa."},
    "code that looks like a pattern": {"SKILL.md": "Print a[name] and a{i}."},
    "a pattern that would name everything": {"SKILL.md": "Write your answer to <name>.md or *.md."},
    "its folder, beside the names of others": {"SKILL.md": "In references/, load b.md.", "references/b.md": ""},
    "only a test names it": {"SKILL.md": "Do it.", "tests/test_a.py": "open('references/a.md')"},
    "only an eval names it": {"SKILL.md": "Do it.", "evals/evals.json": '{"files": ["references/a.md"]}'},
    "it names itself": {"SKILL.md": "Do it.", "references/a.md": "This is a.md."},
}


@pytest.mark.parametrize("how", UNNAMED)
def test_an_unnamed_reference_is_reported(tmp_path: Path, how: str) -> None:
    """A model has no reason to load it."""
    assert find_unnamed(tmp_path, {"references/a.md": "# A\n", **UNNAMED[how]}) == ["references/a.md"]


IMPORTED = {
    "import": ("run.py", "import helper\n", "scripts/helper.py"),
    "import inside a function": ("run.py", "def f():\n    import helper as h, os\n", "scripts/helper.py"),
    "from": ("run.py", "from helper import f\n", "scripts/helper.py"),
    "from the same folder": ("run.py", "from . import other, helper\n", "scripts/helper.py"),
    "from a package": ("run.py", "from lib.helper import f\n", "scripts/lib/helper.py"),
    "from a package, over lines": ("run.py", "from lib import (\n    x,\n    helper,\n)\n", "scripts/lib/helper.py"),
    "through __init__": ("run.py", "import lib\n", "scripts/lib/helper.py"),
    "require": ("run.js", "const h = require('./helper')\n", "scripts/helper.js"),
    "import in JavaScript": ("run.mjs", 'import { f } from "./lib/helper.mjs"\n', "scripts/lib/helper.mjs"),
    "TypeScript's .js": ("run.ts", "import { f } from './helper.js'\n", "scripts/helper.ts"),
    "an index": ("run.js", "require('./lib')\n", "scripts/lib/index.js"),
    "source": ("run.sh", '. "$(dirname "$0")/helper.sh"\n', "scripts/helper.sh"),
    "a call by name": ("run.sh", "python3 helper.py --all\n", "scripts/helper.py"),
    "a folder it opens": ("run.py", "for x in (ROOT / 'schemas').iterdir(): pass\n", "assets/schemas/a.json"),
}


@pytest.mark.parametrize("how", IMPORTED)
def test_a_script_names_the_files_it_imports_or_runs(tmp_path: Path, how: str) -> None:
    """The model runs the first script, and that one needs the second."""
    script, code, needed = IMPORTED[how]
    files = {"SKILL.md": f"Run scripts/{script}.", f"scripts/{script}": code, needed: ""}
    if how == "through __init__":
        files["scripts/lib/__init__.py"] = "from .helper import f\n"
    assert find_unnamed(tmp_path, files) == []
    # If both are unused, reporting one of them is enough.
    assert len(find_unnamed(tmp_path / "unused", {**files, "SKILL.md": "Do it."})) == 1


@pytest.mark.parametrize(
    "path",
    [
        "scripts/tests/data/a.json",
        "scripts/test_run.py",
        "scripts/run.test.ts",
        "scripts/run_test.go",
        "scripts/conftest.py",
        "scripts/__init__.py",
        "scripts/requirements.txt",
        "scripts/package.json",
        "scripts/package-lock.json",
        "scripts/uv.lock",
        "scripts/run.d.mts",
        "assets/LICENSE",
        "references/licenses/Apache-2.0.txt",
        "assets/Inter-LICENSE.txt",
        "references/README.md",
    ],
)
def test_tests_and_packaging_need_no_name(tmp_path: Path, path: str) -> None:
    """No model should load them."""
    assert find_unnamed(tmp_path, {"SKILL.md": "Do it.", path: ""}) == []


@pytest.mark.parametrize("path", ["references/security.md", "references/ab-test.md", "references/license-rules.md"])
def test_a_guide_about_tests_or_licences_needs_a_name(tmp_path: Path, path: str) -> None:
    """It is a reference like any other."""
    assert find_unnamed(tmp_path, {"SKILL.md": "Do it.", path: ""}) == [path]


def test_only_the_first_of_unnamed_files_that_name_each_other_is_reported(tmp_path: Path) -> None:
    """Once that one is named, the model finds the rest."""
    files = {
        "SKILL.md": "Do it.",
        "references/b.md": "See c.md.",
        "references/c.md": "See d.md.",
        "references/d.md": "",
    }
    assert find_unnamed(tmp_path, files) == ["references/b.md"]
    circle = {**files, "references/d.md": "See b.md.", "references/a.md": "Alone."}
    reported = find_unnamed(tmp_path / "circle", circle)
    assert reported[0] == "references/a.md"
    assert len(reported) == 2


def test_a_bare_name_that_occurs_in_two_folders_names_neither(tmp_path: Path) -> None:
    """A model that uses it gets neither file. In a file beside one of them it means that one."""
    files = {"SKILL.md": "Load a.md.", "references/x/a.md": "", "references/y/a.md": ""}
    assert find_unnamed(tmp_path, files) == ["references/x/a.md", "references/y/a.md"]
    index = {**files, "SKILL.md": "Load references/x/index.md.", "references/x/index.md": "Then a.md."}
    assert find_unnamed(tmp_path / "beside", index) == ["references/y/a.md"]


def test_patterns_beyond_the_limit_name_nothing(tmp_path: Path) -> None:
    """Each is compared with every file: a text full of patterns would keep a check busy."""
    paths = [f"references/a{number}-x.md" for number in range(500)]
    patterns = [path.replace("x.md", "*.md") for path in paths]
    files = dict.fromkeys(paths, "")
    assert find_unnamed(tmp_path / "few", {"SKILL.md": " ".join(patterns), **files}) == []
    patterns += [f"b{number}*.md" for number in range(10_000)]
    assert find_unnamed(tmp_path / "many", {"SKILL.md": " ".join(patterns), **files})


def find_unnamed(folder: Path, files: Files) -> list[str]:
    """Write a skill, and return the reported references."""
    for path, text in files.items():
        file = folder / "skill" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if path == "SKILL.md":
            text = f"---\nname: skill\ndescription: Does it.\n{files.get('frontmatter', '')}---\n\n{text}\n"
        if path != "frontmatter":
            file.write_text(text)
    notes = check_skill(folder / "skill")
    return [note.path.partition("/skill/")[2] for note in notes if note.code == "reference-unnamed"]
