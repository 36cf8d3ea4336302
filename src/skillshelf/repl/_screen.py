"""Events on a terminal: the answer as Markdown, everything else folded to a line."""

import math
import re
import time
from collections.abc import Callable

from rich.console import Console
from rich.status import Status
from rich.text import Text as Line

from skillshelf.agent import describe_delta
from skillshelf.agent import events as on
from skillshelf.descriptor import Delta
from skillshelf.discovery import LOAD_TOOL
from skillshelf.rendering import cut
from skillshelf.repl._markdown import MarkdownStream
from skillshelf.text import clean_line

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
# The shell tool of pydantic-ai's harness returns text alone: these labels around the output of a command, and a last
# line with an exit code other than 0. So a dot is red, and no more, if a command only prints such a line.
_OUTPUT_LABELS = ("[stdout]", "[stderr]")
_COMMAND_FAILED = re.compile(r"\[exit code: |\[Command timed out")
_SIDE_MARGIN = "  ┊ "
_LOADED_BY = {"model": "by the model", "user": "by you", "shelf": "by the shelf"}


class Screen:
    """Draws one turn after the other."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._answer = MarkdownStream(console)
        self._running_calls: dict[str, on.ToolCalled] = {}
        self._announced_loads: list[tuple[str, str]] = []
        """Skill and reference of each load that has a line on the screen, until its tool call returns."""
        self._status: Status | None = None
        self._margin = ""
        """What comes before the line of an event in a side conversation."""

    def show(self, event: on.Event) -> None:
        """Draw one event."""
        if isinstance(event, on.Text):
            self._stop_spinner()
            self._answer.feed(event.text)
            return
        if isinstance(event, on.Thinking):
            if self._status is None:
                self.pause()
                self.show_waiting()
            return
        if isinstance(event, on.Usage | on.SkillInvoked | on.ReferenceDenied):  # the next event says it all
            return

        self.pause()
        self._margin = _SIDE_MARGIN if event.side else ""
        self._show_line(event)
        if isinstance(event, on.Retrying):
            self._start_spinner(Countdown(event.seconds, "trying again"))
        elif isinstance(event, on.Failed | on.Finished):
            self._running_calls.clear()
            self._announced_loads.clear()
        else:
            self.show_waiting()

    def show_waiting(self, activity: str = "thinking") -> None:
        """Show a spinner with the running tools, or with this activity if none runs."""
        calls = list(self._running_calls.values())
        if not calls:
            self._start_spinner(Line(activity, "dim"))
            return

        line = describe_call(calls[0])
        if len(calls) > 1:
            line += Line(f" and {len(calls) - 1} more", "dim")
        self._start_spinner(line)

    def pause(self) -> None:
        """Finish what is being drawn, because something else is about to be printed."""
        self._stop_spinner()
        self._answer.end()

    def _show_line(self, event: on.Event) -> None:
        match event:
            case on.ToolCalled():
                self._running_calls[event.id] = event
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
                    self._print_folded(Line.assemble(("■ ", "yellow"), describe_call(call), ("  stopped", "dim")))
                self._print_line(_mark_line("■", "yellow", "stopped", "the conversation so far is kept"))

    def _show_load(self, mark: str, title: str, event: on.SkillLoaded | on.ReferenceLoaded) -> None:
        if event.by == "model":
            reference = event.reference if isinstance(event, on.ReferenceLoaded) else ""
            self._announced_loads.append((event.skill, reference))
        details = f"loaded {_LOADED_BY[event.by]}, {_format_size(event.size)}"
        self._print_line(_mark_line(mark, "magenta", title, details))

    def _show_result(self, event: on.ToolReturned) -> None:
        call = self._running_calls.pop(event.id, None)
        load = self._find_announced_load(call) if call and event.ok else None
        if load is not None:
            self._announced_loads.remove(load)  # its own line said it all
            return

        title = describe_call(call) if call else Line(clean_line(event.name))
        self._print_folded(describe_result(title, event))

    def _find_announced_load(self, call: on.ToolCalled) -> tuple[str, str] | None:
        """Return the load that this call made, if a line announced it."""
        if call.name != LOAD_TOOL:
            return None
        skill = str(call.arguments.get("skill_name", ""))
        reference = str(call.arguments.get("reference") or "")
        for loaded_skill, loaded_reference in self._announced_loads:
            # The model may have left out the reference's folder, or qualified the skill's name.
            is_reference = loaded_reference == reference or loaded_reference.endswith(f"/{reference}")
            if skill.endswith(loaded_skill) and is_reference:
                return loaded_skill, loaded_reference
        return None

    def _print_folded(self, line: Line) -> None:
        self.console.print(Line(self._margin, "dim") + line, no_wrap=True, overflow="ellipsis", crop=True)

    def _print_line(self, line: Line) -> None:
        self.console.print(Line(self._margin, "dim") + line)

    def _start_spinner(self, line: "Line | Countdown") -> None:
        self._stop_spinner()
        if self.console.is_terminal:
            if isinstance(line, Line):
                line.truncate(max(1, self.console.width - 4), overflow="ellipsis")
            self._status = self.console.status(line, spinner="dots")
            self._status.start()

    def _stop_spinner(self) -> None:
        if self._status:
            self._status.stop()
            self._status = None


class Countdown:
    """The seconds that are left of a pause. Each time it is drawn, it looks at the clock."""

    def __init__(self, seconds: float, then: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._then = then
        self._clock = clock
        self._end = clock() + seconds

    def __rich__(self) -> Line:
        left = math.ceil(self._end - self._clock())
        if left <= 0:
            return Line(self._then, "dim")
        return Line(f"{self._then} in {left} s, Ctrl+C stops", "dim")


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
    return Line.assemble((clean_line(event.name), "bold"), " ", cut(clean_line(str(value)), _MAX_ARGUMENT_CELLS))


def describe_reload(event: on.SkillsReloaded) -> str:
    """Return in words what a reload changed."""
    return describe_delta(Delta(event.added, event.changed, event.removed))


def describe_result(title: Line, event: on.ToolReturned) -> Line:
    """Return a call and the first line of its result on one line."""
    lines = [line for line in event.text.splitlines() if line.strip() and line not in _OUTPUT_LABELS]
    first = lines[0].strip() if lines else ""
    hidden = max(0, len(lines) - 1)
    failed = not event.ok or bool(lines and _COMMAND_FAILED.match(lines[-1]))

    summary = "  " + cut(clean_line(first), _MAX_RESULT_CELLS)
    if hidden:
        summary += f" (+{hidden} line{'s' if hidden > 1 else ''})"
    return Line.assemble(("● ", "red" if failed else "green"), title, (summary, "dim"))


def _mark_line(mark: str, style: str, title: str, details: str = "") -> Line:
    line = Line.assemble((f"{mark} ", style), clean_line(title))
    if details:
        line.append(f"  {clean_line(details)}", "dim")
    return line


def _format_size(size: int) -> str:
    if size < 1024:
        return f"{size} B"
    return f"{size / 1024:.1f} KB"
