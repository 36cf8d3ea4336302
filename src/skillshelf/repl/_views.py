"""What commands show: tables and bars, made of values that are cleaned on the way in."""

from collections.abc import Iterable, Iterator, Sequence

from pydantic_ai.messages import ModelMessage, TextPart, UserPromptPart
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from skillshelf.agent import AgentCore, Context, measure
from skillshelf.agent.sessions import SessionInfo
from skillshelf.errors import SkillError, SkillNotFoundError, TrustError
from skillshelf.rendering import cut, cut_words
from skillshelf.repl._host import Host
from skillshelf.slash import SKILL_PREFIX, Commands
from skillshelf.text import clean, clean_line
from skillshelf.tokens import estimate_unread

_BAR, _NAMED = 50, 10
_COLORS = {"system": "blue", "tools": "cyan", "listing": "magenta", "loaded": "green", "history": "yellow"}


def help_view(commands: Commands[Host]) -> RenderableType:
    """Every command but the skills', which /skills shows."""
    table = _table("", "")
    for entry in commands.table().entries.values():
        if entry.prefix != SKILL_PREFIX:
            usage = f"/{entry.spelling} {entry.command.usage}".rstrip()
            table.add_row(Text(clean_line(usage), "bold"), clean_line(entry.command.summary))
    table.add_row(Text("/skills:NAME [ARGUMENTS]", "bold"), "apply a skill")
    keys = "Tab completes · @ names a file · Alt+Enter breaks the line · Ctrl+C stops the turn · Ctrl+D leaves"
    return Group(table, Text(keys, "dim"))


def skills_view(core: AgentCore) -> RenderableType:
    """The shelf, and what waits for the person's word."""
    table = _table("skill", "source", "tokens", "description")
    table.columns[2].justify = "right"
    granted = core.skills.granted
    for name, skill in core.shelf.catalog.items():
        marks = "".join(f" [{mark}]" for mark in _marks(skill.disclosure, name in granted))
        name_cell = Text.assemble((clean_line(name), "bold"), (marks, "yellow"))
        tokens = f"~{estimate_unread(skill.size):,}"
        table.add_row(name_cell, clean_line(skill.source), tokens, cut(clean_line(skill.description), 120))
    waiting = core.skills.pending
    lines = [Text(f"{one.status}: {clean_line(one.name)}", "yellow") for one in waiting[:_NAMED]]
    lines += [Text(f"… and {len(waiting) - _NAMED:,} more", "yellow")] if len(waiting) > _NAMED else []
    lines += [Text("/skills trust shows and asks", "dim")] if waiting else []
    return Group(table, *lines, *_broken(core))


def _broken(core: AgentCore) -> Iterator[Text]:
    """What was left out or is not as its author meant it, and why."""
    errors = [note for note in core.shelf.catalog.diagnostics if note.severity == "error"]
    if not errors:
        return
    yield Text(f"{len(errors):,} error{'s' * (len(errors) > 1)} in skills:", "red")
    for note in errors[:_NAMED]:
        place = clean_line(note.path).removeprefix(f"{core.skills.root}/")
        yield Text(f"  {cut(f'{place}: {cut_words(clean_line(note.message), 160)}', 240)}", "red")
    more = f"… and {len(errors) - _NAMED:,} more; " if len(errors) > _NAMED else ""
    yield Text(f"{more}`skillshelf check` says what to do", "dim")


def _marks(disclosure: str, granted: bool) -> Iterable[str]:
    if disclosure == "manual":
        yield "manual"
    if granted:
        yield "written in this session"


def skill_view(core: AgentCore, name: str) -> Sequence[RenderableType]:
    """The text itself, in which nothing is left out. Raises SkillError."""
    try:
        skill = core.shelf.catalog.find(name).descriptor
    except SkillNotFoundError as error:
        raise _unknown(core, name, error) from None
    facts = [f"{skill.qualified} · {clean_line(skill.location)}", clean_line(skill.description)]
    if skill.references:
        facts.append("references: " + ", ".join(map(clean_line, skill.references)))
    return (*(Text(fact, "dim") for fact in facts), "", Text(clean(core.shelf.instructions(name))))


def _unknown(core: AgentCore, name: str, error: SkillNotFoundError) -> SkillError:
    """For a person: what to type."""
    if not name:
        return SkillError("Which skill? Type /skills show NAME; /skills lists them.")
    if name in [one.name for one in core.skills.pending]:
        return TrustError(f"Skill {name!r} awaits your review: /skills trust shows it.")
    near = f" Did you mean {' or '.join(map(repr, error.closest))}?" if error.closest else ""
    return SkillError(f"There is no skill named {cut(name, 100)!r}.{near} /skills lists them.")


def resumed_view(core: AgentCore) -> Sequence[RenderableType]:
    """Which session goes on, and where it stopped."""
    conversation = core.conversation
    count = len(conversation.messages)
    said, answered = _last_exchange(conversation.messages)
    lines = [Text(f"Session {conversation.id}, {count:,} message{'s' * (count != 1)}.")]
    lines += [Text.assemble(("you    ", "bold"), (cut_words(clean_line(said), 300), "dim"))] if said else []
    lines += [Text.assemble(("answer ", "bold"), (cut_words(clean_line(answered), 500), "dim"))] if answered else []
    return lines


def _last_exchange(messages: Sequence[ModelMessage]) -> tuple[str, str]:
    answered: list[str] = []
    for message in reversed(messages):
        for part in reversed(message.parts):
            if isinstance(part, TextPart):
                answered.insert(0, part.content)
            elif isinstance(part, UserPromptPart):
                said = part.content if isinstance(part.content, str) else " ".join(map(str, part.content))
                return said, " ".join(answered)
    return "", " ".join(answered)


def policy_view(core: AgentCore) -> Sequence[RenderableType]:
    """What may be done without asking, and what the person allowed for this session."""
    policy = core.policy
    lines: list[RenderableType] = [f"Policy: {policy.mode}.", Text(f"A command: {core.confinement.summary}")]
    if policy.always:
        lines.append("Always allowed in this session:")
        lines += [Text(f"  {cut(clean_line(one), 200)}") for one in sorted(policy.always)]
    return lines


def sessions_view(sessions: Sequence[SessionInfo]) -> RenderableType:
    if not sessions:
        return "No sessions yet."
    table = _table("session", "changed", "messages", "about")
    table.columns[0].no_wrap, table.columns[0].min_width = True, max(len(one.id) for one in sessions)
    for one in sessions:
        about = Text(clean_line(one.problem), "red") if one.problem else cut(clean_line(one.title), 80)
        table.add_row(Text(one.id, "bold"), f"{one.changed:%Y-%m-%d %H:%M}", str(one.messages), about)
    return table


def context_view(core: AgentCore) -> RenderableType:
    """A bar of the window, and the shares it is made of."""
    context = measure(core)
    shares = _shares(context)
    bar = Text()
    for name, tokens in shares:
        cells = round(_BAR * tokens / max(1, context.window))
        bar.append("█" * (max(1, cells) if tokens else 0), _COLORS[name])
    bar.append("░" * max(0, _BAR - len(bar)), "dim")
    percent = context.total / max(1, context.window)
    head = Text(f"{context.total:,} of {context.window:,} tokens ({percent:.0%}), by estimate", "bold")
    table = _table("", "tokens", "")
    table.columns[1].justify = "right"
    for name, tokens in shares:
        table.add_row(Text(f"■ {name}", _COLORS[name]), f"{tokens:,}", _detail(context, name))
    counted = f"The provider counted {context.used:,} tokens at the last call." if context.used else ""
    return Group(head, bar, table, Text(counted, "dim"))


def _shares(context: Context) -> list[tuple[str, int]]:
    sums = {"listing": context.listing, "loaded": context.loaded}
    totals = {name: sum(tokens for _, tokens in parts) for name, parts in sums.items()}
    return [
        ("system", context.system),
        ("tools", context.tools),
        ("listing", totals["listing"]),
        ("loaded", totals["loaded"]),
        ("history", context.history),
    ]


def _detail(context: Context, name: str) -> str:
    parts = {"listing": context.listing, "loaded": context.loaded}.get(name, ())
    largest = sorted((part for part in parts if part[0]), key=lambda part: -part[1])
    shown = ", ".join(f"{clean_line(skill)} {tokens:,}" for skill, tokens in largest[:8])
    return f"{shown} and {len(largest) - 8} more" if len(largest) > 8 else shown


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", show_header=any(headings))
    for heading in headings:
        table.add_column(heading)
    return table
