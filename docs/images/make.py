"""The pictures of the documentation: real commands in a pseudo-terminal, drawn as SVG.

    python docs/images/make.py

Each picture shows what `skillshelf` writes to a terminal of 100 columns in examples/workspace, with no skills in the
home folder. The same code gives the same bytes.
"""

import io
import re
import sys
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))

from docs_examples import COLUMNS, terminal, workspace  # noqa: E402

PICTURES = {
    "shelf": ("skillshelf list", "skillshelf search sign a pdf form", "skillshelf why old-deploy"),
    "check": ("skillshelf check",),
    "cost": ("skillshelf cost",),
    "show": ("skillshelf show incident-runbook",),
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
        HERE.joinpath(f"{name}.svg").write_text(picture(name, commands), encoding="utf-8")
        print(f"docs/images/{name}.svg")


def picture(name: str, commands: tuple[str, ...]) -> str:
    """The commands as they are typed, each with what the terminal then shows."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    for line in transcript(commands):
        console.print(line, soft_wrap=True)
    svg = console.export_svg(
        title="examples/workspace",
        theme=THEME,
        code_format=FORMAT.replace("{label}", "; ".join(commands)),
        unique_id=name,
    )
    return LEADING_SPACE.sub(_begin_at_the_first_letter, BUTTON.sub("", svg))


def transcript(commands: tuple[str, ...]) -> list[Text]:
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
