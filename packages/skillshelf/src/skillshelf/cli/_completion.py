"""`skillshelf completion`: a script with which a shell completes commands, options, paths and skill names."""

import argparse
import re
from typing import Any

from skillshelf.cli._output import Output
from skillshelf.cli._parsers import Parser
from skillshelf.cli._workspace import open_shelf

EXAMPLES = """
  skillshelf completion bash > ~/.local/share/bash-completion/completions/skillshelf
  skillshelf completion zsh > ~/.zfunc/_skillshelf     with `fpath+=~/.zfunc` before `compinit` in ~/.zshrc
  skillshelf completion fish > ~/.config/fish/completions/skillshelf.fish
"""
_SHELLS = ("bash", "zsh", "fish")
_LIST_SKILLS = "skillshelf completion --skills 2>/dev/null"
# Shells expand the words they complete, so a skill called `$(reboot)` must not get there.
_HARMLESS_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


def add_arguments(parser: Parser) -> None:
    wanted = parser.add_mutually_exclusive_group(required=True)
    shell = wanted.add_argument("shell", metavar="SHELL", nargs="?", choices=_SHELLS, help="bash, zsh or fish")
    skills = wanted.add_argument("--skills", action="store_true", help=argparse.SUPPRESS)  # the scripts call this
    parser.note_argument(shell)
    parser.note_argument(skills)


def run(args: argparse.Namespace, out: Output) -> int:
    if args.skills:
        for name in open_shelf(args).catalog:
            if _HARMLESS_NAME.fullmatch(name):
                out.print(name)
        return 0

    import shtab

    from skillshelf.cli._main import list_installed_commands, make_parser

    out.print(shtab.complete(make_parser(list_installed_commands(), _CompletingParser), args.shell))
    return 0


class _CompletingParser(Parser):
    """A parser whose arguments know how shtab completes their values: by the name that --help shows for them."""

    def add_subparsers(self, **options: Any) -> Any:
        options.pop("help", None)  # shtab leaves out what --help does not show
        return super().add_subparsers(**options)

    def note_argument(self, argument: argparse.Action) -> None:
        import shtab

        super().note_argument(argument)
        completions = {
            "DIR": shtab.DIRECTORY,
            "PACKAGE_DIR": shtab.DIRECTORY,
            "SKILL": shtab.DIRECTORY,
            "FILE": shtab.FILE,
            "PATH": shtab.FILE,
            "NAME": shtab.cmd(_LIST_SKILLS),
        }
        if isinstance(argument.metavar, str) and argument.metavar in completions:
            setattr(argument, "complete", completions[argument.metavar])  # noqa: B010
