"""The footer on a window that changes its size, or that another program has for a while."""

import os
from collections.abc import Mapping
from typing import Any

from prompt_toolkit.application import Application
from prompt_toolkit.data_structures import Point
from prompt_toolkit.layout import Layout
from prompt_toolkit.layout.screen import Screen
from prompt_toolkit.output import Output
from prompt_toolkit.renderer import CPR_Support, Renderer
from prompt_toolkit.styles import BaseStyle


class FooterRenderer(Renderer):
    """Draws the footer, and finds all of it again to erase it.

    When a window gets narrower, most terminals break the lines on the screen anew, so that the footer takes more rows
    than it was drawn on. A renderer that does not know this leaves the first ones behind as a copy.
    """

    def __init__(self, style: BaseStyle, output: Output, layout: Layout) -> None:
        super().__init__(style, output)
        # The footer needs no more room than its lines, and the answer to such a query could be taken for keys.
        self.cpr_support = CPR_Support.NOT_SUPPORTED
        self.is_suspended = False
        """True while another program has the terminal: what is on the screen is not ours to erase."""
        self._layout = layout
        self._breaks_lines = breaks_lines_anew(os.environ)
        self._drawn_columns = 0

    def render(self, app: Application[Any], layout: Layout, is_done: bool = False) -> None:
        columns = self.output.get_size().columns
        if columns != self._drawn_columns:
            self.erase(leave_alternate_screen=False)
        super().render(app, layout, is_done)
        self._drawn_columns = columns

    def erase(self, leave_alternate_screen: bool = True) -> None:
        if self.is_suspended:
            return
        screen = self.last_rendered_screen
        if screen is None:
            super().erase(leave_alternate_screen)
            return

        cursor = screen.get_cursor_position(self._layout.current_window)
        self.output.cursor_backward(cursor.x)
        self.output.cursor_up(cursor.y + self._count_added_rows(screen, cursor))
        # The first row by itself: tmux keeps a copy of a screen that is cleared from its first cell on.
        self.output.erase_end_of_line()
        self.output.cursor_down(1)
        self.output.erase_down()
        self.output.cursor_up(1)
        self.output.reset_attributes()
        self.output.enable_autowrap()
        self.output.flush()
        self.reset(leave_alternate_screen=leave_alternate_screen)

    def begin_anew(self) -> None:
        """Draw the next frame from the cursor's line on, because another program has moved the cursor."""
        self.output.write_raw("\r")
        self.output.erase_down()
        self.output.reset_attributes()
        self.reset()

    def _count_added_rows(self, screen: Screen, cursor: Point) -> int:
        """Return how many rows more than when they were drawn the lines above the cursor take now."""
        columns = self.output.get_size().columns
        if columns >= self._drawn_columns or not self._breaks_lines:
            return 0
        widths = [_find_width(screen, row) for row in range(cursor.y)]
        return sum((width - 1) // columns for width in widths if width) + cursor.x // columns


def breaks_lines_anew(environment: Mapping[str, str]) -> bool:
    """Return True if the terminal breaks lines on the screen anew when it gets narrower, as nearly all of them do."""
    if "TMUX" in environment:
        return True  # it draws the screen itself, whatever it runs in
    cuts_lines = "STY" in environment or "XTERM_VERSION" in environment
    return not cuts_lines and not environment.get("TERM", "").startswith(("rxvt", "st-", "linux"))


def _find_width(screen: Screen, row: int) -> int:
    """Return the number of cells from the left to the last one that is not blank."""
    cells = screen.data_buffer[row]
    return max((column + cell.width for column, cell in cells.items() if cell.char.strip()), default=0)
