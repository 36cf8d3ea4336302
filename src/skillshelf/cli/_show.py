"""`skillshelf show`: a skill's facts and instructions, or one of its references."""

import argparse
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from skillshelf.cli._errors import CommandError
from skillshelf.cli._output import Output
from skillshelf.cli._parsers import Parser
from skillshelf.cli._workspace import open_shelf, skill_as_json
from skillshelf.descriptor import SkillDescriptor
from skillshelf.shelf import Shelf
from skillshelf.skill import Permission
from skillshelf.text import clean_line
from skillshelf.turn import Loaded, Turn
from skillshelf.workspace import relative

EXAMPLES = """
  skillshelf show skill-authoring               a skill's facts and its instructions
  skillshelf show skill-authoring format.md     one of its references
  skillshelf show pdf@user                      a skill that another one with its name shadows
  skillshelf show pdf | less                    in a pipe, the text as it is written
"""
_SHOWN_FIELDS = (
    "category",
    "allowed_tools",
    "license",
    "compatibility",
    "disclosure",
    "arguments",
    "argument_hint",
)
_DEFAULT_VALUES = ("standard", "auto")


def add_arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", help="the skill's name, or name@source")
    parser.add_argument("reference", metavar="REFERENCE", nargs="?", help="a listed reference: its path or file name")


def run(args: argparse.Namespace, out: Output) -> int:
    shelf = open_shelf(args)
    if args.name not in shelf.catalog:
        _explain_absence(shelf, args.name)
    if args.reference:
        _show_reference(_load_pages(shelf, args.name, args.reference), args.json, out)
        return 0
    skill = shelf.catalog[args.name]
    instructions = Turn(shelf).load(args.name, by="user").text
    tokens = shelf.counter(instructions)
    permissions = shelf.permissions_of(args.name)
    if args.json:
        facts = skill_as_json(skill)
        if skill.tools:
            facts["permissions"] = permissions
        out.print_json({**facts, "tokens": tokens, "instructions": instructions})
    else:
        from skillshelf.explain import describe_review  # loads the search and the approvals, which --json need not

        review = describe_review(shelf, shelf.catalog.find(args.name))
        _show_skill(skill, instructions, list(_list_facts(skill, tokens, permissions, str(review or ""))), out)
        _show_references(skill, args.attached, out)
    return 0


def _explain_absence(shelf: Shelf, name: str) -> None:
    """Raise CommandError if there is a reason why the skill isn't on the shelf."""
    from skillshelf.explain import explain_absence

    reason = explain_absence(shelf, name)
    if reason.code != "missing":
        raise CommandError(
            f"The skill {name!r} isn't available: {reason.message}.",
            f"Fix: {reason.fix}.",
            code="skill-not-found",
            exit_code=1,
            facts={"closest": []},
        )


def _load_pages(shelf: Shelf, name: str, reference: str) -> Iterator[Loaded]:
    offset: int | None = 0
    while offset is not None:
        # Each page gets its own turn: a turn keeps what it loads, and a file may be larger than memory.
        page = Turn(shelf).load(name, reference, offset=offset, by="user")
        yield page
        offset = page.next_offset


def _show_reference(pages: Iterator[Loaded], as_json: bool, out: Output) -> None:
    page = next(pages)
    if as_json:
        facts = {field: getattr(page, field) for field in ("skill", "reference", "media_type", "size", "binary")}
        rest = "".join(further.text for further in pages)
        out.print_json({**facts, "text": page.text + rest})
        return
    if page.binary:
        out.print(str(page))
        return
    if out.is_terminal and page.media_type == "text/markdown" and page.next_offset is None:
        _show_markdown(page.text, out)
        return

    out.write(page.text)
    for page in pages:
        out.write(page.text)
    if not page.text.endswith("\n"):
        out.write("\n")


def _show_skill(skill: SkillDescriptor, instructions: str, facts: Sequence[tuple[str, str]], out: Output) -> None:
    out.print_styled(skill.name, "bold")
    out.print_styled(clean_line(skill.description))
    out.print()
    for label, value in facts:
        out.print_styled(f"{clean_line(label):14} {clean_line(value)}", "dim")
    out.print()
    if out.is_terminal:
        _show_markdown(instructions, out)
    else:
        out.print(instructions.rstrip("\n"))


def _show_references(skill: SkillDescriptor, attached: Sequence[str], out: Output) -> None:
    """List the references with the command that shows one. It needs `--with` again if this skill came by it."""
    if not skill.references:
        return
    command = f"skillshelf show {skill.name} REFERENCE"
    for text in attached:
        if text.partition("=")[0] == skill.name:
            command += f" --with {shlex.quote(text)}"
    out.print()
    out.print_styled(f"References ({command})", "bold")
    for path in skill.references:
        out.print(f"- {path}")


def _list_facts(
    skill: SkillDescriptor, tokens: int, permissions: Mapping[str, Permission], review: str
) -> Iterator[tuple[str, str]]:
    yield "source", skill.source
    yield "location", relative(skill.location)
    if review:
        yield "review", review
    yield "instructions", f"{tokens:,} tokens, {skill.size:,} bytes"
    if skill.tools:
        yield "tools", ", ".join(f"{name} ({permissions.get(name, 'not available')})" for name in skill.tools)
    for field in _SHOWN_FIELDS:
        value: Any = getattr(skill, field)
        if not value or value in _DEFAULT_VALUES:
            continue
        label = field.replace("_", "-")
        yield label, " ".join(value) if isinstance(value, tuple) else value
    if not skill.user_invocable:
        yield "user-invocable", "false"
    for mapping in (skill.metadata, skill.fields):
        for key, value in mapping.items():
            yield key, str(value)


def _show_markdown(text: str, out: Output) -> None:
    from skillshelf.rendering import markdown

    out.print_rich(markdown(text))
