"""The report as an HTML page that needs nothing else: no network, no fonts, and no script to be read."""

from skillshelf.evals.report.html._page import render_page

__all__ = ["render_page"]
