"""The reports of a run: for a terminal, for CI, and as an HTML page."""

from skillshelf_evals._run_folder import find_run_folder, find_runs_folder
from skillshelf_evals._text import format_money
from skillshelf_evals.report._annotations import annotate
from skillshelf_evals.report._comparison import compare
from skillshelf_evals.report._gates import Gates, judge_run
from skillshelf_evals.report._judge_check import check_judge, make_label_template
from skillshelf_evals.report._junit import render_junit
from skillshelf_evals.report._page import render_page
from skillshelf_evals.report._runs import RunUnreadableError, read_history, read_run, summary_as_json, write_run
from skillshelf_evals.report._summary import summarize
from skillshelf_evals.report._tables import disarm_line, render_plain, render_rich, summary_line, summary_tables

__all__ = [
    "Gates",
    "RunUnreadableError",
    "annotate",
    "check_judge",
    "compare",
    "disarm_line",
    "find_run_folder",
    "find_runs_folder",
    "format_money",
    "judge_run",
    "make_label_template",
    "read_history",
    "read_run",
    "render_junit",
    "render_page",
    "render_plain",
    "render_rich",
    "summarize",
    "summary_as_json",
    "summary_line",
    "summary_tables",
    "write_run",
]
