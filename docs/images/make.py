"""Draw the pictures of the documentation: real commands in a pseudo-terminal, as SVG.

    python docs/images/make.py

Each picture shows a terminal of 100 columns: the output of commands in examples/workspace, with an empty home folder,
or a session of `skillshelf chat` with a scripted model and the keys below. The same code gives the same bytes, apart
from token counts: the prompt contains the workspace's path, which differs between machines.

report.png and transcript.png are made by report.py, which needs a browser.
"""

import html
import io
import json
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "tests")]

from screen import chat, fresh_clone  # noqa: E402

from docs_examples import COLUMNS, WORKSPACE, open_workspace, run_in_terminal  # noqa: E402

PICTURES = {
    "shelf": ("skillshelf list", "skillshelf search sign a pdf form", "skillshelf why old-deploy"),
    "check": ("skillshelf check",),
    "cost": ("skillshelf cost",),
    "show": ("skillshelf show incident-runbook",),
    "explain": (
        "skillshelf search --explain --limit 1 flaten a pdf form quickly",
        'skillshelf why release-notes --for "review this migration for the release"',
    ),
}


@dataclass(frozen=True)
class Session:
    """A chat in a fresh clone with one skill. Each step is a text to wait for on the screen and the keys to press."""

    rows: int
    script: list[Any]
    steps: tuple[tuple[str, str], ...]
    last: str
    """The text to wait for before the picture is taken."""
    window: int = 0
    options: tuple[str, ...] = ()
    """Further options of `skillshelf chat`."""
    cropped: bool = False
    """Whether the picture ends at the row with `last`, without the prompt and the status line below it."""
    first: str = ""
    """The text of the row at which the picture begins."""


def call(tool: str, **arguments: str) -> dict[str, Any]:
    return {"tool": tool, "arguments": arguments}


PROMPT = "· ask ·"  # the status line, which is there while the user can type
NOTES = "# v1.2\n\n- Breaking: Python 3.9 is no longer supported. (#44)\n- There is a dark mode now. (#41)\n"
WORK = [
    call("load_skill_instructions", skill_name="release-notes", reference="references/style.md"),
    call("read_file", path="merged.txt"),
    call("write_file", path="NOTES.md", content=NOTES),
    "`NOTES.md` has the release notes for **v1.2**: one breaking change and one new feature. I left out #43, which "
    "users won't notice.",
]
AGREE = (("[r]eview", "r"), ("Trust release-notes", "y"), ("approved release-notes", ""))
TURN = ((PROMPT, "/skills:rel"), ("~", "\t v1.2\r"), ("Allow write_file", "y"), ("won't notice", ""))
SESSIONS = {
    "skill": Session(
        34,
        [call("load_skill_instructions", skill_name="release-notes"), *WORK],
        ((PROMPT, "Write the release notes for v1.2.\r"), ("Allow write_file", "y")),
        "won't notice",
        options=("--trust-workspace",),
        cropped=True,
    ),
    "chat": Session(60, WORK, (*AGREE, *TURN, (PROMPT, "/skills:")), "sql-review"),
    "context": Session(
        20,
        WORK,
        (*AGREE, *TURN, (PROMPT, "/context\r"), ("by estimate", ""), (PROMPT, "/skills:incdent")),
        "incident-runbook  Lead",
        window=8_000,
        first="› /context",
    ),
}

THEME = TerminalTheme(
    (24, 26, 31),
    (214, 218, 224),
    [
        (24, 26, 31),
        (240, 113, 120),
        (135, 192, 95),
        (230, 180, 80),
        (97, 175, 239),
        (198, 140, 222),
        (86, 194, 204),
        (214, 218, 224),
    ],
)

CELL = 12.2
SPACE = "&#160;"
BUTTON = re.compile(r"<circle[^>]*/>\s*")
LEADING_SPACE = re.compile(
    r'x="(?P<x>[\d.]+)" y="(?P<y>[\d.]+)" textLength="(?P<length>[\d.]+)"(?P<rest>[^>]*)>(?P<spaces>(?:&#160;)+)'
)
# rich's own format without the web font: a page may not load one for a picture, and every system has a monospaced font.
FORMAT = """\
<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{label}">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace;
  font-size: {char_height}px; line-height: {line_height}px; }}
.{unique_id}-title {{ font-family: system-ui, 'DejaVu Sans', sans-serif; font-size: 15px; opacity: 0.5; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def main() -> None:
    for name, commands in PICTURES.items():
        write(name, draw(name, "examples/workspace", "; ".join(commands), run_commands(commands)))
    for name, session in SESSIONS.items():
        write(name, draw(name, "skillshelf chat", "a session of skillshelf chat", play(session)))


def write(name: str, svg: str) -> None:
    path = HERE / f"{name}.svg"
    is_session = name in SESSIONS
    # Token counts alone are not a reason to change the picture of a session.
    if is_session and path.exists() and visible_text(path.read_text(encoding="utf-8")) == visible_text(svg):
        print(f"docs/images/{name}.svg (unchanged)")
        return
    path.write_text(svg, encoding="utf-8")
    print(f"docs/images/{name}.svg")


def visible_text(svg: str) -> str:
    """Return the text in a picture without spaces, with every number replaced by 0."""
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", svg)[1:]  # without the title
    return ignore_numbers(html.unescape("".join(texts)))


def ignore_numbers(text: str) -> str:
    return re.sub(r"\d[\d,]*", "0", "".join(text.split()))


def draw(name: str, title: str, label: str, lines: list[Text]) -> str:
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    for line in lines:
        console.print(line, soft_wrap=True)
    svg = console.export_svg(title=title, theme=THEME, code_format=FORMAT.replace("{label}", label), unique_id=name)
    return LEADING_SPACE.sub(_start_at_the_first_letter, BUTTON.sub("", svg))


def play(session: Session, is_ready: Callable[[list[Text]], bool] | None = None) -> list[Text]:
    """Play a session and return its last screen: as soon as `is_ready`, or when it stands still."""
    with open_workspace():
        fresh_clone(WORKSPACE)
        script = Path.home() / "script.json"
        script.write_text(json.dumps(session.script), encoding="utf-8")
        os.environ["SKILLSHELF_WINDOW"] = str(session.window)  # open_workspace restores the environment
        with chat("--model", f"script:{script}", *session.options, columns=COLUMNS, rows=session.rows) as terminal:
            for expected, keys in session.steps:
                terminal.expect(expected)
                terminal.send(keys)
            terminal.expect(session.last)
            if is_ready is None:
                return crop(session, terminal.settle())
            return crop(session, terminal.wait_until(lambda lines: is_ready(crop(session, lines))))


def crop(session: Session, lines: list[Text]) -> list[Text]:
    """Return the lines of the screen that belong into the picture."""
    lines = list(lines)
    while lines and session.first not in lines[0].plain:
        lines.pop(0)
    if session.cropped:
        while lines and session.last not in lines[-1].plain:
            lines.pop()
    return lines


def run_commands(commands: tuple[str, ...]) -> list[Text]:
    """Run commands and return them with their output."""
    lines: list[Text] = []
    with open_workspace():
        for command in commands:
            if lines:
                lines.append(Text())
            lines.append(Text.assemble(("$ ", "green"), (command, "bold")))
            lines += Text.from_ansi(run_in_terminal(command).rstrip("\n")).split("\n")
    return lines


def _start_at_the_first_letter(match: re.Match[str]) -> str:
    """Move a text to its first letter, because some SVG viewers drop leading spaces."""
    spaces = match["spaces"].count(SPACE)
    x = float(match["x"]) + spaces * CELL
    length = float(match["length"]) - spaces * CELL
    return f'x="{x:g}" y="{match["y"]}" textLength="{length:g}"{match["rest"]}>'


if __name__ == "__main__":
    main()
