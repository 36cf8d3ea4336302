"""`skillshelf new`: a skill to begin with."""

import argparse
import keyword
import os

from skillshelf.cli._output import Output, complain, relative
from skillshelf.cli._templates import CODE_GUIDE, CODE_SKILL, DETAILS, SKILL
from skillshelf.files import NotPlainFile, create_folder
from skillshelf.lint import check_name, suggest

EXAMPLES = """
  skillshelf new pdf-forms                      .skillshelf/skills/pdf-forms/SKILL.md
  skillshelf new pdf-forms --in .claude/skills  .claude/skills/pdf-forms/SKILL.md
  skillshelf new graph-rag --code src/my_skills a subpackage with skill.py and references/
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="lowercase letters, digits and single hyphens")
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--in", metavar="DIR", dest="parent", help="the folder to make the skill's folder in")
    place.add_argument("--code", metavar="PACKAGE_DIR", help="make a code skill: a subpackage of this package")


def run(args: argparse.Namespace, out: Output) -> int:
    fault = _find_name_fault(args.name)
    if fault:
        complain(f"skillshelf new: {fault}. Try: skillshelf new {suggest(args.name)}")
        return 2
    if args.code:
        folder, files = os.path.join(args.code, _module(args.name)), _code_files(args.name)
    else:
        parent = args.parent or os.path.join(args.workspace, ".skillshelf", "skills")
        folder, files = os.path.join(parent, args.name), _skill_files(args.name)
        if not args.parent and not _lies_in(args.workspace, parent):
            # A clone may bring the link. A folder named with --in is the user's own choice.
            complain(
                f"skillshelf new: {relative(os.path.abspath(parent))} is a link out of the workspace. Use --in DIR."
            )
            return 1
    try:
        made = []
        if args.code and not os.path.lexists(args.code):
            made += _create(args.code, {"__init__.py": ""})
        made += _create(folder, files)
    except FileExistsError:
        complain(f"skillshelf new: {relative(os.path.abspath(folder))} is there already; nothing was changed.")
        return 1
    except (OSError, NotPlainFile) as error:
        reason = error.strerror if isinstance(error, OSError) else error.reason
        complain(f"skillshelf new: {relative(os.path.abspath(folder))} cannot be written: {reason}.")
        return 1
    _say_what_next(args, folder, made, out)
    return 0


def _lies_in(workspace: str, folder: str) -> bool:
    """Return True if a folder, with links followed, is in the workspace."""
    root = os.path.realpath(workspace)
    return os.path.commonpath([root, os.path.realpath(folder)]) == root


def _find_name_fault(name: str) -> str:
    if not name.strip():
        return "the name is blank"
    faults = check_name(name)
    return faults[0].message if faults else ""


def _skill_files(name: str) -> dict[str, str]:
    title = name.replace("-", " ").capitalize()
    return {"SKILL.md": SKILL.format(name=name, title=title), "references/details.md": DETAILS.format(title=title)}


def _code_files(name: str) -> dict[str, str]:
    title = name.replace("-", " ").capitalize()
    camel = "".join(word.capitalize() for word in name.split("-"))
    skill = CODE_SKILL.format(name=name, cls=camel if camel[0].isalpha() else f"A{camel}")
    return {"__init__.py": "", "skill.py": skill, "references/guide.md": CODE_GUIDE.format(title=title)}


def _module(name: str) -> str:
    module = name.replace("-", "_")
    return module if module.isidentifier() and not keyword.iskeyword(module) else f"skill_{module}"


def _create(folder: str, files: dict[str, str]) -> list[str]:
    """Create a new folder with these files and return their paths. Raises FileExistsError if the folder exists."""
    create_folder(folder, {path: text.encode() for path, text in files.items()})
    return [os.path.join(folder, path) for path in files]


def _say_what_next(args: argparse.Namespace, folder: str, made: list[str], out: Output) -> None:
    shown = relative(os.path.abspath(folder))
    for path in made:
        out.print(relative(os.path.abspath(path)))
    out.print()
    if args.code:
        package = os.path.basename(os.path.abspath(args.code))
        out.print("Fill in skill.py and the guide. Let a test keep the skill complete:")
        out.print(f'  skillshelf.testing.check_package("{package}")')
    else:
        out.print("Write the description first: it is all a model sees before it loads the skill. Then run")
        out.print(f"  skillshelf check {shown}")
