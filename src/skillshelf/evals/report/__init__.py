"""The reports of a run: for a terminal, for CI, and as an HTML page."""

from skillshelf.evals.report._annotations import annotate
from skillshelf.evals.report._comparison import (
    RunComparison,
    compare,
    comparison_as_json,
    comparison_exit_code,
    comparison_tables,
)
from skillshelf.evals.report._format import format_money
from skillshelf.evals.report._gates import GateResult, Gates, Judgement, judge_run
from skillshelf.evals.report._history import History, history_as_json, history_tables, read_history
from skillshelf.evals.report._judge_check import (
    JudgeReport,
    check_judge,
    judge_report_as_json,
    judge_tables,
    judge_verdict,
)
from skillshelf.evals.report._junit import render_junit
from skillshelf.evals.report._run_files import HTML_FILE, RunUnreadableError, read_run, summary_as_json, write_run
from skillshelf.evals.report._summary import Fault, Stop, Summary, summarize
from skillshelf.evals.report._tables import disarm_line, render_plain, render_rich, summary_line, summary_tables
from skillshelf.evals.report.html import render_page

__all__ = [
    "HTML_FILE",
    "Fault",
    "GateResult",
    "Gates",
    "History",
    "JudgeReport",
    "Judgement",
    "RunComparison",
    "RunUnreadableError",
    "Stop",
    "Summary",
    "annotate",
    "check_judge",
    "compare",
    "comparison_as_json",
    "comparison_exit_code",
    "comparison_tables",
    "disarm_line",
    "format_money",
    "history_as_json",
    "history_tables",
    "judge_report_as_json",
    "judge_run",
    "judge_tables",
    "judge_verdict",
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
