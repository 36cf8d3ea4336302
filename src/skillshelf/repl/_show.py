"""Events on a terminal: text as Markdown, everything else folded to a line."""

import re

from rich.console import Console
from rich.status import Status
from rich.text import Text as Line

from skillshelf.agent import events as on
from skillshelf.agent import say
from skillshelf.descriptor import Delta
from skillshelf.rendering import cut
from skillshelf.repl._markdown import MarkdownStream
from skillshelf.text import clean_line

# The argument that says most about a call, by tool; others show their first.
_TELLING = {
    "run_command": "command",
    "search_files": "pattern",
    "find_files": "pattern",
    "search_skills": "query",
    "load_skill_instructions": "skill_name",
}


LOAD = "load_skill_instructions"
# What the shell puts around the output of a command.
_LABELS = ("[stdout]", "[stderr]")
_FAILED = re.compile(r"\[exit code: |\[Command timed out")


class Screen:
    """Draws one turn after the other."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._answer = MarkdownStream(console)
        self._calls: dict[str, on.ToolCalled] = {}
        self._loaded: list[tuple[str, str]] = []
        """Skills and references that were told of, and whose calls have not returned."""
        self._status: Status | None = None

    def show(self, event: on.Event) -> None:
        if isinstance(event, on.Text):
            self._wait(None)
            self._answer.feed(event.text)
            return
        if isinstance(event, on.Thinking):
            if self._status is None:
                self.pause()
                self.waiting()
            return
        if isinstance(event, on.Usage | on.SkillInvoked | on.ReferenceDenied):  # told by what follows
            return
        self.pause()
        self._tell(event)
        if isinstance(event, on.Failed | on.Finished):
            self._calls.clear()
            self._loaded.clear()
        else:
            self.waiting()

    def _tell(self, event: on.Event) -> None:
        match event:
            case on.ToolCalled():
                self._calls[event.id] = event
            case on.ToolReturned():
                self._returned(event)
            case on.SkillLoaded(skill=skill, by=by, size=size):
                self._load(skill, "", by)
                self._print(_mark("◆", "magenta", f"skill {skill}", f"loaded {_by(by)}, {_size(size)}"))
            case on.ReferenceLoaded(skill=skill, reference=reference, by=by, size=size):
                self._load(skill, reference, by)
                self._print(_mark("◇", "magenta", f"{skill}/{reference}", f"loaded {_by(by)}, {_size(size)}"))
            case on.SkillsReloaded():
                self._print(_mark("↻", "cyan", reload_line(event)))
            case on.Notice(text=text):
                self._print(_mark("!", "yellow", text))
            case on.Failed(message=message):
                self._print(_mark("✗", "red", message))
            case on.Finished(stopped=True):
                for call in self._calls.values():
                    self._fold(Line.assemble(("■ ", "yellow"), call_line(call), ("  stopped", "dim")))
                self._print(_mark("■", "yellow", "stopped", "what was said is kept"))

    def _load(self, skill: str, reference: str, by: str) -> None:
        if by == "model":
            self._loaded.append((skill, reference))

    def _returned(self, event: on.ToolReturned) -> None:
        call = self._calls.pop(event.id, None)
        if event.ok and call and event.name == LOAD and (told := self._told_of(call)):
            self._loaded.remove(told)  # that line says it all
        else:
            self._fold(_result_line(call_line(call) if call else Line(clean_line(event.name)), event))

    def _told_of(self, call: on.ToolCalled) -> tuple[str, str] | None:
        """What a call has loaded, if a line tells of it; the reference may have been asked for by its file name."""
        skill, reference = str(call.arguments.get("skill_name", "")), str(call.arguments.get("reference") or "")
        for told in self._loaded:
            if skill.endswith(told[0]) and (told[1] == reference or told[1].endswith(f"/{reference}")):
                return told
        return None

    def waiting(self, what: str = "thinking") -> None:
        """Show what is going on while nothing is said: the tools that run, or else the model thinks."""
        calls = list(self._calls.values())
        more = Line(f" and {len(calls) - 1} more" if len(calls) > 1 else "", "dim")
        self._wait(call_line(calls[0]) + more if calls else Line(what, "dim"))

    def pause(self) -> None:
        """Something else is about to be printed."""
        self._wait(None)
        self._answer.end()

    def _fold(self, line: Line) -> None:
        self.console.print(line, no_wrap=True, overflow="ellipsis", crop=True)

    def _print(self, line: Line) -> None:
        self.console.print(line)

    def _wait(self, line: Line | None) -> None:
        if self._status:
            self._status.stop()
            self._status = None
        if line is not None and self.console.is_terminal:
            line.truncate(max(1, self.console.width - 4), overflow="ellipsis")
            self._status = self.console.status(line, spinner="dots")
            self._status.start()


def call_line(event: on.ToolCalled) -> Line:
    """A call on one line: the tool, and what it is about."""
    given = event.arguments
    value = given.get(_TELLING.get(event.name, "path"), next(iter(given.values()), ""))
    if event.name == LOAD and given.get("reference"):
        value = f"{value} {given['reference']}"
    return Line.assemble((clean_line(event.name), "bold"), " ", cut(clean_line(str(value)), 60))


def _result_line(call: Line, event: on.ToolReturned) -> Line:
    lines = [line for line in event.text.splitlines() if line.strip() and line not in _LABELS] or [""]
    failed = not event.ok or _FAILED.match(lines[-1])
    rest = len(lines) - 1
    more = f" (+{rest} line{'s' * (rest > 1)})" if rest else ""
    said = "  " + cut(clean_line(lines[0].strip()), 60) + more
    return Line.assemble(("● ", "red" if failed else "green"), call, (said, "dim"))


def _mark(mark: str, style: str, what: str, more: str = "") -> Line:
    return Line.assemble((f"{mark} ", style), clean_line(what), (f"  {clean_line(more)}" if more else "", "dim"))


def reload_line(event: on.SkillsReloaded) -> str:
    """What a reload changed, in words."""
    return say(Delta(event.added, event.changed, event.removed))


def _by(who: str) -> str:
    return {"model": "by the model", "user": "by you", "shelf": "by the shelf"}[who]


def _size(size: int) -> str:
    return f"{size / 1024:.1f} KB" if size >= 1024 else f"{size} B"
