"""Events on a terminal: text as Markdown, everything else folded to a line."""

from typing import Any

from rich.console import Console
from rich.status import Status
from rich.text import Text as Line

from skillshelf.agent import events as on
from skillshelf.characters import clean_line
from skillshelf.repl.markdown import MarkdownStream

# The argument that says most about a call, by tool; others show their first.
_TELLING = {"run_command": "command", "search_files": "pattern", "find_files": "pattern", "search_skills": "query"}


class Screen:
    """Draws one turn after the other."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._answer = MarkdownStream(console)
        self._calls: dict[str, Line] = {}
        self._status: Status | None = None

    def show(self, event: on.Event) -> None:
        if not isinstance(event, on.Text):
            self.pause()
        match event:
            case on.Text(text=text):
                self._wait(None)
                self._answer.feed(text)
            case on.ToolCalled():
                self._calls[event.id] = line = call_line(event)
                self._wait(line)
            case on.ToolReturned():
                self._fold(_result_line(self._calls.pop(event.id, Line(clean_line(event.name))), event))
            case on.SkillLoaded(skill=skill, by=by, size=size):
                self._print(_mark("◆", "magenta", f"skill {skill}", f"loaded {_by(by)}, {_size(size)}"))
            case on.ReferenceLoaded(skill=skill, reference=reference, by=by, size=size):
                self._print(_mark("◇", "magenta", f"{skill}/{reference}", f"loaded {_by(by)}, {_size(size)}"))
            case on.SkillsReloaded():
                self._print(_mark("↻", "cyan", "skills reloaded", delta_words(event)))
            case on.Notice(text=text):
                self._print(_mark("!", "yellow", text))
            case on.Failed(message=message):
                self._print(_mark("✗", "red", message))
            case on.Finished(stopped=True):
                self._print(_mark("■", "yellow", "stopped", "what was said is kept"))

    def waiting(self) -> None:
        """The model has been asked and has not answered yet."""
        self._wait(Line("thinking", "dim"))

    def pause(self) -> None:
        """Something else is about to be printed."""
        self._answer.end()
        self._wait(None)

    def _fold(self, line: Line) -> None:
        self.console.print(line, no_wrap=True, overflow="ellipsis", crop=True)

    def _print(self, line: Line) -> None:
        self.console.print(line)

    def _wait(self, line: Line | None) -> None:
        if self._status:
            self._status.stop()
            self._status = None
        if line is not None and self.console.is_terminal:
            self._status = self.console.status(line, spinner="dots")
            self._status.start()


def call_line(event: on.ToolCalled) -> Line:
    """A call on one line: the tool, and what it is about."""
    value = event.arguments.get(_TELLING.get(event.name, "path"), next(iter(event.arguments.values()), ""))
    return Line.assemble((clean_line(event.name), "bold"), " ", _clip(value, 60))


def _result_line(call: Line, event: on.ToolReturned) -> Line:
    mark = ("● ", "green") if event.ok else ("● ", "red")
    lines = event.text.strip().splitlines() or [""]
    more = f" (+{len(lines) - 1} lines)" if len(lines) > 1 else ""
    return Line.assemble(mark, call, ("  " + _clip(lines[0], 60) + more, "dim"))


def _mark(mark: str, style: str, what: str, more: str = "") -> Line:
    return Line.assemble((f"{mark} ", style), clean_line(what), (f"  {clean_line(more)}" if more else "", "dim"))


def delta_words(event: on.SkillsReloaded) -> str:
    """What a reload changed, in words."""
    kinds = (("added", event.added), ("changed", event.changed), ("removed", event.removed))
    return "; ".join(f"{kind} {', '.join(names)}" for kind, names in kinds if names)


def _by(who: str) -> str:
    return {"model": "by the model", "user": "by you", "shelf": "by the shelf"}[who]


def _size(size: int) -> str:
    return f"{size / 1024:.1f} KB" if size >= 1024 else f"{size} B"


def _clip(value: Any, length: int) -> str:
    text = clean_line(str(value))
    return text if len(text) <= length else text[: length - 1] + "…"
