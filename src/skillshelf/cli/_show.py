"""`skillshelf show`: a skill's facts and instructions, or one of its references."""

import argparse
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from skillshelf.cli._output import Output, relative
from skillshelf.cli._workspace import as_json, open_shelf
from skillshelf.descriptor import SkillDescriptor
from skillshelf.shelf import Shelf
from skillshelf.text import clean_line
from skillshelf.turn import Loaded, Turn

EXAMPLES = """
  skillshelf show skill-authoring               what is known of a skill, and its instructions
  skillshelf show skill-authoring format.md     one of its references
  skillshelf show pdf@user                      a skill that another of its name comes before
  skillshelf show pdf | less                    in a pipe, the text as it is written
"""
_FACTS = ("category", "tools", "allowed_tools", "license", "compatibility", "disclosure", "arguments", "argument_hint")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the skill's name, or name@source")
    parser.add_argument("reference", metavar="REFERENCE", nargs="?", help="a listed reference: its path or file name")


def run(args: argparse.Namespace, out: Output) -> int:
    shelf = open_shelf(args)
    if args.reference:
        _show_reference(_pages(shelf, args.name, args.reference), args.json, out)
    else:
        skill, loaded = shelf.catalog[args.name], Turn(shelf).load(args.name, by="user")
        if args.json:
            out.print_json({**as_json(skill), "tokens": shelf.counter(loaded.text), "instructions": loaded.text})
        else:
            _show_skill(skill, loaded.text, shelf.counter(loaded.text), out)
    return 0


def _pages(shelf: Shelf, name: str, reference: str) -> Iterator[Loaded]:
    offset: int | None = 0
    while offset is not None:
        # A turn of its own for each page: a turn keeps what it loads, and a file may be larger than memory.
        page = Turn(shelf).load(name, reference, offset=offset, by="user")
        yield page
        offset = page.next_offset


def _show_reference(pages: Iterator[Loaded], json: bool, out: Output) -> None:
    first = next(pages)
    if json:
        text = "".join((first.text, *(page.text for page in pages)))
        facts = {field: getattr(first, field) for field in ("skill", "reference", "media_type", "size", "binary")}
        out.print_json({**facts, "text": text})
    elif first.binary:
        out.print(str(first))
    elif out.is_terminal and first.media_type == "text/markdown" and first.next_offset is None:
        _show_markdown(first.text, out)
    else:
        _write(out, chain((first,), pages))


def _write(out: Output, pages: Iterable[Loaded]) -> None:
    """Write all pages as the model gets them, with a line feed at the end."""
    for page in pages:
        out.write(page.text)
    if not page.text.endswith("\n"):
        out.write("\n")


def _show_skill(skill: SkillDescriptor, instructions: str, tokens: int, out: Output) -> None:
    out.print_styled(skill.name, "bold")
    out.print_styled(clean_line(skill.description))
    out.print()
    for label, value in _facts(skill, tokens):
        out.print_styled(f"{clean_line(label):14} {clean_line(value)}", "dim")
    out.print()
    if out.is_terminal:
        _show_markdown(instructions, out)
    else:
        out.print(instructions.rstrip("\n"))
    if skill.references:
        out.print()
        out.print_styled(f"References (skillshelf show {skill.name} REFERENCE)", "bold")
        for path in skill.references:
            out.print(f"- {path}")


def _facts(skill: SkillDescriptor, tokens: int) -> Iterator[tuple[str, str]]:
    yield "source", skill.source
    yield "location", relative(skill.location)
    yield "instructions", f"{tokens:,} tokens, {skill.size:,} bytes"
    for field in _FACTS:
        value: Any = getattr(skill, field)
        if value and value not in ("standard", "auto"):
            yield field.replace("_", "-"), " ".join(value) if isinstance(value, tuple) else value
    if not skill.user_invocable:
        yield "user-invocable", "false"
    for mapping in (skill.metadata, skill.fields):
        for key, value in mapping.items():
            yield key, str(value)


def _show_markdown(text: str, out: Output) -> None:
    from skillshelf.rendering import markdown

    out.print_rich(markdown(text))
