"""The texts of `skillshelf new`: a skill, a code skill, and a project. `<<…>>` marks what the author has to replace."""

_DESCRIPTION = "<<Say here what the skill does, and when to use it. Name the words and files people ask with.>>"

_GUIDE = """\
# $title

<<Write here what a model should know and cannot guess: rules, tables, examples.>> <<Give each subject its paragraph.>>
"""

SKILL = {
    "SKILL.md": f"""\
---
name: $name
description: {_DESCRIPTION}
---

# $title

1. Ask for what the task needs and the user has not said.
2. Do the task, and check the result.
3. Report what was done, and what could not be done.
""",
}

CODE_SKILL = {
    "__init__.py": "",
    "skill.py": f'''\
from importlib import resources

from skillshelf import BaseSkill, tool


class $cls(BaseSkill):
    name = "$name"
    description = "{_DESCRIPTION}"
    references = ("references/guide.md",)
    instructions = """
    1. Call `search_$module` with the words that matter in the question.
    2. If it finds nothing, load the reference `guide.md`.
    3. <<Say what to do with the answer, and what a good result looks like.>>
    """

    @tool
    def search_$module(self, words: str, limit: int = 3) -> list[str]:
        """Return the paragraphs of the guide that contain all of these words.

        Args:
            words: One or more words, in any order.
            limit: Return at most this many paragraphs.
        """
        guide = resources.files(__package__).joinpath("references/guide.md").read_text(encoding="utf-8")
        wanted = words.casefold().split()
        found = []
        for paragraph in guide.strip().split("\\n\\n"):
            if all(word in paragraph.casefold() for word in wanted):
                found.append(paragraph)
        return found[:limit]
''',
    "references/guide.md": _GUIDE,
}

# -- a project with a package of code skills ---------------------------------------------------------------------------


PROJECT = {
    "pyproject.toml": """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "$distribution"
version = "0.1.0"
description = "Skills for agents"
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["skillshelf>=$version"]

[project.optional-dependencies]
dev = ["pytest", "skillshelf[evals]"]

# By this entry point, skillshelf finds the skills wherever the package is installed.
[project.entry-points."skillshelf.skills"]
$package = "$package"

# The wheel holds every file below the package, references included.
[tool.hatch.build.targets.wheel]
packages = ["src/$package"]

[tool.hatch.build]
dev-mode-dirs = ["src"]

[tool.pytest.ini_options]
testpaths = ["tests"]
""",
    "README.md": """\
# $distribution

A package of skills for agents, made for [skillshelf](https://pypi.org/project/skillshelf/).

$skills

The skills are on the shelf of every workspace once the package is installed where skillshelf is:

```sh
pip install -e '.[dev]'
skillshelf list
```

The test and `check` name what is not complete. Both fail until every sentence of the template is replaced:

```sh
pytest
skillshelf check --package $package
```

The cases in `evals/` need no key, because a script plays the model:

```sh
skillshelf eval --trust-workspace
```

`.github/workflows/skills.yml` runs all of this for each change, and builds the wheel. Elsewhere, run its commands.

Each skill has a folder in `src/$package`: its class in `skill.py`, and in `references/` the files that a model can
load. A public method marked with `@tool` is a tool. `skillshelf new NAME --code src/$package` adds a skill.
""",
    "tests/test_skills.py": '''\
from importlib import resources

from skillshelf.testing import check_package

$imports


def test_skills_are_complete() -> None:
    """Every problem has a line in the message: files, tools, instructions, and sentences of the template."""
    check_package("$package")


$tests
''',
    "evals/cases.yaml": """\
# A script plays the model, so these cases need no key. They show that the skills do their part.
# Without `script`, a case asks the model that --model names.
cases:
$cases""",
    ".github/workflows/skills.yml": """\
name: skills
on: [push, pull_request]

jobs:
  check:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with: { python-version: "3.12" }
      - run: pip install -e '.[dev]'
      - run: skillshelf check --package $package --format github
      - run: pytest
      - run: skillshelf eval --trust-workspace --github
      - run: pip wheel --no-deps --wheel-dir dist .
      # The same check where nothing but the wheel is installed: every reference is in it.
      - run: |
          python -m venv "$$RUNNER_TEMP/clean"
          . "$$RUNNER_TEMP/clean/bin/activate"
          pip install dist/*.whl
          skillshelf check --package $package --format github
      - uses: actions/upload-artifact@v4
        with: { name: wheel, path: dist/*.whl }
""",
    ".gitignore": """\
__pycache__/
.venv/
dist/
""",
}

TEST_IMPORT = "from $package.$module.skill import $cls"

TEST = """\
def test_${module}_finds_each_paragraph_by_its_words() -> None:
    guide = resources.files("$package.$module").joinpath("references/guide.md").read_text(encoding="utf-8")
    for paragraph in guide.strip().split("\\n\\n"):
        assert paragraph in $cls().search_$module(paragraph, limit=1000)\
"""

CASE = """\
  - name: $name is loaded and searched
    skill: $name
    code_skills: ["$package.$module.skill:$cls"]
    prompt: What does the guide say about deadlines?
    script:
      - {tool: load_skill_instructions, arguments: {skill_name: $name}}
      - {tool: search_$module, arguments: {words: deadline}}
      - {tool: load_skill_instructions, arguments: {skill_name: $name, reference: guide.md}}
      - The guide says so.
    checks:
      - listing_contains: $name
      - skill_loaded
      - tool_called: search_$module
      - reference_loaded: guide.md
"""

README_ENTRY = "- `$name`: `src/$package/$module`"
