"""The tables of a summary, for a terminal and as plain text for a pipe, with links to trials for the page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from skillshelf.text import clean, clean_line, count_noun, truncate
from skillshelf.text.tables import Cell, Column, Table, to_plain_lines, to_rich
from skillshelf_evals._results import Arm
from skillshelf_evals.report._format import (
    MAX_REASON,
    NO_VALUE,
    format_change,
    format_cost,
    format_count,
    format_errors,
    format_gain,
    format_interval,
    format_p,
    format_percent,
    format_rate,
    format_scripted,
    format_seconds,
    skill_label,
)
from skillshelf_evals.report._summary import ArmSummary, CaseSummary, Group, Summary
from skillshelf_evals.stats import Counts

if TYPE_CHECKING:
    from rich.console import RenderableType


COUNTED = "passed,missed"
"""The status of trials that are in a rate."""
MAX_ROWS = 50
MAX_REASONS = 3
MAX_GAPS = 4
MAX_THEFTS = 5
MAX_FAULT_CASES = 10
_STATUS_COLORS = {"missed": "red", "flaky": "red", "error": "yellow"}
_WORKFLOW_COMMAND = re.compile(r"^\s*:(?=:)")


def link_trials(**conditions: str | int | None) -> str:
    """Return the address of the trials that meet every condition; None is no condition.

    The names are those of CONDITIONS in page.js. `about` names a skill of which the case says whether it should be
    loaded. `loaded` names a skill that the trial loaded, and is empty for trials that loaded none. `failed` names a
    check that did not hold. `stopped` is why the trial ended early. `fault` is the number of an infrastructure error.
    `compared` is the arm that the case is compared with. Only live cases are in a rate.
    """
    given = {}
    for name, value in sorted(conditions.items()):
        if isinstance(value, bool):
            value = "yes" if value else "no"
        if value is not None:
            given[name] = clean(str(value))  # the page shows names with hidden characters written out
    return f"#trials?{urlencode(given, quote_via=quote)}"


def link_rate(skill: str | None, arm: Arm) -> str:
    """Return the address of the trials that a pass rate is over. No skill means all of them."""
    return link_trials(skill=skill, live=True, arm=arm, status=COUNTED)


def link_gain(skill: str | None, base: str) -> str:
    """Return the address of the trials that a gain is over."""
    return link_trials(skill=skill, arm=f"with,{base}", status=COUNTED, compared=base)


def summary_tables(summary: Summary) -> tuple[Table, ...]:
    """Return the tables of a summary in their order, without those that have no rows."""
    return tuple(table for table in make_tables(summary).values() if table.rows)


def make_tables(summary: Summary, *, is_full: bool = False) -> dict[str, Table]:
    """Return the tables of a summary by name. The page has them in full, a terminal as much as a reader takes in."""
    return {
        "skills": _skills_table(summary),
        "scripted": _scripted_table(summary),
        "cases": cut_rows(_cases_table(summary)),
        "gain": _gain_table(summary),
        "triggers": _triggers_table(summary),
        "confusion": _confusion_table(summary),
        "coverage": _coverage_table(summary, is_full),
        "faults": _faults_table(summary, is_full),
    }


def summary_line(summary: Summary) -> str:
    """Return the run in one line: the live cases with their rate, and how many scripted ones passed."""
    arm = summary.total.arms.get("with")
    parts = [*_describe_live(arm), _describe_spending(summary.total)] if arm else []
    if summary.total.scripted != Counts():
        parts.append(format_scripted(summary.total.scripted))
    return "; ".join(parts) or "Nothing was tried."


def _describe_live(arm: ArmSummary) -> list[str]:
    counts = arm.counts
    parts = [f"{counts.passed} of {count_noun(counts.trials, 'trial')} passed, {format_rate(arm.rate)}"]
    if arm.flaky and arm.flaky.passed:
        parts.append(f"{arm.flaky.passed} of {count_noun(arm.flaky.total, 'case')} flaky")
    if counts.errors:
        parts.append(format_errors(counts.errors))
    return parts


def _describe_spending(total: Group) -> str:
    text = f"{format_count(total.spent.tokens)} tokens"
    if total.spent.unpriced < total.spent.trials:
        text += f", {format_cost(total.spent)}"
    return f"{text} with the baseline" if len(total.arms) > 1 else text


def format_case_rate(case: CaseSummary) -> str:
    """Return the rate of a case with its interval; a scripted case has none, as it ends the same way every time."""
    return format_rate(case.main.rate) if case.info.live else "scripted"


def render_plain(tables: Sequence[Table], last_line: str = "") -> str:
    """Return tables as aligned text, complete and without color, for a pipe or the log of a CI."""
    lines: list[str] = []
    for table in tables:
        lines += [*to_plain_lines(table), ""]
    if last_line:
        lines.append(clean_line(last_line))
    return "".join(f"{disarm_line(line)}\n" for line in lines)


def render_rich(tables: Sequence[Table], last_line: str = "", style: str = "") -> RenderableType:
    """Return tables for a terminal. Imports rich."""
    from rich.console import Group as Lines
    from rich.text import Text

    lines: list[RenderableType] = []
    for table in tables:
        lines += [to_rich(_color_rows(table)), Text("")]
    if last_line:
        lines.append(Text(clean_line(last_line), style))
    return Lines(*lines)


def _color_rows(table: Table) -> Table:
    """Color whole rows by the worst status in them."""
    rows: list[Sequence[str | Cell]] = []
    for row in table.rows:
        color = next((_STATUS_COLORS[cell] for cell in row if isinstance(cell, str) and cell in _STATUS_COLORS), "")
        rows.append([Cell(cell, color) if isinstance(cell, str) else cell for cell in row])
    return table._replace(rows=rows)


def cut_rows(table: Table) -> Table:
    """Return a table with as many rows as a reader takes in, and a note that counts the others."""
    left_out = len(table.rows) - MAX_ROWS
    if left_out <= 0:
        return table
    notes = (*table.notes, f"{left_out} more rows are in the HTML report")
    return table._replace(rows=table.rows[:MAX_ROWS], notes=notes)


def disarm_line(line: str) -> str:
    """Return a line that GitHub does not take for a workflow command, whatever the name of a skill or case is.

    GitHub looks for `::` after any blanks at the beginning, and for `##[` anywhere.
    """
    return _WORKFLOW_COMMAND.sub(r"\g<0> ", line.replace("##[", "## ["))


def labelled_groups(summary: Summary) -> list[tuple[str, Group]]:
    """Return each skill with its label, and all cases together if there are several skills."""
    groups = [(skill_label(group.name), group) for group in summary.skills]
    if len(groups) > 1:
        groups.append(("all", summary.total))
    return groups


def skill_of(group: Group, summary: Summary) -> str | None:
    """Return the skill that a group of cases is for; None for all cases."""
    return None if group is summary.total else group.name


def _skills_table(summary: Summary) -> Table:
    rows = []
    for label, group in labelled_groups(summary):
        for arm, numbers in group.arms.items():
            link = link_trials(skill=skill_of(group, summary), live=True, arm=arm)
            rows.append(
                (
                    label,
                    Cell(arm, link=link),
                    f"{numbers.counts.passed}/{numbers.counts.trials}",
                    format_rate(numbers.rate),
                    str(numbers.counts.errors or ""),
                    format_count(numbers.spent.tokens),
                    format_seconds(numbers.spent.seconds),
                    format_cost(numbers.spent),
                )
            )

    titles = ("passed", "rate [95%]", "errors", "tokens", "time", "cost")
    columns = (Column("skill"), Column("arm"), *(Column(title, right=True) for title in titles))
    return Table("Skills", columns, rows)


def _scripted_table(summary: Summary) -> Table:
    rows = []
    for label, group in labelled_groups(summary):
        counts = group.scripted
        if counts != Counts():
            link = link_trials(skill=skill_of(group, summary), live=False)
            rows.append((label, Cell(f"{counts.passed}/{counts.trials}", link=link), str(counts.errors or "")))
    columns = (Column("skill"), Column("passed", right=True), Column("errors", right=True))
    return Table("Scripted cases", columns, rows)


def _cases_table(summary: Summary) -> Table:
    """Return the cases that missed, then those with errors."""
    cases = [case for case in summary.total.cases if case.main.counts.missed or case.main.counts.errors]
    cases.sort(key=lambda case: not case.main.counts.missed)
    rows = []
    for case in cases:
        counts = case.main.counts
        rows.append((case.status, f"{counts.passed}/{counts.trials}", case.info.label, _explain_case(case)))

    columns = (Column("status"), Column("passed", right=True), Column("case"), Column("why"))
    return Table("Cases to look at", columns, rows)


def _explain_case(case: CaseSummary) -> str:
    reasons = [f"{miss.check}: {miss.reason}" for miss in case.main.misses] or list(dict.fromkeys(case.main.errors))
    shown = [truncate(reason, MAX_REASON) for reason in reasons[:MAX_REASONS]]
    if len(reasons) > MAX_REASONS:
        shown.append(f"and {len(reasons) - MAX_REASONS} more")
    return "; ".join(shown)


def _gain_table(summary: Summary) -> Table:
    rows = []
    notes = []
    tests = 1
    for label, group in labelled_groups(summary):
        for versus in group.versus:
            difference = versus.difference
            link = link_gain(skill_of(group, summary), versus.base)
            gain: tuple[str | Cell, str, str] = (NO_VALUE, NO_VALUE, NO_VALUE)
            if difference:
                gain = (Cell(format_gain(difference), link=link), difference.verdict, format_p(difference.corrected_p))
                tests = max(tests, difference.tests)
            tokens = format_change(versus.tokens)
            cost = format_change(versus.cost, "$")
            cases = Cell(str(len(versus.pairs)), link=link)
            seconds = format_change(versus.seconds, "s")
            rows.append((label, versus.base, cases, *gain, tokens, seconds, cost))
            if versus.account:
                notes.append(f"{label} against {versus.base}: {versus.account}")
            if difference and difference.verdict == "open" and versus.settle:
                notes.append(f"{label} against {versus.base}: {versus.settle.text}")

    p_title = "p"
    if tests > 1:
        p_title = "corrected p"
        notes.append(
            f"p is corrected for {tests} tests (Holm): if nothing differs, at most 5% of such tables have a verdict"
        )
    titles = (
        "skill",
        "against",
        "cases",
        "gain [95%]",
        "verdict",
        p_title,
        "tokens per trial",
        "time per trial",
        "cost per trial",
    )
    columns = [Column(title, right=title == "cases") for title in titles]
    return Table("Gain", columns, rows, notes)


def _triggers_table(summary: Summary) -> Table:
    rows = []
    for group in summary.skills:
        score = group.trigger
        if score:
            name = group.name
            f1 = f"{format_percent(score.f1)} {format_interval(score.f1_interval)}".rstrip()
            link = partial(link_trials, live=True, arm="with", status=COUNTED)
            rows.append(
                (
                    skill_label(name),
                    Cell(format_rate(score.precision), link=link(about=name, loaded=name)),
                    Cell(format_rate(score.recall), link=link(skill=name, trigger=True)),
                    Cell(f1, link=link(about=name)),
                )
            )

    titles = ("precision [95%]", "recall [95%]", "F1 [95%]")
    columns = (Column("skill"), *(Column(title, right=True) for title in titles))
    return Table("Triggers", columns, rows)


def _confusion_table(summary: Summary) -> Table:
    confusion = summary.confusion
    if confusion is None:
        return Table("", (), ())
    rows = []
    for row in confusion.rows:
        counts = [str(confusion.counts.get((row, column), "")) for column in confusion.columns]
        rows.append((str(row), str(confusion.totals[row]), *counts))

    columns = [Column("should be loaded"), Column("trials", right=True)]
    columns += [Column(column or "(none)", right=True) for column in confusion.columns]
    notes = [
        f"{column} was loaded in {number} trials that were for {row}"
        for row, column, number in confusion.stolen[:MAX_THEFTS]
    ]
    return Table("Who was loaded", columns, rows, notes)


def _coverage_table(summary: Summary, is_full: bool) -> Table:
    rows = []
    for coverage in summary.coverage:
        references = f"{coverage.references - len(coverage.unloaded)}/{coverage.references}"
        sections = f"{coverage.sections - len(coverage.unread)}/{coverage.sections}"
        gaps = ", ".join(coverage.gaps if is_full else coverage.gaps[:MAX_GAPS])
        if len(coverage.gaps) > MAX_GAPS and not is_full:
            gaps += " …"
        link = link_trials(arm="with")
        rows.append((coverage.skill, Cell(references, link=link), Cell(sections, link=link), gaps))

    columns = (
        Column("skill"),
        Column("references", right=True),
        Column("sections", right=True),
        Column("never loaded"),
    )
    return Table("Coverage", columns, rows)


def _faults_table(summary: Summary, is_full: bool) -> Table:
    rows = []
    for number, fault in enumerate(summary.faults, 1):
        times = Cell(str(fault.times), link=link_trials(status="error", fault=number))
        if is_full:
            rows.append((times, ", ".join(fault.cases[:MAX_FAULT_CASES]), fault.message))
        else:
            rows.append((times, str(len(fault.cases)), truncate(fault.message, MAX_REASON)))
    columns = (Column("trials", right=True), Column("cases", right=True), Column("what"))
    notes = ("neither passes nor misses: not in any rate above",)
    return Table("Infrastructure errors", columns, rows, notes)
