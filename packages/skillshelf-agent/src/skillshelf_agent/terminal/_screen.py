"""What happens, on the screen: events as they come, and the last exchanges of a resumed session."""

from __future__ import annotations

import math
import re
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponsePart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.segment import Segment, Segments
from rich.text import Text as Line

from skillshelf.shelf import LOAD_TOOL
from skillshelf.shelf.workspace_skills import describe_delta
from skillshelf.skills import Delta
from skillshelf.text import clean, clean_line, count_noun, rendering, truncate, without_colors
from skillshelf.text.rendering import truncate_cells
from skillshelf_agent import AgentCore
from skillshelf_agent import events as on
from skillshelf_agent.sessions import typed_text
from skillshelf_agent.terminal._quotes import UNFOLD_KEY, Diff, Excerpt, FoldedDiff, count_changed_lines

# The argument that says most about a call, by tool. Other tools show their path or their first argument.
_MAIN_ARGUMENT = {
    "run_command": "command",
    "run_skill_script": "script",
    "search_files": "pattern",
    "find_files": "pattern",
    "search_skills": "query",
    LOAD_TOOL: "skill_name",
}
_MAX_ARGUMENT_CELLS = 60
_MAX_RESULT_CELLS = 60
_MIN_RESULT_CELLS = 12
# The result of a command is text alone: these labels around its output, and a last line with an exit code other than 0.
# So a dot is red, and no more, if a command only prints such a line.
_OUTPUT_LABELS = ("[stdout]", "[stderr]")
_COMMAND_FAILED = re.compile(r"\[exit code: |\[Command timed out")
_UNFOLD_HINT = f" · {UNFOLD_KEY} shows it"
_SIDE_MARGIN = "  ┊ "
_THINKING = "thinking"
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_SPINNER_FRAMES_PER_SECOND = 10
_MAX_OUTPUT_ROWS = 5
"""Lines that are shown of a running command and of one that failed."""
_MAX_DIFF_LINES = 12
"""Lines that are shown of a change that the user was not asked about."""
_MAX_REASONING_ROWS = 3
_MAX_VIEWED_ROWS = 40
"""Rows of a change that the user asked to see."""
_MAX_RESULTS = 20
_MAX_OUTPUT_CHARACTERS = 8_000
_LOADED_BY = {"model": "by the model", "user": "by you"}


@dataclass(frozen=True, slots=True)
class Folded:
    """The result of a tool call, or some reasoning, that takes a line on the screen."""

    title: str
    text: str
    diff: str = ""
    """The change that the call made in a file."""

    @property
    def content(self) -> RenderableType:
        """All of it, for a pager."""
        title = Line(clean_line(self.title), "bold")
        text = Line(clean(self.text))
        return Group(title, text, Diff(clean(self.diff)), "") if self.diff else Group(title, text, "")


class Screen:
    """Prints one turn after the other, and draws the work in progress."""

    def __init__(self, console: Console) -> None:
        # Markdown brings a parser with 60 modules, which the lines of a pipe don't need.
        from skillshelf_agent.terminal._answer import MarkdownStream

        self.console = console
        self._answer = MarkdownStream(console)
        self._running_calls: dict[str, _RunningCall] = {}
        self._announced_loads = 0
        """Loads by the model that have a line on the screen, and whose tool calls have not returned."""
        self._folded: deque[Folded] = deque(maxlen=_MAX_RESULTS)
        self._reasoning: list[str] = []
        """The pieces of the reasoning in progress."""
        self._activity: str | Countdown = ""
        self._started = 0.0
        self._tokens = 0
        self._margin = ""
        """What comes before the line of an event in a side conversation."""

    def begin(self) -> None:
        """Count the time and the tokens of the work in progress from here on."""
        self._started = time.monotonic()
        self._tokens = 0

    def show(self, event: on.Event) -> None:
        """Print one event, or take it up in the drawing of the work in progress."""
        match event:
            case on.Text(text=text):
                self._fold_reasoning()
                self._activity = "answering"
                self._answer.feed(text)
            case on.Thinking(text=text):
                self._answer.end()
                self._activity = _THINKING
                self._reasoning.append(text)
            case on.Usage():
                self._tokens += event.input + event.output
            case on.ToolOutput(id=identifier, text=text):
                call = self._running_calls.get(identifier)
                if call:
                    call.add_output(text)
            case on.FileWritten(id=identifier):
                call = self._running_calls.get(identifier)
                if call:
                    call.written = event
            case on.ServerAwaited(server=server, over=is_over):
                self._activity = _THINKING if is_over else f"waiting for the MCP server {clean_line(server)}"
            case on.SkillInvoked() | on.ReferenceDenied():  # the next event says it all
                pass
            case _:
                self.pause()
                self._activity = _THINKING
                self._margin = _SIDE_MARGIN if event.side else ""
                self._show_line(event)
        if isinstance(event, on.Retrying):
            self._activity = Countdown(event.seconds, "trying again")
        if isinstance(event, on.Failed | on.Finished):
            self._running_calls.clear()
            self._announced_loads = 0

    def show_waiting(self, activity: str = "") -> None:
        """Name what is being done while no tool runs."""
        self._activity = activity or _THINKING

    def pause(self) -> None:
        """Print the answer and the reasoning so far, because something else is about to be printed."""
        self._answer.end()
        self._fold_reasoning()

    def draw_live(self, columns: int, rows: int) -> str:
        """Return the work in progress with its escapes: the end of the answer, and what is being done."""
        calls = list(self._running_calls.values())
        output_rows = max(0, min(_MAX_OUTPUT_ROWS, rows - 2))
        if calls:
            output = calls[0].draw_output(columns, output_rows)
        else:
            output = self._draw_reasoning(columns, min(_MAX_REASONING_ROWS, output_rows))
        answer_rows = max(1, rows - 1 - len(output))

        lines = self._answer.draw_tail(columns, answer_rows)
        with self.console.capture() as capture:
            for line in lines:
                self.console.print(Segments([*line, Segment.line()]), end="")
            for row in [self._describe_work(calls, columns), *output]:
                self.console.print(row, no_wrap=True, overflow="ellipsis", crop=True)
        return capture.get().rstrip("\n")

    def show_diff(self, title: Line, diff: str) -> None:
        """Print the change of a file: if it is long, its beginning and its end."""
        excerpt = Excerpt(self.console, Diff(clean(diff)), _MAX_VIEWED_ROWS, UNFOLD_KEY)
        if excerpt.hidden_rows:
            self._folded.append(Folded(title.plain, "", diff))
        self.console.print(title)
        self.console.print(excerpt)

    def list_folded(self) -> list[Folded]:
        """Return the last results and reasoning, the newest first: also the reasoning in progress."""
        reasoning = self._join_reasoning()
        return [*([reasoning] if reasoning else []), *reversed(self._folded)]

    def _join_reasoning(self) -> Folded | None:
        text = "".join(self._reasoning).strip()
        return Folded("reasoning", text) if text else None

    def _draw_reasoning(self, columns: int, rows: int) -> list[Line]:
        """Return the last rows of the reasoning in progress."""
        if not self._reasoning or not rows:
            return []
        room = max(1, columns - 4)
        end = "".join(self._reasoning)[-room * rows :]
        wrapped = Line(clean_line(end)).wrap(self.console, room)
        return [_quote_line(row.plain, columns) for row in wrapped[-rows:]]

    def _fold_reasoning(self) -> None:
        """Print the beginning of the reasoning on one line: it is over."""
        reasoning = self._join_reasoning()
        self._reasoning.clear()
        if reasoning is None:
            return
        self._folded.append(reasoning)
        text = reasoning.text
        line = f"∴ {clean_line(text)}"
        if cell_len(line) > self.console.width:
            line = truncate_cells(line, max(_MIN_RESULT_CELLS, self.console.width - cell_len(_UNFOLD_HINT)))
            line += _UNFOLD_HINT
        self._print_folded(Line(line, "dim"))

    def _describe_work(self, calls: list[_RunningCall], columns: int) -> Line:
        seconds = time.monotonic() - self._started
        frame = _SPINNER[int(seconds * _SPINNER_FRAMES_PER_SECOND) % len(_SPINNER)]
        facts = [_format_seconds(seconds), "Esc stops"]
        if self._tokens:
            facts.insert(1, f"{self._tokens:,} tokens")
        while len(facts) > 1 and cell_len(" · ".join(facts)) > columns // 2:
            facts.pop(-2)
        details = f"  {' · '.join(facts)}"

        activity = self._activity.describe() if isinstance(self._activity, Countdown) else self._activity
        title = Line(activity, "dim")
        if calls:
            title = describe_call(calls[0].event)
        if len(calls) > 1:
            title += Line(f" and {len(calls) - 1} more", "dim")
        title.truncate(max(1, columns - cell_len(details) - 3), overflow="ellipsis")
        return Line.assemble((f"{frame} ", "green"), title, (details, "dim"))

    def _show_line(self, event: on.Event) -> None:
        match event:
            case on.ToolCalled():
                self._running_calls[event.id] = _RunningCall(event)
            case on.ToolReturned():
                self._show_result(event)
            case on.SkillLoaded(skill=skill):
                self._show_load("◆", f"skill {skill}", event)
            case on.ReferenceLoaded(skill=skill, reference=reference):
                self._show_load("◇", f"{skill}/{reference}", event)
            case on.SideStarted(skill=skill, model=model):
                self._print_line(_mark_line("▷", "magenta", f"skill {skill}", f"in a conversation of its own, {model}"))
            case on.SkillsReloaded():
                self._print_line(_mark_line("↻", "cyan", describe_reload(event)))
            case on.Notice(text=text):
                self._print_line(_mark_line("!", "yellow", text))
            case on.Retrying():
                self._print_line(_mark_line("!", "yellow", describe_retry(event)))
            case on.Failed(message=message):
                self._print_line(_mark_line("✗", "red", message))
            case on.Finished(stopped=True):
                for call in self._running_calls.values():
                    title = describe_call(call.event)
                    self._print_folded(Line.assemble(("■ ", "yellow"), title, ("  stopped", "dim")))
                    for row in call.draw_output(self.console.width, _MAX_OUTPUT_ROWS):
                        self._print_folded(row)
                    if call.written is not None:
                        self._print_diff(call.written)
                self._print_line(_mark_line("■", "yellow", "stopped", "the conversation so far is kept"))

    def _show_load(self, mark: str, title: str, event: on.SkillLoaded | on.ReferenceLoaded) -> None:
        if event.by == "model":
            self._announced_loads += 1
        details = f"loaded {_LOADED_BY[event.by]}, {_format_size(event.size)}"
        self._print_line(_mark_line(mark, "magenta", title, details))

    def _show_result(self, event: on.ToolReturned) -> None:
        running = self._running_calls.pop(event.id, None)
        call = running.event if running else None
        if event.ok and event.name == LOAD_TOOL and self._announced_loads:
            self._announced_loads -= 1  # its own line said it all
            return

        title = describe_call(call) if call else Line(clean_line(event.name))
        written = running.written if running else None
        diff = written.diff if written else ""
        self._folded.append(Folded(title.plain, without_colors(event.text), diff))
        summary = count_changed_lines(diff) if written and event.ok else ""
        folded = FoldedResult(title, event, self._margin, summary)
        self.console.print(folded)
        if written is not None:
            self._print_diff(written)
        if _is_failure(event) and not event.refused and not folded.shows_all(self.console.width):
            self._print_end(event)

    def _print_end(self, event: on.ToolReturned) -> None:
        """Print the last lines of a failure: they say what went wrong. A single line is broken, not cut."""
        lines = _list_lines(event.text)
        if len(lines) == 1:
            columns = max(_MIN_RESULT_CELLS, self.console.width - len(_SIDE_MARGIN) - 4)
            broken = Line(clean_line(lines[0])).wrap(self.console, columns)
            lines = [part.plain for part in broken[:_MAX_OUTPUT_ROWS]]
        for line in lines[-_MAX_OUTPUT_ROWS:]:
            self._print_folded(_quote_line(line, self.console.width))

    def _print_diff(self, written: on.FileWritten) -> None:
        """Print the change of a file, unless a question has shown it."""
        if written.diff and not written.confirmed:
            self.console.print(FoldedDiff(clean(written.diff), _MAX_DIFF_LINES, self._margin))

    def _print_folded(self, line: Line) -> None:
        self.console.print(Line.assemble((self._margin, "dim"), line), no_wrap=True, overflow="ellipsis", crop=True)

    def _print_line(self, line: Line) -> None:
        self.console.print(Line.assemble((self._margin, "dim"), line))


class _RunningCall:
    """A tool call in progress, and the last lines of its output."""

    def __init__(self, event: on.ToolCalled) -> None:
        self.event = event
        self.written: on.FileWritten | None = None
        """The file that it wrote."""
        self._output = ""

    def add_output(self, text: str) -> None:
        self._output = (self._output + text)[-_MAX_OUTPUT_CHARACTERS:]

    def draw_output(self, columns: int, rows: int) -> list[Line]:
        """Return the last lines of the output so far."""
        if not rows:
            return []
        lines = [line for line in without_colors(self._output).splitlines() if line.strip()]
        return [_quote_line(line, columns) for line in lines[-rows:]]


class Countdown:
    """The seconds that are left of a pause. Each time it is drawn, it looks at the clock."""

    def __init__(self, seconds: float, then: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._then = then
        self._clock = clock
        self._end = clock() + seconds

    def describe(self) -> str:
        left = math.ceil(self._end - self._clock())
        return f"{self._then} in {left} s" if left > 0 else self._then


def describe_retry(event: on.Retrying) -> str:
    """Return in words why a model call is made again, and when."""
    return f"{event.reason}: trying again in {event.seconds:.0f} s ({event.attempt} of {event.of})"


def describe_call(event: on.ToolCalled) -> Line:
    """Return a call on one line: the tool, and the argument that says most about it."""
    arguments = event.arguments
    first = next(iter(arguments.values()), "")
    value = arguments.get(_MAIN_ARGUMENT.get(event.name, "path"), first)
    if event.name == LOAD_TOOL and arguments.get("reference"):
        value = f"{value} {arguments['reference']}"
    if event.name == "update_todos":
        value = ""  # the result counts them, and the list is above the prompt
    shown = truncate_cells(clean_line(str(value)), _MAX_ARGUMENT_CELLS)
    return Line.assemble((clean_line(event.name), "bold"), " ", shown)


def describe_reload(event: on.SkillsReloaded) -> str:
    """Return in words what a reload changed."""
    return describe_delta(Delta(event.added, event.changed, event.removed))


class FoldedResult:
    """A call and the first line of its result, on one line. It also says on a narrow screen how many more there are."""

    def __init__(self, title: Line, event: on.ToolReturned, margin: str = "", summary: str = "") -> None:
        """`summary` takes the place of the result's first line."""
        self._title = title
        self._margin = margin
        self._style = "red" if _is_failure(event) else "green"
        lines = [summary] if summary else _list_lines(event.text)
        self._first = clean_line(lines[0].strip()) if lines else ""
        hidden = max(0, len(lines) - 1)
        self._count = f" (+{hidden:,} line{'s' if hidden > 1 else ''})" if hidden else ""

    def shows_all(self, columns: int) -> bool:
        """Return True if the whole result is on the line."""
        return not self._count and self._draw(columns).plain.endswith(self._first)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self._draw(options.max_width)

    def _draw(self, columns: int) -> Line:
        mark = Line.assemble((self._margin, "dim"), ("● ", self._style))
        room = columns - mark.cell_len - cell_len(self._count)
        title = self._title.copy()
        summary_cells = min(cell_len(self._first), _MIN_RESULT_CELLS) + 2
        title.truncate(max(1, room - summary_cells), overflow="ellipsis")
        summary = truncate_cells(self._first, max(1, min(_MAX_RESULT_CELLS, room - title.cell_len - 2)))
        return Line.assemble(mark, title, (f"  {summary}{self._count}", "dim"), no_wrap=True, overflow="ellipsis")


def _list_lines(text: str) -> list[str]:
    """Return the lines of a result that say something."""
    lines = without_colors(text).splitlines()
    return [line for line in lines if line.strip() and line not in _OUTPUT_LABELS]


def _is_failure(event: on.ToolReturned) -> bool:
    lines = _list_lines(event.text)
    return not event.ok or bool(lines and _COMMAND_FAILED.match(lines[-1]))


def _quote_line(line: str, columns: int) -> Line:
    return Line(f"  │ {truncate_cells(clean_line(line.rstrip()), max(1, columns - 4))}", "dim")


def _mark_line(mark: str, style: str, title: str, details: str = "") -> Line:
    line = Line.assemble((f"{mark} ", style), clean_line(title))
    if details:
        line.append(f"  {clean_line(details)}", "dim")
    return line


def _format_size(size: int) -> str:
    if size < 1024:
        return f"{size} B"
    return f"{size / 1024:.1f} KB"


def _format_seconds(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f}s"
    return f"{seconds // 60:.0f}m {seconds % 60:02.0f}s"


_SHOWN_EXCHANGES = 3
_MAX_TYPED = 1_000
_MAX_ANSWER = 6_000


@dataclass(slots=True)
class _PastExchange:
    """A message of the user and everything until the next one."""

    typed: str
    parts: list[ModelRequestPart | ModelResponsePart] = field(default_factory=list)


def view_resumed(core: AgentCore) -> Sequence[RenderableType]:
    """Return the last exchanges of the session that goes on, and say how many there are."""
    conversation = core.conversation
    messages = conversation.session.transcript if conversation.session else conversation.messages
    exchanges = _split_exchanges(messages)
    shown = exchanges[-_SHOWN_EXCHANGES:]

    heading = f"Session {conversation.id}"
    if conversation.session and conversation.session.name:
        heading += f" ({clean_line(conversation.session.name)})"
    if len(shown) < len(exchanges):
        heading += f": showing the last {len(shown)} of {count_noun(len(exchanges), 'message')}"
    else:
        heading += f": {count_noun(len(exchanges), 'message')}"
    blocks: list[RenderableType] = [Line(heading, "dim")]
    for exchange in shown:
        blocks += _view_exchange(exchange)
    return blocks


def _split_exchanges(messages: Sequence[ModelMessage]) -> list[_PastExchange]:
    exchanges: list[_PastExchange] = []
    for message in messages:
        typed = typed_text(message) if isinstance(message, ModelRequest) else ""
        # A message during a turn comes with the results of the calls before it.
        if exchanges:
            exchanges[-1].parts += [part for part in message.parts if not isinstance(part, UserPromptPart)]
        if typed:
            exchanges.append(_PastExchange(typed))
    return exchanges


def _view_exchange(exchange: _PastExchange) -> Iterator[RenderableType]:
    yield Line()
    yield Line.assemble(("› ", "bold"), truncate(clean(exchange.typed), _MAX_TYPED))
    results = {part.tool_call_id: part for part in exchange.parts if isinstance(part, ToolReturnPart)}
    for part in exchange.parts:
        if isinstance(part, TextPart) and part.content.strip():
            yield rendering.markdown(truncate(part.content, _MAX_ANSWER))
        elif isinstance(part, ToolCallPart):
            yield _view_call(part, results.get(part.tool_call_id))


def _view_call(call: ToolCallPart, result: ToolReturnPart | None) -> RenderableType:
    try:
        arguments = call.args_as_dict()
    except ValueError:  # the model did not write JSON
        arguments = {"": str(call.args)}
    title = describe_call(on.ToolCalled(call.tool_call_id, call.tool_name, arguments))
    if result is None:  # it was interrupted, or had to be repeated
        return Line.assemble(("● ", "red"), title, no_wrap=True, overflow="ellipsis")
    text = result.model_response_str(wrap_if_error=False)
    returned = on.ToolReturned(call.tool_call_id, call.tool_name, text, ok=result.outcome == "success")
    return FoldedResult(title, returned)
