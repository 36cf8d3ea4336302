"""A Markdown extension for the site: it puts the --help text of every command in place of `<!-- every command -->`."""

import argparse
import os
from collections.abc import Iterator

from markdown import Extension, Markdown
from markdown.preprocessors import Preprocessor

from skillshelf.cli._main import COMMANDS, make_parser

MARK = "<!-- every command -->"


class CommandHelp(Extension):
    def extendMarkdown(self, md: Markdown) -> None:
        # Before the code fences (25) are read.
        md.preprocessors.register(_InsertHelp(md), "command_help", priority=40)


class _InsertHelp(Preprocessor):
    def run(self, lines: list[str]) -> list[str]:
        if MARK not in lines:
            return lines
        at = lines.index(MARK)
        return [*lines[:at], *describe_commands(), *lines[at + 1 :]]


def describe_commands() -> Iterator[str]:
    """Yield a section for each command, and a smaller one for each of its own commands."""
    os.environ["COLUMNS"] = "80"
    for name, parser in find_commands(make_parser(list(COMMANDS))):
        yield from _section("###", name, parser)
        for inner, inner_parser in find_commands(parser):
            yield from _section("####", f"{name} {inner}", inner_parser)


def find_commands(parser: argparse.ArgumentParser) -> list[tuple[str, argparse.ArgumentParser]]:
    choices = [action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return [item for each in choices for item in each.items()]


def _section(heading: str, name: str, parser: argparse.ArgumentParser) -> list[str]:
    return [f"{heading} {name}", "", "```text", *parser.format_help().rstrip().split("\n"), "```", ""]


def makeExtension(**options: object) -> CommandHelp:
    return CommandHelp(**options)
