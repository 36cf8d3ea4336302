"""Reports of a run: for a terminal, for CI, and as a page for people."""

from skillshelf.evals.report.blame import blame
from skillshelf.evals.report.compare import RunComparison, compare
from skillshelf.evals.report.files import RunUnreadableError, read_run, write_run
from skillshelf.evals.report.html import page
from skillshelf.evals.report.junit import junit
from skillshelf.evals.report.plain import as_json
from skillshelf.evals.report.summary import exit_code, summarize
from skillshelf.evals.report.tree import Summary

__all__ = [
    "RunComparison",
    "RunUnreadableError",
    "Summary",
    "as_json",
    "blame",
    "compare",
    "exit_code",
    "junit",
    "page",
    "read_run",
    "summarize",
    "write_run",
]
