"""What commands show: skills, rules, servers, sessions, the window, changes of files, and why a skill was not used."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from skillshelf.errors import SkillError, SkillNotFoundError
from skillshelf.explain import describe_level, explain_off, explain_unavailable
from skillshelf.settings import settings_file
from skillshelf.slash import SKILL_PREFIX, Commands
from skillshelf.text import clean, clean_line, count_noun, decode_text, list_names
from skillshelf.text.rendering import truncate_cells
from skillshelf_agent import AgentCore, ChangedFile, Context, LeftFile, Rule, Todo, Undone, Unused
from skillshelf_agent.checkpoints import PathState
from skillshelf_agent.events import Usage
from skillshelf_agent.filetools import diff_texts, show_path
from skillshelf_agent.sessions import SentMessage, SessionInfo
from skillshelf_agent.terminal._face import ChatFace

_MAX_ROWS = 10
_MAX_TODOS = 3
_TODO_MARKS = {"doing": "▸", "pending": "○"}
_MAX_SHARES = 8
_BAR_CELLS = 50
_SHARE_COLORS = {"system": "blue", "tools": "cyan", "listing": "magenta", "loaded": "green", "history": "yellow"}
_BEYOND = "beyond"
"""What the provider counts beyond our estimates: a part of the bar without a color."""


def view_help(commands: Commands[ChatFace]) -> RenderableType:
    """Return a table of every command. The skills' own commands are one row: /skills lists them."""
    table = _make_table("", "")
    for entry in commands.table().entries.values():
        if entry.prefix != SKILL_PREFIX:
            usage = f"/{entry.spelling} {entry.command.usage}".rstrip()
            table.add_row(Text(clean_line(usage), "bold"), clean_line(entry.command.summary))
    table.add_row(Text("/NAME [ARGUMENTS]", "bold"), "apply a skill; /skills:NAME if a command has that name")

    keys = "Tab completes · @ attaches a file, Ctrl+V an image · !command runs in your shell · Ctrl+J breaks the line"
    more_keys = "Esc stops the turn · Ctrl+G opens your editor · Ctrl+O shows results and reasoning in full"
    policy_key = "Shift+Tab changes the policy · Esc Esc goes back to an earlier message · Ctrl+D leaves"
    steering = "While the agent works, Enter steers it and Tab queues"
    return Group(table, *(Text(line, "dim") for line in (keys, more_keys, policy_key, steering)))


def view_skills(core: AgentCore) -> RenderableType:
    """Return the shelf, the skills that wait for review, and the skills with errors."""
    table = _make_table("skill", "source", "tokens", "description")
    table.columns[2].justify = "right"
    for name, skill in core.shelf.catalog.items():
        title = Text(clean_line(name), "bold")
        choice = core.shelf.chosen.choice_for(skill)
        if choice == "full" or choice == "name":
            title.append(f" [set to {choice}]", "not bold yellow")
        elif skill.disclosure == "manual":
            title.append(" [manual]", "not bold yellow")
        tokens = core.shelf.count_instructions(name)
        counted = "" if tokens is None else f"{tokens:,}"
        table.add_row(title, clean_line(skill.source), counted, truncate_cells(clean_line(skill.description), 120))
    return Group(table, *_list_off(core), *_list_pending(core), *_list_errors(core))


def _list_off(core: AgentCore) -> Iterator[Text]:
    off = [clean_line(candidate.found.name) for candidate in core.shelf.chosen.off]
    if off:
        yield Text(str(explain_off(list_names(off, _MAX_ROWS), "NAME", "/skills")), "dim")


def _list_pending(core: AgentCore) -> Iterator[Text]:
    pending = core.skills.pending
    for skill in pending[:_MAX_ROWS]:
        yield Text(f"{skill.status}: {clean_line(skill.name)}", "yellow")
    if len(pending) > _MAX_ROWS:
        yield Text(f"… and {len(pending) - _MAX_ROWS:,} more", "yellow")
    if pending:
        yield Text("/skills trust shows them and asks", "dim")


def _list_errors(core: AgentCore) -> Iterator[Text]:
    """Name the skills that were left out, or that do not work as their author meant, and why."""
    errors = core.skills.unusable
    if not errors:
        return

    yield Text(f"{count_noun(len(errors), 'error')} in skills:", "red")
    for note in errors[:_MAX_ROWS]:
        place = clean_line(core.skills.workspace.relative(note.path))
        message = truncate_cells(clean_line(note.message), 160)
        yield Text(f"  {truncate_cells(f'{place}: {message}', 240)}", "red")

    advice = "`skillshelf check` says what to do"
    if len(errors) > _MAX_ROWS:
        advice = f"… and {len(errors) - _MAX_ROWS:,} more; {advice}"
    yield Text(advice, "dim")


def view_skill(core: AgentCore, name: str) -> Sequence[RenderableType]:
    """Return a skill's text with nothing left out. Raises SkillError if there is no such skill."""
    try:
        skill = core.shelf.catalog.find(name).descriptor
    except SkillNotFoundError:
        if not name:
            raise SkillError("Which skill? Type /skills show NAME; /skills lists them.") from None
        raise explain_unavailable(core.shelf, name, "/skills") from None

    facts = [f"{skill.qualified} · {clean_line(skill.location)}", clean_line(skill.description)]
    if skill.references:
        more = [f"{skill.more_references} more"] if skill.more_references else []
        facts.append("references: " + ", ".join([*map(clean_line, skill.main_references), *more]))
    instructions = clean(core.shelf.instructions(name))
    return (*(Text(fact, "dim") for fact in facts), "", Text(instructions))


def view_policy(core: AgentCore) -> Sequence[RenderableType]:
    """Return what may be done without asking, and what the user allowed for this session."""
    lines: list[RenderableType] = [f"Policy: {core.gate.policy.mode}.", Text(f"A command: {core.sandbox.summary}")]
    withheld = core.withheld_tools
    if withheld:
        names = clean_line(", ".join(withheld))
        lines.append(Text(f"Blocked by the policy, so the model is not offered them: {truncate_cells(names, 400)}"))
    if core.gate.policy.always:
        lines.append("Always allowed in this session:")
        lines += [Text(f"  {truncate_cells(clean_line(action), 200)}") for action in sorted(core.gate.policy.always)]
    rules = core.gate.policy.rules.list() if core.gate.policy.rules else []
    if rules:
        lines.append(f"{count_noun(len(rules), 'rule')}: /approve rules lists them.")
    return lines


PREFIX_NEEDS_SANDBOX = "commands are not sandboxed here, so it does not apply"


def view_rules(rules: Sequence[Rule], *, is_sandboxed: bool) -> RenderableType:
    """Return a table of the rules that hold here, with the numbers that /approve forget and confirm take."""
    if not rules:
        return 'No rules yet. /approve allow run_command "git status" makes one.'
    table = _make_table("", "rule", "where", "")
    for number, rule in enumerate(rules, 1):
        style = "red" if rule.decision == "deny" else "bold"
        where = "this workspace" if rule.workspace else "everywhere"
        note = ""
        if not rule.confirmed:
            note = f"not in force: /approve confirm {number}"
        elif rule.allows_prefix and not is_sandboxed:
            note = PREFIX_NEEDS_SANDBOX
        table.add_row(str(number), Text(truncate_cells(clean_line(str(rule)), 160), style), where, Text(note, "yellow"))

    remarks = [Text("/approve forget NUMBER removes one", "dim")]
    if not all(rule.confirmed for rule in rules):
        why = "An earlier version made these rules, for which `*` did not stand for all further words. Now it does."
        remarks.insert(0, Text(why, "yellow"))
    return Group(table, *remarks)


def view_servers(core: AgentCore) -> RenderableType:
    """Return the MCP servers, their state, and the tools that the model gets from them."""
    servers = core.servers.servers
    if not servers:
        return f"No MCP servers. Add one to {settings_file()}, as [mcp.NAME] with a command or a url."
    table = _make_table("server", "state", "tools", "")
    for server in servers:
        style = {"ready": "green", "failed": "red"}.get(server.state, "yellow")
        names = ", ".join(clean_line(tool.remote_name) for tool in server.tools.values())
        detail = server.problem if server.state == "failed" else names
        count = str(len(server.tools)) if server.state == "ready" else ""
        shown = truncate_cells(clean_line(detail), 400)
        table.add_row(Text(server.name, "bold"), Text(server.state, style), count, shown)
    return Group(table, Text("The model calls them by NAME__TOOL, and each call is asked about", "dim"))


def view_sessions(sessions: Sequence[SessionInfo]) -> RenderableType:
    """Return a table of earlier sessions. Why one cannot be opened has lines of its own, since it names a file."""
    if not sessions:
        return "No sessions yet."

    table = _make_table("session", "changed", "messages", "about")
    table.columns[0].no_wrap = True
    table.columns[0].min_width = max(len(session.id) for session in sessions)
    problems = []
    for session in sessions:
        about = Text(truncate_cells(clean_line(session.about), 80))
        if session.problem:
            about = Text("cannot be opened", "red")
            problems.append(Text(f"{session.id}: {clean_line(session.problem)}", "red", overflow="fold"))
        table.add_row(Text(session.id, "bold"), f"{session.changed:%Y-%m-%d %H:%M}", str(session.messages), about)
    return Group(table, *problems)


def view_messages(messages: Sequence[SentMessage]) -> RenderableType:
    """Return a table of the user's messages, with the numbers that /rewind takes."""
    table = _make_table("", "message")
    for number, message in enumerate(messages, 1):
        table.add_row(str(number), Text(truncate_cells(clean_line(" ".join(message.text.split())), 80)))
    return table


def view_context(core: AgentCore) -> RenderableType:
    """Return a bar of the model's window, and the shares that fill it."""
    context = core.context
    shares = {
        "system": context.system,
        "tools": sum(tokens for _, tokens in context.tools),
        "listing": sum(tokens for _, tokens in context.listing),
        "loaded": sum(tokens for _, tokens in context.loaded),
        "history": context.history,
    }
    filled = context.used / max(1, context.window)
    title = f"{context.used:,} of {context.window:,} tokens ({filled:.0%})"
    source = ""
    if context.counted:
        source = f"{context.counted:,} counted by the provider at the last call"
        if context.since:
            source += f", {context.since:,} estimated since then"
    else:
        title += ", by estimate"

    table = _make_table("", "tokens", "")
    table.columns[1].justify = "right"
    for name, tokens in shares.items():
        table.add_row(Text(f"■ {name}", _SHARE_COLORS[name]), f"{tokens:,}", _list_largest(context, name))
    difference = context.used - context.estimated
    if difference:
        whose = "counted by the provider beyond these estimates"
        if difference < 0:
            whose = "the provider counts fewer than these estimates"
        table.add_row(Text("  difference", "dim"), f"{difference:+,}", Text(whose, "dim"))

    bar = _draw_bar({**shares, _BEYOND: max(0, difference)}, context.window)
    return Group(Text(title, "bold"), bar, table, Text(source, "dim"))


def _draw_bar(shares: Mapping[str, int], window: int) -> Text:
    """Draw the shares in proportion. If they are more than the window holds, they fill the whole bar."""
    whole = max(1, window, sum(shares.values()))
    bar = Text()
    for name, tokens in shares.items():
        if tokens:
            cells = round(_BAR_CELLS * tokens / whole)
            bar.append("█" * max(1, cells), _SHARE_COLORS.get(name, "dim"))
    bar.append("░" * max(0, _BAR_CELLS - len(bar)), "dim")
    bar.truncate(_BAR_CELLS)
    return bar


def _list_largest(context: Context, share: str) -> str:
    """Return the skills that take most of a share."""
    parts = {"tools": context.tools, "listing": context.listing, "loaded": context.loaded}.get(share, ())
    largest = sorted((part for part in parts if part[0]), key=lambda part: -part[1])
    listed = ", ".join(f"{clean_line(skill)} {tokens:,}" for skill, tokens in largest[:_MAX_SHARES])
    if len(largest) > _MAX_SHARES:
        listed += f" and {len(largest) - _MAX_SHARES} more"
    return listed


def format_status(core: AgentCore, pending: int, columns: int) -> str:
    """Return the line below the prompt: as much of it as fits in so many columns.

    `pending` is the number of skills that wait for review.
    """
    spent = core.conversation.spent
    parts = {
        "review": f"{pending:,} to review: /skills trust" if pending else "",
        "jobs": count_noun(len(core.jobs.running), "job") if core.jobs.running else "",
        "model": truncate_cells(clean_line(core.model.name), 40),
        "effort": f"effort {core.model.effort}" if core.model.effort else "",
        "context": f"context {_format_filled(core)}",
        "tokens": f"{format_tokens(spent.input + spent.output)} tokens",
        "cost": _format_cost(spent.cost) if spent.cost else "",
        "policy": core.gate.policy.mode,
        "skills": count_skills(core),
    }
    # If there is no room for all of them, these go first.
    for least_important in ("skills", "tokens", "effort", "cost", "context", "model", "policy"):
        if cell_len(_join_status(parts)) <= columns or len([text for text in parts.values() if text]) == 1:
            break
        parts[least_important] = ""
    return truncate_cells(_join_status(parts), columns)


def list_open_todos(todos: Sequence[Todo]) -> list[str]:
    """Return lines for what is left to do, the step in progress first; none if nothing is left."""
    left = sorted((todo for todo in todos if todo.state != "done"), key=lambda todo: todo.state != "doing")
    lines = [f"{_TODO_MARKS[todo.state]} {todo.text}" for todo in left[:_MAX_TODOS]]
    counts = {"more": len(left) - len(lines), "done": len(todos) - len(left)}
    if lines and any(counts.values()):
        lines.append("  " + " · ".join(f"{count} {word}" for word, count in counts.items() if count))
    return lines


def _join_status(parts: Mapping[str, str]) -> str:
    return " " + " · ".join(text for text in parts.values() if text)


def count_skills(core: AgentCore) -> str:
    """Return how many skills are on the shelf, in words."""
    return count_noun(len(core.shelf.catalog), "skill")


def _format_filled(core: AgentCore) -> str:
    """Return how full the window is, with a mark if the provider has not counted it."""
    context = core.context
    filled = context.used / max(1, context.window)
    percent = "<1%" if 0 < filled < 0.01 else f"{filled:.0%}"
    return percent if context.counted else f"~{percent}"


def _format_cost(dollars: float) -> str:
    return "<$0.01" if 0 < dollars < 0.01 else f"${dollars:.2f}"


def describe_usage(usage: Usage) -> str:
    """Return the tokens in and out, and the price if it is known, in words."""
    cached = f" ({usage.cached:,} cached)" if usage.cached else ""
    cost = "" if usage.cost is None else f" · {_format_cost(usage.cost)}"
    return f"{usage.input:,} tokens in{cached}, {usage.output:,} out{cost}"


def format_tokens(count: int) -> str:
    """Return the count in at most four characters: `950`, `1.2k`, `38k`."""
    if count < 1000:
        return str(count)
    if count < 9950:
        return f"{count / 1000:.1f}k"
    return f"{count / 1000:.0f}k"


def view_cost(core: AgentCore) -> Sequence[RenderableType]:
    """Return what this session has cost, by model, and what the sessions before it in this chat have."""
    spending = core.conversation.spending
    if not spending.by_model:
        lines: list[RenderableType] = ["This session has cost nothing yet."]
    else:
        table = _make_table("tokens", "in", "cached", "out", "cost")
        table.columns[0].overflow = "fold"
        for column in table.columns[1:]:
            column.justify = "right"
        for model, usage in spending.by_model.items():
            table.add_row(Text(clean_line(model), "bold"), *_list_figures(usage))
        if len(spending.by_model) > 1:
            table.add_row("all", *_list_figures(spending.total))
        lines = [table]
    if core.spent != spending.total:
        lines.append(Text(f"With the other sessions of this chat: {describe_usage(core.spent)}", "dim"))
    return lines


def _list_figures(usage: Usage) -> Sequence[str]:
    cost = "unknown" if usage.cost is None else f"${usage.cost:.4f}"
    return f"{usage.input:,}", f"{usage.cached:,}", f"{usage.output:,}", cost


def _make_table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", show_header=any(headings))
    for heading in headings:
        table.add_column(heading)
    return table


_MAX_LISTED = 20
_MAX_MESSAGE_CELLS = 40
_MAX_DIFF_BYTES = 256 * 1024
_MAX_DIFF_LINES = 1_000


def view_undone(undone: Undone, action: str) -> Sequence[RenderableType]:
    """Return what an undo or a redo did. `action` says it in words: `Took back`."""
    message = truncate_cells(clean_line(undone.message), _MAX_MESSAGE_CELLS)
    lines: list[RenderableType] = [f'{action} "{message}": {count_noun(len(undone.changed), "path")}.']
    lines += _list_lines([show_path(path) for path in undone.changed], "dim")
    if undone.left:
        lines.append(Text("Left as they are:", "yellow"))
        lines += _list_lines([_explain_left(file) for file in undone.left], "yellow")
    return lines


def view_doubtful(paths: Sequence[str]) -> Sequence[RenderableType]:
    """Return the paths of which nobody can tell who changed them."""
    return view_paths("These changed while a command ran, by the command or by you:", paths)


def view_paths(title: str, paths: Sequence[str]) -> Sequence[RenderableType]:
    """Return a list of paths that a question is about."""
    return [Text(title, "yellow"), *_list_lines([show_path(path) for path in paths], "yellow")]


def _list_lines(lines: Sequence[str], style: str) -> Iterator[Text]:
    for line in lines[:_MAX_LISTED]:
        yield Text(f"  {line}", style)
    if len(lines) > _MAX_LISTED:
        yield Text(f"  … and {len(lines) - _MAX_LISTED:,} more", style)


def _explain_left(file: LeftFile) -> str:
    path = show_path(file.path)
    if file.reason == "changed":
        return f"{path}: it was changed since. /undo {path} takes it back anyway, and /redo brings your version back."
    if file.reason == "command":
        return f"{path}: it changed while a command ran, maybe by you. /undo {path} takes it back anyway."
    if file.reason == "not-kept":
        return f"{path}: its content was not kept (too large, secret, or its checkpoint is too old)."
    return f"{path}: {clean_line(file.problem)}."


def show_changes(face: ChatFace, changes: Sequence[ChangedFile]) -> None:
    """Show the changes as diffs. Binary and large files are only named."""
    files = [change for change in changes if change.before.kind != "folder" and change.after.kind != "folder"]
    if not files:
        face.print("No turn of this session has changed a file.")
    for change in files:
        _show_change(face, change)


def _show_change(face: ChatFace, change: ChangedFile) -> None:
    path = show_path(change.path)
    title = Text.assemble((path, "bold"), (f"  {_describe_change(change)}", "dim"))
    if not change.is_current:
        title.append("  you changed it since: this is the file as it is now", "yellow")

    old = _read_text(change.before, change.old)
    new = _read_text(change.after, change.new)
    if old is None or new is None:
        sizes = f"{_format_state(change.before)} → {_format_state(change.after)}"
        face.print(title.append(f"  not shown: {sizes}", "dim"))
        return

    diff = diff_texts(old, new, change.path)
    lines = diff.count("\n") + 1
    if lines > _MAX_DIFF_LINES:
        face.print(title.append(f"  not shown: {lines:,} lines of changes", "dim"))
        return
    if diff:
        face.print_diff(title, diff)
    else:
        face.print(title)


def _describe_change(change: ChangedFile) -> str:
    before = change.before
    after = change.after
    if before.kind == "absent":
        return "created"
    if after.kind == "absent":
        return "deleted"
    if before.kind != after.kind:
        return f"a {before.kind} became a {after.kind}"
    if before.mode != after.mode:
        mode = f"mode {before.mode:o} → {after.mode:o}"
        return mode if before.digest == after.digest else f"changed, {mode}"
    return "changed"


def _read_text(state: PathState, data: bytes | None) -> str | None:
    """Return a content as text: empty if there is nothing, None if it cannot be shown."""
    if state.kind == "absent":
        return ""
    if data is None or len(data) > _MAX_DIFF_BYTES:
        return None
    return decode_text(data)


def _format_state(state: PathState) -> str:
    if state.kind == "absent":
        return "nothing"
    if state.kind == "other":
        return "unknown"
    return f"{state.size:,} bytes"


async def show_why_not(face: ChatFace, typed: str) -> None:
    """Explain why a skill was not used for the last message, or for the request after its name. Raises SkillError.

    Without a name, this is about the skill that fits the last message best.
    """
    name, _, request = typed.strip().partition(" ")
    with face.waiting("the skill is looked up"):
        unused = await asyncio.to_thread(face.core.explain_unused, name, request)
    for line in _view_unused(unused):
        face.print(line)


def _view_unused(unused: Unused) -> list[Text]:
    explanation = unused.explanation
    lines = [Text(clean_line(explanation.headline), "bold"), Text(clean_line(unused.verdict))]
    for reason in explanation.reasons:
        lines.append(Text(f"{reason.code}: {clean_line(reason.message)}", "yellow"))
        if reason.fix:
            lines.append(Text(f"  fix: {clean_line(reason.fix)}", "cyan"))
    for other in explanation.better:
        advantages = truncate_cells(clean_line(other.describe_advantages()), 160)
        lines.append(Text(f"  {clean_line(other.match.name)} {other.match.score:.2f}: {advantages}", "dim"))
    rank = explanation.describe_rank()
    if rank:
        lines.append(Text(clean_line(rank), "dim"))
    if explanation.level is not None:
        lines.append(Text(f"The listing shows {describe_level(explanation.level)} to the model.", "dim"))
    if explanation.is_usable and not unused.is_loaded:
        lines.append(Text(f"/skills:{clean_line(explanation.name)} applies it now.", "dim"))
    return lines
