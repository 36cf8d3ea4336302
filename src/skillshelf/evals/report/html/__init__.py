"""The report as one HTML page that needs nothing else: no network, no font, and no script to be read."""

from skillshelf.evals.report.html._page import page

__all__ = ["page"]
