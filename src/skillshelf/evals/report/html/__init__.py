"""Reports as HTML pages that need nothing else: no network, no fonts, and no script to be read."""

from skillshelf.evals.report.html._history_page import render_history_page
from skillshelf.evals.report.html._page import render_page

__all__ = ["render_history_page", "render_page"]
