"""What commands show: tables and bars, made of values that are cleaned on the way in."""

from collections.abc import Iterable, Sequence

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.markdown import Markdown
from rich.table import Table
from rich.text import Text

from skillshelf.agent.context import Context, measure
from skillshelf.agent.core import AgentCore
from skillshelf.agent.sessions import SessionInfo
from skillshelf.characters import clean, clean_line
from skillshelf.repl.host import Host
from skillshelf.slash import Commands

_BAR = 50
_QUOTED = "  │ "
_COLORS = {"system": "blue", "tools": "cyan", "listing": "magenta", "loaded": "green", "history": "yellow"}


class Page:
    """A review: a quoted line that is too long goes on behind its bar, so that no text can stand where ours does."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in self._lines:
            if not line.startswith(_QUOTED):
                yield Text(line)
                continue
            room = max(20, options.max_width - len(_QUOTED))
            for part in Text(line.removeprefix(_QUOTED)).wrap(console, room, overflow="fold"):
                yield Text.assemble((_QUOTED, "dim"), part)


def help_view(commands: Commands[Host]) -> RenderableType:
    """Every command but the skills', which /skills shows."""
    table = _table("", "")
    for entry in commands.table().entries.values():
        if entry.prefix != "skills:":
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
        table.add_row(name_cell, clean_line(skill.source), f"{skill.size // 4:,}", _clip(skill.description, 120))
    waiting = [Text(f"{one.status}: {clean_line(one.name)}", "yellow") for one in core.skills.pending]
    hint = [Text("/skills trust shows and asks", "dim")] if waiting else []
    return Group(table, *waiting, *hint)


def _marks(disclosure: str, granted: bool) -> Iterable[str]:
    if disclosure == "manual":
        yield "manual"
    if granted:
        yield "written in this session"


def skill_view(core: AgentCore, name: str) -> Sequence[RenderableType]:
    """Raises SkillNotFoundError, SkillUnreadableError."""
    skill = core.shelf.catalog.find(name).descriptor
    facts = [f"{skill.qualified} · {clean_line(skill.location)}", clean_line(skill.description)]
    if skill.references:
        facts.append("references: " + ", ".join(map(clean_line, skill.references)))
    return (*(Text(fact, "dim") for fact in facts), Markdown(clean(core.shelf.instructions(name))))


def sessions_view(sessions: Sequence[SessionInfo]) -> RenderableType:
    if not sessions:
        return "No sessions yet."
    table = _table("session", "changed", "messages", "about")
    for one in sessions:
        about = Text(clean_line(one.problem), "red") if one.problem else _clip(one.title, 80)
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


def _clip(text: str, length: int) -> str:
    line = clean_line(text)
    return line if len(line) <= length else line[: length - 1] + "…"
