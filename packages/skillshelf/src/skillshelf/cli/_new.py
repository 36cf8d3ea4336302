"""`skillshelf new`: create a skill, or a project with a package of skills, from a template."""

import argparse
import hashlib
import keyword
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from skillshelf.cli._errors import CommandError
from skillshelf.cli._output import Output, complain
from skillshelf.cli._parsers import Parser
from skillshelf.errors import TrustError
from skillshelf.files import NotPlainFile, create_folder, is_at_or_inside
from skillshelf.lint import check_name, suggest_name
from skillshelf.skillmd.templates import fill_code_skill, fill_project, fill_skill, module_name
from skillshelf.sources.workspace import choose_workspace, relative

EXAMPLES = """
  skillshelf new pdf-forms                      .agents/skills/pdf-forms/SKILL.md
  skillshelf new pdf-forms --in .claude/skills  .claude/skills/pdf-forms/SKILL.md
  skillshelf new graph-rag --code src/my_skills a subpackage with skill.py and references/
  skillshelf new --package my_skills rag browser  a project to install, with tests and evals, and two skills
"""
_EXAMPLE_SKILL = "team-guide"
# Names of packages that would hide another one, or be hidden.
_TAKEN_PACKAGES = frozenset({"skillshelf", "tests", "evals", "src"})


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "names",
        metavar="NAME",
        nargs="*",
        help="the skill's name: lowercase letters, digits and single hyphens; with --package, any number of them",
    )
    parser.add_argument(
        "--package",
        metavar="PACKAGE",
        dest="project",
        help=f"create a project with a package of Python skills to install (with the skill {_EXAMPLE_SKILL} if you "
        f"name none)",
    )
    place = parser.add_mutually_exclusive_group()
    parser.note_argument(
        place.add_argument(
            "--in", metavar="DIR", dest="parent", help="the folder to create the skill's or project's folder in"
        )
    )
    parser.note_argument(
        place.add_argument("--code", metavar="PACKAGE_DIR", help="create a Python skill: a subpackage of this package")
    )


def run(args: argparse.Namespace, out: Output) -> int:
    if args.project is not None and args.code:
        args.parser.error("--package and --code cannot be used together; give one of them")
    if args.project is None and len(args.names) != 1:
        args.parser.error("give one NAME, or --package PACKAGE for a project with several skills")
    for name in args.names:
        problem = _find_name_problem(name, args.names)
        if problem:
            raise CommandError(f"{problem}.", f"Try: skillshelf new {suggest_name(name)}", code="invalid-name")

    if args.project is not None:
        draft = _draft_project(args)
    elif args.code:
        draft = _draft_code_skill(args.names[0], args.code)
    else:
        draft = _draft_skill(args.names[0], args)
    created = _create(draft)
    next_steps = draft.next_steps
    if args.project is None and not args.code:  # only skills with a SKILL.md need an approval
        next_steps = _describe_next_steps(draft, needs_review=_approve(draft, args))
    if args.json:
        out.print_json({"names": list(draft.names), "path": os.path.abspath(draft.folder), "created": created})
        return 0
    for path in created:
        out.print(relative(path))
    out.print()
    for line in next_steps:
        out.print(line)
    return 0


@dataclass(frozen=True, slots=True)
class _NewFiles:
    """Folders and files to create, and what the user does next."""

    names: Sequence[str]
    """The skills in it."""
    folder: str
    folders: dict[str, dict[str, str]]
    """The text of each file by its path below its folder."""
    next_steps: Sequence[str] = ()


def _find_name_problem(name: str, names: Sequence[str]) -> str:
    """Return the first rule that a name breaks, or an empty string."""
    if not name.strip():
        return "the name is blank"
    faults = check_name(name)
    if faults:
        return faults[0].message
    return f"{name} is given twice" if names.count(name) > 1 else ""


# -- a SKILL.md --------------------------------------------------------------------------------------------------------


def _draft_skill(name: str, args: argparse.Namespace) -> _NewFiles:
    root = relative(choose_workspace(args.workspace).root)
    parent = args.parent or os.path.join(root, ".agents", "skills")
    # A cloned repository may contain such a link. A folder named with --in is the user's own choice.
    if not args.parent and _leads_outside(parent, root):
        message = f"{relative(os.path.abspath(parent))} is a link out of the workspace."
        raise CommandError(message, "Use --in DIR.", code="outside-workspace", exit_code=1)
    folder = os.path.join(parent, name)
    return _NewFiles([name], folder, {folder: fill_skill(name)})


def _describe_next_steps(draft: _NewFiles, *, needs_review: bool) -> list[str]:
    first = "Write the description first: a model sees nothing else before it loads the skill. Then replace the steps,"
    check = f"  skillshelf check {relative(os.path.abspath(draft.folder))}"
    if not needs_review:
        return [first, "and check the skill:", check]
    approve = f"  skillshelf trust --yes {draft.names[0]}"
    return [first, "check the skill, and approve what you have made of it:", check, approve]


def _leads_outside(folder: str, workspace: str) -> bool:
    """Return True if a folder, with links followed, is not in the workspace."""
    root = os.path.realpath(workspace)
    target = os.path.realpath(folder)
    return not is_at_or_inside(target, root)


# -- a code skill ------------------------------------------------------------------------------------------------------


def _draft_code_skill(name: str, package_folder: str) -> _NewFiles:
    folder = os.path.join(package_folder, module_name(name))
    folders = {folder: fill_code_skill(name)}
    if not os.path.lexists(package_folder):
        folders = {package_folder: {"__init__.py": ""}, **folders}
    package = os.path.basename(os.path.abspath(package_folder))
    next_steps = (
        "Fill in skill.py and the guide. Once the package is installed, this names everything that is missing, and",
        "every sentence of the template that you have not replaced:",
        f"  skillshelf check --package {package}",
        "A test does the same with",
        f'  skillshelf.testing.check_package("{package}")',
    )
    return _NewFiles([name], folder, folders, next_steps)


# -- a project ---------------------------------------------------------------------------------------------------------


def _draft_project(args: argparse.Namespace) -> _NewFiles:
    package = args.project
    problem = _find_package_problem(package)
    if problem:
        hint = f"Try: skillshelf new --package {_suggest_package(package)}"
        raise CommandError(f"{problem}.", hint, code="invalid-name")

    folder = os.path.join(args.parent or args.workspace or os.curdir, package)
    names = args.names or [_EXAMPLE_SKILL]
    next_steps = (
        "Install it where skillshelf is installed, then see what is left to write:",
        f"  cd {relative(os.path.abspath(folder))}",
        "  pip install -e '.[dev]'",
        f"  skillshelf check --package {package}",
        "The project's test fails, too, until every sentence of the template is replaced. See README.md for more.",
    )
    return _NewFiles(names, folder, {folder: fill_project(package, names)}, next_steps)


def _find_package_problem(package: str) -> str:
    """Return why a package cannot have this name, or an empty string."""
    if not re.fullmatch("[a-z][a-z0-9_]{0,63}", package) or keyword.iskeyword(package):
        return f"{package!r} cannot be the name of a package: use lowercase letters, digits and underscores"
    if package in _TAKEN_PACKAGES or package in sys.stdlib_module_names:
        return f"there is a package {package!r} already"
    return ""


def _suggest_package(package: str) -> str:
    words = suggest_name(package).replace("-", "_")
    if words[0].isdigit() or _find_package_problem(words):
        return f"my_{words}"
    return words


# -- writing -----------------------------------------------------------------------------------------------------------


def _create(draft: _NewFiles) -> list[str]:
    """Create the folders with their files, and return the paths of the files. Raises CommandError.

    Each folder appears in one step, and none is created over an existing file or folder.
    """
    shown_folder = relative(os.path.abspath(draft.folder))
    created: list[str] = []
    try:
        for folder, files in draft.folders.items():
            create_folder(folder, {path: text.encode() for path, text in files.items()})
            created += [os.path.abspath(os.path.join(folder, path)) for path in files]
    except FileExistsError as error:
        message = f"{shown_folder} already exists; nothing was changed."
        raise CommandError(message, code="already-exists", exit_code=1) from error
    except (OSError, NotPlainFile) as error:
        reason = error.reason if isinstance(error, NotPlainFile) else error.strerror
        raise CommandError(f"{shown_folder} cannot be written: {reason}.", code="not-writable", exit_code=1) from error
    return created


def _approve(draft: _NewFiles, args: argparse.Namespace) -> bool:
    """Approve a new skill exactly as it was written: the user has just asked for it.

    Return False if it needs no review when it has changed: it is the user's own, or in a repository of theirs.
    """
    from skillshelf.shelf import project_sources
    from skillshelf.trust import Trust, TrustedSource

    written = {
        os.path.join(os.path.realpath(folder), path): hashlib.sha256(text.encode()).hexdigest()
        for folder, files in draft.folders.items()
        for path, text in files.items()
    }
    needs_review = False
    try:
        trust = Trust.open()
        for source in project_sources(choose_workspace(args.workspace)):
            if TrustedSource(source, trust).approve_writes(written):
                needs_review = trust.find_own(source.root) is None
    except TrustError as error:
        complain(f"{error} So it waits for your review: `skillshelf trust`.")
        return True
    return needs_review
