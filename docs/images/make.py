"""The pictures of the documentation: real commands in a pseudo-terminal, drawn as SVG.

    python docs/images/make.py

Each picture shows what `skillshelf` writes to a terminal of 100 columns: commands in examples/workspace, with no skills
in the home folder, and sessions of `skillshelf chat` as the keys below make them, with a scripted model. The same code
gives the same bytes, but for counts of tokens: a workspace's path is in the prompt, and is not the same everywhere.

report.png is not made here: it is the top of a report.html of `skillshelf eval --repeat 8 --baseline none`, in a
browser, with skills of the example workspace and a server like examples/stand_in.py, which errs now and then.
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

from docs_examples import COLUMNS, WORKSPACE, terminal, workspace  # noqa: E402
from screen import chat, fresh_clone  # noqa: E402

PICTURES = {
    "shelf": ("skillshelf list", "skillshelf search sign a pdf form", "skillshelf why old-deploy"),
    "check": ("skillshelf check",),
    "cost": ("skillshelf cost",),
    "show": ("skillshelf show incident-runbook",),
}


@dataclass(frozen=True)
class Session:
    """A chat in a fresh clone with one skill. The steps: when the screen shows this, press these keys."""

    rows: int
    script: list[Any]
    steps: tuple[tuple[str, str], ...]
    last: str
    """What the screen shows when the picture is taken."""
    window: int = 0
    options: tuple[str, ...] = ()
    """Further options of `skillshelf chat`."""
    cropped: bool = False
    """Whether the picture ends at the row with `last`, without the prompt and the status line below it."""


def call(tool: str, **arguments: str) -> dict[str, Any]:
    return {"tool": tool, "arguments": arguments}


PROMPT = "· ask ·"  # the status line, which is there while a person may type
NOTES = "# v1.2\n\n- Breaking: Python 3.9 is no longer supported. (#44)\n- There is a dark mode. (#41)\n"
WORK = [
    call("load_skill_instructions", skill_name="release-notes", reference="references/style.md"),
    call("read_file", path="merged.txt"),
    call("write_file", path="NOTES.md", content=NOTES),
    "`NOTES.md` has the release notes of **v1.2**: one breaking change and one new feature. I left out #43, because no "
    "user can notice it.",
]
AGREE = (("[r]eview", "r"), ("Trust release-notes", "y"))
TURN = ((PROMPT, "/skills:rel"), ("~", "\t v1.2\r"), ("Allow write_file", "y"), ("notice it", ""))
SESSIONS = {
    "skill": Session(
        34,
        [call("load_skill_instructions", skill_name="release-notes"), *WORK],
        ((PROMPT, "Write the release notes for v1.2.\r"), ("Allow write_file", "y")),
        "notice it",
        options=("--trust-workspace",),
        cropped=True,
    ),
    "chat": Session(54, WORK, (*AGREE, *TURN, (PROMPT, "/skills:")), "sql-review"),
    "context": Session(
        20,
        WORK,
        (*AGREE, *TURN, (PROMPT, "\x0c/context\r"), ("by estimate", ""), (PROMPT, "/skills:incdent")),
        "incident-runbook  Lead",
        window=8_000,
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
# As rich has it, less the web font: a page may not load one for a picture, and every system has a monospaced font.
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
        write(name, picture(name, "examples/workspace", "; ".join(commands), transcript(commands)))
    for name, session in SESSIONS.items():
        write(name, picture(name, "skillshelf chat", "a session of skillshelf chat", played(session)))


def write(name: str, svg: str) -> None:
    path = HERE / f"{name}.svg"
    if not path.exists() or shown(path.read_text(encoding="utf-8")) != shown(svg) or name in PICTURES:
        path.write_text(svg, encoding="utf-8")
    print(f"docs/images/{name}.svg")


def shown(svg: str) -> str:
    """The letters of a picture, without spaces, with every number the same."""
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", svg)[1:]  # less the title
    return same_numbers(html.unescape("".join(texts)))


def same_numbers(text: str) -> str:
    return re.sub(r"\d[\d,]*", "0", "".join(text.split()))


def picture(name: str, title: str, label: str, lines: list[Text]) -> str:
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    for line in lines:
        console.print(line, soft_wrap=True)
    svg = console.export_svg(title=title, theme=THEME, code_format=FORMAT.replace("{label}", label), unique_id=name)
    return LEADING_SPACE.sub(_begin_at_the_first_letter, BUTTON.sub("", svg))


def played(session: Session, is_ready: Callable[[list[Text]], bool] | None = None) -> list[Text]:
    """Return the screen at the end of a session: as soon as it is ready, or when it stands still."""
    with workspace():
        fresh_clone(WORKSPACE)
        script = Path.home() / "script.json"
        script.write_text(json.dumps(session.script), encoding="utf-8")
        os.environ["SKILLSHELF_WINDOW"] = str(session.window)  # of this workspace: put back when it ends
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
    if session.cropped:
        while lines and session.last not in lines[-1].plain:
            lines.pop()
    return lines


def transcript(commands: tuple[str, ...]) -> list[Text]:
    """The commands as they are typed, each with what the terminal then shows."""
    lines: list[Text] = []
    with workspace():
        for command in commands:
            lines += [Text()] if lines else []
            lines.append(Text.assemble(("$ ", "green"), (command, "bold")))
            lines += Text.from_ansi(terminal(command).rstrip("\n")).split("\n")
    return lines


def _begin_at_the_first_letter(match: re.Match[str]) -> str:
    """Some programs that draw SVG drop spaces at the beginning of a text, so it is moved instead."""
    spaces = match["spaces"].count(SPACE)
    x, length = float(match["x"]) + spaces * CELL, float(match["length"]) - spaces * CELL
    return f'x="{x:g}" y="{match["y"]}" textLength="{length:g}"{match["rest"]}>'


if __name__ == "__main__":
    main()
