"""The question before a tool runs: what it would do is on the screen, and one key decides."""

from rich.console import Console, Group, RenderableType
from rich.text import Text

from skillshelf.agent import SHELL, WRITING, Approval
from skillshelf.repl._keys import Keyboard
from skillshelf.repl._quoted import Argument, Diff, Excerpt
from skillshelf.text import clean, clean_line

_IN_THE_DIFF = ("content", "old_text", "new_text", "replacements")
_ROWS, _DIFF_ROWS = 20, 200
"""What is longer is shown in part: its beginning must not be pushed off the screen unseen."""
_FILES = 5
STOP = "stop"
"""The answer of Ctrl+C: no, and the turn ends."""


async def ask_approval(approval: Approval, console: Console, keyboard: Keyboard) -> str:
    """Return yes, no, always, or STOP."""
    parts = _parts(approval)
    excerpts = [Excerpt(console, what, rows) for what, rows in parts]
    if approval.repeated:
        console.print(Text("The file changed after you allowed this. The change is now:", "yellow"))
    console.print(*excerpts, sep="")
    for file in approval.unreviewed[:_FILES]:
        console.print(Text(clean_line(str(file)), "yellow"))
    if len(approval.unreviewed) > _FILES:
        console.print(Text(f"{len(approval.unreviewed) - _FILES} more files are not approved.", "yellow"))
    if approval.confinement is not None:
        console.print(Text(clean_line(approval.confinement.summary), "dim"))
    answers = {"y": "yes", "n": "no", "a": "always"}
    if any(one.hidden for one in excerpts):
        answers["v"] = "view"
    while True:
        view = " [v]iew all of it" if "v" in answers else ""
        question = f"Allow {clean_line(approval.tool)}? [y]es [n]o{view} {_always(approval)}"
        answer = await keyboard.ask(question, answers, "no", stopped=STOP)
        console.print(Text("no" if answer == STOP else answer, "dim"))
        if answer != "view":
            return answer
        del answers["v"]
        for what, _ in parts:
            console.print(what)


def _parts(approval: Approval) -> list[tuple[RenderableType, int]]:
    """What it is about, and in how many rows of the screen it is shown at first."""
    given = [
        Argument(name, value)
        for name, value in approval.arguments.items()
        if value is not None and not (approval.diff and name in _IN_THE_DIFF)
    ]
    if approval.path and not approval.path.endswith(f"/{approval.arguments.get('path')}"):
        given.append(Argument("file", approval.path))  # the model spelled it in another way
    parts: list[tuple[RenderableType, int]] = [(Group(*given), _ROWS)] if given else []
    return [*parts, (Diff(clean(approval.diff)), _DIFF_ROWS)] if approval.diff else parts


def _always(approval: Approval) -> str:
    """What that key would allow: no more than it says."""
    if approval.tool == SHELL:
        return "[a]lways this command"
    if approval.tool in WRITING:
        return f"[a]lways: every {approval.tool} but of SKILL.md and AGENTS.md"
    return "[a]lways in this session"
