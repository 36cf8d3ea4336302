"""The entry point: from the words on the command line to a command and its exit code.

Each command is a module with EXAMPLES, `add_arguments(parser)` and `run(args, out)`. A module is imported only if its
command is named, so that `skillshelf list` does not wait for the libraries of `skillshelf chat`. Other packages add
commands in the entry point group `skillshelf.commands`, as ours do with `chat` and `eval`.
"""

import argparse
import io
import os
import sys
from collections.abc import Collection, Sequence
from importlib import import_module
from types import ModuleType

from skillshelf import __version__
from skillshelf._import_path import leave_out_current_folder
from skillshelf.cli._errors import report_error
from skillshelf.cli._output import Output
from skillshelf.cli._parsers import (
    Parser,
    add_attach_option,
    add_package_option,
    add_python_option,
    add_shared_options,
    find_first_argument,
)
from skillshelf.errors import MissingExtraError, SkillError
from skillshelf.sources.entry_points import find_entry_points
from skillshelf.text.streams import clean_library_messages, discard_output, reopen_closed_streams

GROUPS = {
    "look": {
        "list": "list the skills on the shelf",
        "show": "show a skill, one of its references, or what the model sees of the shelf",
        "search": "find the skills that fit a task",
        "why": "explain why a skill is on the shelf, or is not",
        "cost": "show how many tokens each skill costs",
    },
    "get": {
        "add": "install skills from a repository, a site, a package or a folder, and pin them in skills.lock",
        "verify": "compare the installed skills with skills.lock, file by file",
        "sync": "bring the installed skills in line with skills.lock",
        "outdated": "list the installed skills that have a newer version",
        "update": "install newer versions, merged with your edits",
        "tree": "show where each installed skill came from, and whether it was edited",
        "remove": "remove installed skills",
    },
    "write": {
        "new": "create a skill",
        "check": "find mistakes in skills, and see how other agents load them",
        "eval": "run skills on test cases and measure their effect and their cost",
    },
    "use": {
        "chat": "talk to an agent that uses your skills",
        "serve": "serve the skills to other programs over MCP",
        "trust": "review the skills of a workspace and decide which the agent may use",
        "set": "choose how much the model sees of a skill, or switch it off",
    },
    "help": {
        "demo": "watch a skill at work: a scripted conversation, without a key",
        "doctor": "explain how skillshelf is set up here, and what is missing",
        "completion": "print a script for the completion of your shell",
    },
}
COMMANDS = {name: summary for group in GROUPS.values() for name, summary in group.items()}
_EXTRAS = {"chat": "chat", "eval": "evals"}
"""The extras whose packages have these commands."""
_ENTRY_POINTS = "skillshelf.commands"
_WITHOUT_JSON = ("demo", "serve", "completion")
_OPENING_THE_SHELF = ("list", "show", "search", "cost", "why", "set", "chat", "serve")
_USAGE = "skillshelf [-h] [--version] [--json] [-C DIR] COMMAND ..."
_DESCRIPTION = "A shelf of skills for agents: find, check and measure SKILL.md files and Python skills."
_EXAMPLES = """
examples:
  skillshelf new pdf-forms              create a skill in .agents/skills/
  skillshelf list                       list the skills on the shelf
  skillshelf check                      find mistakes in your skills
  skillshelf why pdf-forms              find out why a skill is there, or is not
  skillshelf add acme/skills            install skills of others
  skillshelf chat                       talk to an agent that uses them

`skillshelf COMMAND --help` describes a command. Exit codes: 0 success, 1 problems found, 2 wrong use.
"""
# A shell reports these exit codes for a process that SIGINT or SIGPIPE ended.
_INTERRUPTED = 130
_BROKEN_PIPE = 141
_TALKING_TO_SERVERS = ("chat", "eval", "serve")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code. --help and --version raise SystemExit, as usual with argparse."""
    if argv is None:  # a program that calls this itself keeps its import path
        leave_out_current_folder()
    reopen_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")

    words = sys.argv[1:] if argv is None else argv
    try:
        code = _run(words)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        discard_output(sys.stdout)
        return _BROKEN_PIPE
    except KeyboardInterrupt:
        discard_output(sys.stdout)
        return _INTERRUPTED


def _run(words: Sequence[str]) -> int:
    # pydantic-ai prints a banner in terminals, which does not belong in the output of a command.
    os.environ.setdefault("PYDANTIC_AI_NO_BANNER", "1")
    # Known before the words are parsed, because they may be the mistake that is reported.
    args = argparse.Namespace(
        command=None, workspace=None, json="--json" in words, packages=[], attached=[], python=None
    )
    try:
        _parse(words, args)
        if args.command in _TALKING_TO_SERVERS:  # the others need not wait for `logging`
            clean_library_messages()
        command = _import_command(args.command or "doctor")
        run = command.run if args.command else command.run_short
        code: int = run(args, Output())
        return code
    except BrokenPipeError:
        raise
    except (SkillError, OSError) as error:  # an OSError: the current folder is gone, the disk is full
        return report_error(error, args.command or "", as_json=args.json)


def _parse(words: Sequence[str], args: argparse.Namespace) -> None:
    """Set the values that the words give to the arguments. Raises ArgumentsError."""
    parser = make_parser([word for word in dict.fromkeys(words) if word in COMMANDS])
    position = find_first_argument(words, parser.flags)
    if position < len(words) and words[position] not in COMMANDS:
        added = list_added_commands()
        if words[position] not in added:
            parser.reject_command(words[position], [*COMMANDS, *added])
        parser = make_parser([words[position]])

    _, unknown = parser.parse_known_args(words, args)
    if unknown:
        args.parser.reject_unknown(unknown)
    if args.json and args.command in _WITHOUT_JSON:
        args.parser.error(f"`skillshelf {args.command}` has no --json")


def make_parser(loaded: Collection[str], parser_class: type[Parser] = Parser) -> Parser:
    """Make the parser of the command line, with the commands in `loaded`, whose modules it imports."""
    added = [] if loaded else list_added_commands()  # 1.5 ms, which only the help needs
    description = f"{_DESCRIPTION}\n\n{_list_commands(added)}"
    parser = parser_class(prog="skillshelf", usage=_USAGE, description=description, epilog=_EXAMPLES)
    parser.add_argument("--version", action="version", version=f"skillshelf {__version__}")
    add_shared_options(parser)

    # The description lists the commands by group, which argparse cannot.
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", prog="skillshelf", help=argparse.SUPPRESS)
    for name in loaded:
        module = _import_command(name)
        summary = COMMANDS.get(name) or (module.__doc__ or name).partition("\n")[0].rstrip(".")
        command = commands.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        command.epilog = f"examples:{module.EXAMPLES}"
        module.add_arguments(command)
        if name in _OPENING_THE_SHELF or name == "check":
            add_package_option(command)
        if name in _OPENING_THE_SHELF:
            add_attach_option(command)
        if name in _OPENING_THE_SHELF or name == "trust":
            add_python_option(command)
        add_shared_options(command, json=name not in _WITHOUT_JSON)
    return parser


def _list_commands(added: Sequence[str]) -> str:
    groups = []
    for title, commands in GROUPS.items():
        lines = [f"  {name:12}{summary}" for name, summary in commands.items()]
        groups.append("\n".join([f"{title}:", *lines]))
    if added:
        groups.append("\n".join(["of other packages:", *(f"  {name}" for name in added)]))
    return "\n\n".join(groups)


def list_added_commands() -> list[str]:
    """Return the names of the commands that other packages add, without `chat` and `eval`."""
    return [point.name for point in find_entry_points(_ENTRY_POINTS) if point.name not in COMMANDS]


def list_installed_commands() -> list[str]:
    """Return the names of the commands that can be run here, those of other packages among them."""
    added = [point.name for point in find_entry_points(_ENTRY_POINTS)]
    return [name for name in COMMANDS if name not in _EXTRAS] + added


def _import_command(name: str) -> ModuleType:
    if name in COMMANDS and name not in _EXTRAS:
        return import_module(f"skillshelf.cli._{name}")
    for point in find_entry_points(_ENTRY_POINTS):
        if point.name == name:
            module: ModuleType = point.load()
            return module
    raise MissingExtraError(f"skillshelf {name}", _EXTRAS[name])
