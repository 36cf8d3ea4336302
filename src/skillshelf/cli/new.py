"""`skillshelf new`: a skill to begin with."""

import argparse
import keyword
import os

from skillshelf.cli.output import Output, complain, relative
from skillshelf.cli.templates import CODE_GUIDE, CODE_SKILL, DETAILS, SKILL
from skillshelf.lint.names import check_name, suggest

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
    faults = check_name(args.name) if args.name.strip() else []
    if faults or not args.name.strip():
        reason = faults[0].message if faults else "the name is blank"
        complain(f"skillshelf new: {reason}. Try: skillshelf new {suggest(args.name)}")
        return 2
    if args.code:
        folder, files = os.path.join(args.code, _module(args.name)), _code_files(args.name)
    else:
        parent = args.parent or os.path.join(args.workspace, ".skillshelf", "skills")
        folder, files = os.path.join(parent, args.name), _skill_files(args.name)
    try:
        made = []
        if args.code and not os.path.lexists(args.code):
            made += _write(args.code, {"__init__.py": ""})
        made += _write(folder, files)
    except FileExistsError:
        complain(f"skillshelf new: {relative(os.path.abspath(folder))} is there already; nothing was changed.")
        return 1
    except OSError as error:
        complain(f"skillshelf new: {relative(os.path.abspath(folder))} cannot be written: {error.strerror}.")
        return 1
    _say_what_next(args, folder, made, out)
    return 0


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


def _write(folder: str, files: dict[str, str]) -> list[str]:
    """The paths written, into a folder that is new. Raises FileExistsError where it is not."""
    os.makedirs(os.path.dirname(folder) or ".", exist_ok=True)
    os.mkdir(folder)
    for path, text in files.items():
        target = os.path.join(folder, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "x", encoding="utf-8") as file:
            file.write(text)
    return [os.path.join(folder, path) for path in files]


def _say_what_next(args: argparse.Namespace, folder: str, made: list[str], out: Output) -> None:
    shown = relative(os.path.abspath(folder))
    for path in made:
        out.text(relative(os.path.abspath(path)))
    out.text()
    if args.code:
        package = os.path.basename(os.path.abspath(args.code))
        out.text("Fill in skill.py and the guide. Let a test keep the skill complete:")
        out.text(f'  skillshelf.testing.check_package("{package}")')
    else:
        out.text("Write the description first: it is all a model sees before it loads the skill. Then run")
        out.text(f"  skillshelf check {shown}")
