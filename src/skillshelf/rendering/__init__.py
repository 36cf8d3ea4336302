"""Show skill text and answers with rich, with nothing hidden. Imported only for a terminal."""

from typing import TYPE_CHECKING

from skillshelf._lazy import export_lazily

if TYPE_CHECKING:
    from skillshelf.rendering._markdown import markdown
    from skillshelf.rendering._output import Cleaned, truncate_cells
    from skillshelf.rendering._pager import LongText, can_page, fits_screen, show_pages
    from skillshelf.rendering._review import ReviewPage

__all__ = ["Cleaned", "LongText", "ReviewPage", "can_page", "fits_screen", "markdown", "show_pages", "truncate_cells"]

# Markdown brings a parser and the lexers of many languages: cutting a line must not wait for them.
__getattr__ = export_lazily(
    __name__,
    {
        "_markdown": ["markdown"],
        "_output": ["Cleaned", "truncate_cells"],
        "_pager": ["LongText", "can_page", "fits_screen", "show_pages"],
        "_review": ["ReviewPage"],
    },
)
