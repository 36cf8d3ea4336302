"""From the words on the command line to a command.

Each is a module of its name, with EXAMPLES, `add_arguments(parser)` and `run(args, out)`, imported when it is named.
"""

import argparse
import io
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, NoReturn

from skillshelf import __version__
from skillshelf.cli._output import Output, complain
from skillshelf.errors import SkillError, SkillNotFoundError, SourceError
from skillshelf.text import clean

_COMMANDS = {
    "list": "name every skill on the shelf",
    "show": "show a skill, or one of its references",
    "search": "find the skills that fit a task",
    "check": "check skills against the format, and their references",
    "listing": "print the section that goes into the system prompt",
    "cost": "weigh the skills in tokens",
    "why": "say why a skill is on the shelf, or is not",
    "new": "start a skill",
    "trust": "look at what a workspace brings, and say what the agent may use",
    "chat": "talk with an agent that uses the skills",
    "eval": "try out skills on cases, and measure what they bring and cost",
    "serve": "serve the skills to other programs over MCP",
    "conformance": "try every way in with the same scenario",
}
_EXAMPLES = """
examples:
  skillshelf new pdf-forms              start a skill in .skillshelf/skills/
  skillshelf list                       what is on the shelf
  skillshelf check                      what is wrong with it
  skillshelf why pdf-forms              why a skill is there, or is not
  skillshelf chat                       an agent that uses it

`skillshelf COMMAND --help` has more. Exit codes: 0 fine, 1 found faults, 2 wrong use.
"""
# What a shell reports for a process ended by these signals.
_INTERRUPTED, _BROKEN_PIPE = 130, 141


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit code. Wrong use and --help leave with SystemExit, as argparse has it."""
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        words = sys.argv[1:] if argv is None else argv
        code = _run(_parse(words))
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        _drop_output()
        return _BROKEN_PIPE
    except OSError as error:  # the current folder is gone, the disk is full
        complain(f"skillshelf: {error}")
        return 1
    except KeyboardInterrupt:
        _drop_output()
        return _INTERRUPTED


def _open_closed_streams() -> None:
    """A supervisor may close them. The files that are opened next would get their numbers, and be written to."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            taken = os.open(os.devnull, os.O_RDWR)
            if taken != number:
                os.dup2(taken, number)
                os.close(taken)
            setattr(sys, name, open(number, "w" if number else "r", closefd=False))  # noqa: SIM115


def _drop_output() -> None:
    """Nobody wants the rest. Python flushes once more at exit, which must neither complain nor wait for a reader."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(args: argparse.Namespace) -> int:
    # pydantic-ai greets whoever runs it in a terminal; the output of a command is its own.
    os.environ.setdefault("PYDANTIC_AI_NO_BANNER", "1")
    try:
        code: int = _module(args.command).run(args, Output(color=not args.no_color))
        return code
    except SkillNotFoundError as error:
        hint = f" Did you mean {', '.join(map(repr, error.closest))}?" if error.closest else ""
        complain(f"There is no skill named {error.name[:200]!r}.{hint} `skillshelf why NAME` says more.")
        return 1
    except SourceError as error:
        complain(f"skillshelf: {error}")
        return 2
    except SkillError as error:
        complain(str(error))
        return 1


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        super().error(clean(message))


def _module(command: str) -> Any:
    module = "eval" if command == "eval" else f"_{command}"
    return import_module(f"skillshelf.cli.{module}")


def _parse(words: Sequence[str]) -> argparse.Namespace:
    parser, commands = _parsers(words)
    args, unknown = parser.parse_known_args(words)
    if unknown:  # said with the usage of the command, which argparse itself does not
        commands[args.command].error(f"unrecognized arguments: {' '.join(unknown)}")
    return args


def _parsers(words: Sequence[str]) -> tuple[argparse.ArgumentParser, Mapping[str, argparse.ArgumentParser]]:
    """Know every command by name, and the options of those that are among the words."""
    parser = _Parser(
        prog="skillshelf",
        description="A shelf of skills for agents: find, check and weigh SKILL.md and code skills.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"skillshelf {__version__}")
    _add_common(parser, workspace=".", no_color=False)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=_Parser)
    for name, text in _COMMANDS.items():
        command = commands.add_parser(
            name,
            help=text,
            description=f"{text[0].upper()}{text[1:]}.",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        if name in words:
            _add_options(command, name)
    return parser, commands.choices


def _add_options(command: argparse.ArgumentParser, name: str) -> None:
    module = _module(name)
    command.epilog = f"examples:{module.EXAMPLES}"
    module.add_arguments(command)
    if name not in ("new", "serve"):
        command.add_argument("--json", action="store_true", help="for a program to read")
    # Given before the command or after it; what is not given here leaves what was given there.
    _add_common(command, workspace=argparse.SUPPRESS, no_color=argparse.SUPPRESS)


def _add_common(parser: argparse.ArgumentParser, workspace: str, no_color: object) -> None:
    parser.add_argument(
        "-C", "--workspace", metavar="DIR", default=workspace, help="the folder to look for skills in (.)"
    )
    parser.add_argument("--no-color", action="store_true", default=no_color, help="no colours, as with NO_COLOR")
