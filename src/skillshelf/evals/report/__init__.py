"""Reports of a run: for a terminal, for CI, and as a page for people."""

from skillshelf.evals.report._blame import blame
from skillshelf.evals.report._choice import choice_as_json, choice_table, choice_verdict
from skillshelf.evals.report._compare import (
    RunComparison,
    compare,
    comparison_as_json,
    comparison_exit_code,
    comparison_tables,
)
from skillshelf.evals.report._files import HTML_FILE, RunUnreadableError, read_run, write_run
from skillshelf.evals.report._junit import junit
from skillshelf.evals.report._plain import as_json
from skillshelf.evals.report._sections import inert
from skillshelf.evals.report._summary import exit_code, summarize
from skillshelf.evals.report._terminal import headline, plain, rich, tables
from skillshelf.evals.report._tree import Summary
from skillshelf.evals.report.html import page

__all__ = [
    "HTML_FILE",
    "RunComparison",
    "RunUnreadableError",
    "Summary",
    "as_json",
    "blame",
    "choice_as_json",
    "choice_table",
    "choice_verdict",
    "compare",
    "comparison_as_json",
    "comparison_exit_code",
    "comparison_tables",
    "exit_code",
    "headline",
    "inert",
    "junit",
    "page",
    "plain",
    "read_run",
    "rich",
    "summarize",
    "tables",
    "write_run",
]
