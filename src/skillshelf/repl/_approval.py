"""The question before a tool runs: the screen shows what it would do, and one key decides."""

from rich.console import Console, Group, RenderableType
from rich.text import Text

from skillshelf.agent import SHELL, WRITING, Approval, SkillScript
from skillshelf.repl._keyboard import Keyboard
from skillshelf.repl._quotes import Argument, Diff, Excerpt
from skillshelf.text import clean, clean_line

STOP = "stop"
"""The answer of Ctrl+C: no, and the turn ends."""

_SHOWN_WITH_SCRIPT = ("skill", "script", "network")
_SHOWN_IN_DIFF = ("content", "old_text", "new_text", "replacements")
# Longer content is shown in part: its beginning must not be pushed off the screen unseen.
_MAX_ARGUMENT_ROWS = 20
_MAX_DIFF_ROWS = 200
_MAX_FILES = 5


async def ask_approval(approval: Approval, console: Console, keyboard: Keyboard) -> str:
    """Show a tool call and return the user's answer: yes, reviewed, no, always, or STOP."""
    parts = _describe(approval)
    excerpts = [Excerpt(console, content, max_rows) for content, max_rows in parts]
    if approval.script is not None:
        console.print(Text(clean_line(_introduce_script(approval.script)), "bold"))
    if approval.repeated:
        console.print(Text("The file changed after you allowed this. The change is now:", "yellow"))
    console.print(*excerpts, sep="")
    _print_warnings(approval, console)

    answers = {"y": "yes", "n": "no"}
    always = ""
    if approval.can_be_lasting:
        answers["a"] = "always"
        always = f" {_describe_always(approval)}"
    if any(excerpt.hidden_rows for excerpt in excerpts):
        answers["v"] = "view"

    while True:
        view = " [v]iew all of it" if "v" in answers else ""
        question = f"Allow {clean_line(approval.tool)}? [y]es [n]o{view}{always}"
        answer = await keyboard.ask(question, answers, "no", stopped=STOP)
        console.print(Text("no" if answer == STOP else answer, "dim"))
        if answer == "yes" and approval.diff and "v" not in answers:
            return "reviewed"
        if answer != "view":
            return answer

        del answers["v"]
        for content, _ in parts:
            console.print(content)


def _describe(approval: Approval) -> list[tuple[RenderableType, int]]:
    """Return what the call is about, in parts, each with the number of rows it may take at first."""
    arguments = [
        Argument(name, value)
        for name, value in approval.arguments.items()
        if value is not None
        and not (approval.diff and name in _SHOWN_IN_DIFF)
        and not (approval.script and name in _SHOWN_WITH_SCRIPT)
    ]
    if approval.path and not approval.path.endswith(f"/{approval.arguments.get('path')}"):
        arguments.append(Argument("file", approval.path))  # the model spelled the path differently

    parts: list[tuple[RenderableType, int]] = []
    if arguments:
        parts.append((Group(*arguments), _MAX_ARGUMENT_ROWS))
    if approval.diff:
        parts.append((Diff(clean(approval.diff)), _MAX_DIFF_ROWS))
    if approval.script is not None:
        parts.append((Argument(approval.script.path, approval.script.text.rstrip("\n")), _MAX_ARGUMENT_ROWS))
    return parts


def _introduce_script(script: SkillScript) -> str:
    """Say what would run, with everything that the script gets beyond the folder."""
    words = [f"{script.path} of the skill {script.skill}, with its content {script.tree[:12]}"]
    if script.dependencies is not None:
        words.append(f"with the packages {', '.join(script.dependencies.packages)}")
    if script.variables:
        words.append(f"with the variables {', '.join(script.variables)}")
    words.append("WITH THE NETWORK" if script.network else "without the network")
    return ", ".join(words) + "."


def _print_warnings(approval: Approval, console: Console) -> None:
    for file in approval.unreviewed[:_MAX_FILES]:
        console.print(Text(clean_line(str(file)), "yellow"))
    if len(approval.unreviewed) > _MAX_FILES:
        console.print(Text(f"{len(approval.unreviewed) - _MAX_FILES} more files are not approved.", "yellow"))
    script = approval.script
    if script is not None and approval.confinement is not None and not script.network and approval.confinement.network:
        console.print(Text("The network cannot be blocked on this system: the script can use it.", "yellow"))
    if approval.confinement is not None:
        console.print(Text(clean_line(approval.confinement.summary), "dim"))


def _describe_always(approval: Approval) -> str:
    """Return what the key `a` would allow, and no more than it allows."""
    if approval.tool == SHELL:
        return "[a]lways this command"
    if approval.script is not None:
        network = ", with the network" if approval.script.network else ""
        return f"[a]lways this script while it stays as it is, with any arguments{network}"
    if approval.tool in WRITING:
        return f"[a]lways: every {approval.tool}, except on SKILL.md and AGENTS.md"
    return "[a]lways in this session"
