"""`skillshelf new`: create a skill from a template."""

import argparse
import keyword
import os

from skillshelf.cli._output import Output, complain, relative
from skillshelf.cli._parsers import Parser
from skillshelf.files import NotPlainFile, create_folder
from skillshelf.lint import check_name, suggest_name

EXAMPLES = """
  skillshelf new pdf-forms                      .skillshelf/skills/pdf-forms/SKILL.md
  skillshelf new pdf-forms --in .claude/skills  .claude/skills/pdf-forms/SKILL.md
  skillshelf new graph-rag --code src/my_skills a subpackage with skill.py and references/
"""

# Each template passes `skillshelf check` as it is.
_SKILL = """\
---
name: {name}
description: Say here what the skill does. Use when … name the words, files and errors that people ask with.
---

# {title}

1. Write the steps to follow, one per line, each starting with a verb.
2. Say what a good result looks like, and what to do when a step fails.
3. Load the reference `details.md` for details that are rarely needed.
"""

_DETAILS = """\
# {title}: details

Tables, long examples, special cases. A model reads this file only when the instructions tell it to.
"""

_CODE_SKILL = '''\
from skillshelf import BaseSkill, tool


class {cls}Skill(BaseSkill):
    name = "{name}"
    description = "Say here what the skill does. Use when … name the words, files and errors that people ask with."
    references = ("references/guide.md",)
    instructions = """
    Say when to call `lookup`, and what to do with its answer. For special cases load the reference `guide.md`.
    """

    @tool
    def lookup(self, question: str, limit: int = 5) -> list[str]:
        """Say what the model gets from this call.

        Args:
            question: What to look up, in a sentence.
            limit: At most so many answers.
        """
        return [f"Nothing is known about {{question!r}} yet."][:limit]
'''

_CODE_GUIDE = """\
# {title}: guide

Tables, long examples, special cases. A model reads this file only when the instructions tell it to.
"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", help="lowercase letters, digits and single hyphens")
    place = parser.add_mutually_exclusive_group()
    parser.note_argument(
        place.add_argument("--in", metavar="DIR", dest="parent", help="the folder to create the skill's folder in")
    )
    parser.note_argument(
        place.add_argument("--code", metavar="PACKAGE_DIR", help="create a Python skill: a subpackage of this package")
    )


def run(args: argparse.Namespace, out: Output) -> int:
    problem = _find_name_problem(args.name)
    if problem:
        complain(f"skillshelf new: {problem}. Try: skillshelf new {suggest_name(args.name)}")
        return 2

    if args.code:
        folder = os.path.join(args.code, _module_name(args.name))
        files = _fill_code_templates(args.name)
    else:
        parent = args.parent or os.path.join(args.workspace, ".skillshelf", "skills")
        # A cloned repository may contain such a link. A folder named with --in is the user's own choice.
        if not args.parent and not _is_inside(args.workspace, parent):
            complain(
                f"skillshelf new: {relative(os.path.abspath(parent))} is a link out of the workspace. Use --in DIR."
            )
            return 1
        folder = os.path.join(parent, args.name)
        files = _fill_skill_templates(args.name)

    shown_folder = relative(os.path.abspath(folder))
    created: list[str] = []
    try:
        if args.code and not os.path.lexists(args.code):
            created += _create(args.code, {"__init__.py": ""})
        created += _create(folder, files)
    except FileExistsError:
        complain(f"skillshelf new: {shown_folder} already exists; nothing was changed.")
        return 1
    except OSError as error:
        complain(f"skillshelf new: {shown_folder} cannot be written: {error.strerror}.")
        return 1
    except NotPlainFile as error:
        complain(f"skillshelf new: {shown_folder} cannot be written: {error.reason}.")
        return 1

    for path in created:
        out.print(relative(os.path.abspath(path)))
    out.print()
    _print_next_steps(args, shown_folder, out)
    return 0


def _find_name_problem(name: str) -> str:
    """Return the first rule that a name breaks, or an empty string."""
    if not name.strip():
        return "the name is blank"
    faults = check_name(name)
    return faults[0].message if faults else ""


def _is_inside(workspace: str, folder: str) -> bool:
    """Return True if a folder, with links followed, is in the workspace."""
    root = os.path.realpath(workspace)
    return os.path.commonpath([root, os.path.realpath(folder)]) == root


def _fill_skill_templates(name: str) -> dict[str, str]:
    title = _make_title(name)
    return {"SKILL.md": _SKILL.format(name=name, title=title), "references/details.md": _DETAILS.format(title=title)}


def _fill_code_templates(name: str) -> dict[str, str]:
    class_name = "".join(word.capitalize() for word in name.split("-"))
    if not class_name[0].isalpha():
        class_name = f"A{class_name}"
    return {
        "__init__.py": "",
        "skill.py": _CODE_SKILL.format(name=name, cls=class_name),
        "references/guide.md": _CODE_GUIDE.format(title=_make_title(name)),
    }


def _make_title(name: str) -> str:
    return name.replace("-", " ").capitalize()


def _module_name(skill: str) -> str:
    module = skill.replace("-", "_")
    if module.isidentifier() and not keyword.iskeyword(module):
        return module
    return f"skill_{module}"


def _create(folder: str, files: dict[str, str]) -> list[str]:
    """Create a new folder with these files and return their paths. Raises FileExistsError if the folder exists."""
    create_folder(folder, {path: text.encode() for path, text in files.items()})
    return [os.path.join(folder, path) for path in files]


def _print_next_steps(args: argparse.Namespace, shown_folder: str, out: Output) -> None:
    if args.code:
        package = os.path.basename(os.path.abspath(args.code))
        out.print("Fill in skill.py and the guide. Let a test check that the skill stays complete:")
        out.print(f'  skillshelf.testing.check_package("{package}")')
    else:
        out.print("Write the description first: a model sees nothing else before it loads the skill. Then run")
        out.print(f"  skillshelf check {shown_folder}")
