"""Show skill text and answers with rich, with nothing hidden. Imported only for a terminal."""

from typing import TYPE_CHECKING

from skillshelf._lazy import export_lazily

if TYPE_CHECKING:
    from skillshelf.rendering._markdown import markdown
    from skillshelf.rendering._output import Cleaned, cut, cut_words

__all__ = ["Cleaned", "cut", "cut_words", "markdown"]

# Markdown brings a parser and the lexers of many languages: cutting a line must not wait for them.
__getattr__ = export_lazily(__name__, {"_markdown": ["markdown"], "_output": ["Cleaned", "cut", "cut_words"]})
