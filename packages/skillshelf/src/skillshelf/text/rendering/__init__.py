"""Show skill text and answers with rich, with nothing hidden. Imported only for a terminal."""

from typing import TYPE_CHECKING

from skillshelf.lazy import export_lazily
from skillshelf.text.rendering._output import Cleaned, ReviewPage, fits_screen, show_in_pager, truncate_cells

if TYPE_CHECKING:
    from skillshelf.text.rendering._markdown import make_parser, markdown

__all__ = ["Cleaned", "ReviewPage", "fits_screen", "make_parser", "markdown", "show_in_pager", "truncate_cells"]

# Markdown brings a parser and the lexers of many languages, for which a line of output would wait 55 ms.
__getattr__ = export_lazily(__name__, {"_markdown": ["make_parser", "markdown"]})
