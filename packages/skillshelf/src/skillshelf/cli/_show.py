"""`skillshelf show`: a skill's facts and instructions, one of its references, or what the model sees of the shelf."""

import argparse
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from skillshelf.cli._errors import CommandError
from skillshelf.cli._output import Output, complain
from skillshelf.cli._parsers import Parser, add_listing_options
from skillshelf.cli._workspace import open_shelf, skill_as_json
from skillshelf.listing import Listing
from skillshelf.settings import load_settings
from skillshelf.shelf import Loaded, Shelf, Turn, list_references
from skillshelf.skills import Permission, SkillDescriptor
from skillshelf.sources.workspace import relative
from skillshelf.text import clean_line, count_noun

EXAMPLES = """
  skillshelf show skill-authoring               a skill's facts and its instructions
  skillshelf show skill-authoring format.md     one of its references
  skillshelf show pdf@user                      a skill that another one with its name shadows
  skillshelf show pdf | less                    in a pipe, the text as it is written
  skillshelf show --prompt                      the listing of all skills, as the model gets it
  skillshelf show --prompt pdf                  one skill's entry in it
  skillshelf show --prompt --for "fill in a form"   the listing for a conversation that begins like this
"""
_SHORTENED = {
    "description": "with a shortened description",
    "references": "without all references",
    "instructions": "without the instructions that should be shown",
    "omitted": "left out",
}
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
    parser.add_argument("name", metavar="NAME", nargs="?", help="the skill's name, or name@source")
    parser.add_argument("reference", metavar="REFERENCE", nargs="?", help="a listed reference: its path or file name")
    parser.add_argument(
        "--prompt", action="store_true", help="show the listing in the system prompt, or the entry of NAME in it"
    )
    parser.add_argument(
        "--for",
        dest="message",
        metavar="TEXT",
        help="with --prompt: describe first what fits this message, if not all skills fit",
    )
    add_listing_options(parser)


def run(args: argparse.Namespace, out: Output) -> int:
    _check_arguments(args)
    shelf = open_shelf(args)
    if args.name is not None and args.name not in shelf.catalog:
        from skillshelf.explain import explain_unavailable  # loads the approvals, which only a mistake pays

        raise explain_unavailable(shelf, args.name)
    if args.prompt:
        _show_prompt(shelf, args, out)
    elif args.reference:
        _show_reference(_load_pages(shelf, args.name, args.reference), args.json, out)
    else:
        _show_skill(shelf, args, out)
    return 0


def _check_arguments(args: argparse.Namespace) -> None:
    """Raise CommandError for arguments that mean nothing together."""
    if not args.prompt and args.name is None:
        raise CommandError("Which skill?", "Give its NAME, or --prompt for what the model sees of all skills.")
    if args.prompt and args.reference:
        raise CommandError("A reference is not in the prompt.", "Leave out --prompt, or the reference.")
    if not args.prompt and not (args.message is args.disclosure is args.budget is None):
        raise CommandError("--for, --disclosure and --budget work only with --prompt.")


# -- the prompt --------------------------------------------------------------------------------------------------------


def _show_prompt(shelf: Shelf, args: argparse.Namespace, out: Output) -> None:
    settings = load_settings({"disclosure": args.disclosure, "budget": args.budget})
    if args.message is None:
        listing = shelf.listing(settings.disclosure, settings.budget)
    else:
        listing = shelf.route(args.message, disclosure=settings.disclosure, budget=settings.budget).listing
    if args.name is not None:
        listing = _find_entry(listing, shelf.catalog[args.name].name, shelf)

    if args.json:
        shortened = [{"name": entry.name, "what": entry.what} for entry in listing.shortened]
        facts = {"text": listing.text, "tokens": listing.tokens, "shortened": shortened, "full": list(listing.full)}
        out.print_json(facts)
        return
    out.write(listing.text)
    if sys.stderr.isatty():
        complain(_summarize(listing))


def _find_entry(listing: Listing, name: str, shelf: Shelf) -> Listing:
    """Return the part of a listing that is about one skill. Raises CommandError if there is none."""
    text = "".join(entry.render() for entry in listing.entries if entry.name == name)
    if not text:
        raise CommandError(
            f"The listing leaves out {name!r}.", f"`skillshelf why {name}` says why.", code="not-listed", exit_code=1
        )
    return Listing(
        text,
        shelf.counter(text),
        tuple(entry for entry in listing.shortened if entry.name == name),
        tuple(full for full in listing.full if full == name),
    )


def _summarize(listing: Listing) -> str:
    """Return the price of the listing, and what it leaves out."""
    names: dict[str, list[str]] = {}
    for entry in listing.shortened:
        names.setdefault(entry.what, []).append(entry.name)
    parts = [f"\n{listing.tokens:,} tokens in every call", f"{count_noun(len(listing.full), 'skill')} in full"]
    for what, skills in names.items():
        parts.append(f"{count_noun(len(skills), 'skill')} {_SHORTENED[what]}")
    return "; ".join(parts)


# -- a reference -------------------------------------------------------------------------------------------------------


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


# -- a skill -----------------------------------------------------------------------------------------------------------


def _show_skill(shelf: Shelf, args: argparse.Namespace, out: Output) -> None:
    skill = shelf.catalog[args.name]
    instructions = Turn(shelf).load(args.name, by="user").text
    tokens = shelf.counter(instructions)
    permissions = shelf.permissions_of(args.name)
    if args.json:
        facts = skill_as_json(skill)
        if skill.tools:
            facts["permissions"] = permissions
        out.print_json({**facts, "tokens": tokens, "instructions": instructions})
        return

    from skillshelf.explain import describe_review  # loads the search and the approvals, which --json need not

    review = str(describe_review(shelf, shelf.catalog.find(args.name)) or "")
    out.print_styled(skill.name, "bold")
    out.print_styled(clean_line(skill.description))
    out.print()
    for label, value in _list_facts(skill, tokens, permissions, review):
        out.print_styled(f"{clean_line(label):14} {clean_line(value)}", "dim")
    out.print()
    if out.is_terminal:
        _show_markdown(instructions, out)
    else:
        out.print(instructions.rstrip("\n"))
    _show_references(skill, args.attached, out)


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
    for line in list_references(skill.references):
        out.print(line)


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
    from skillshelf.text.rendering import markdown

    out.print_rich(markdown(text))
