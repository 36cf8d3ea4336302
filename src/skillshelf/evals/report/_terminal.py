"""The summary in a terminal, and the same in plain text for a pipe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from skillshelf.evals._text import clip
from skillshelf.evals.report._sections import cut_rows, inert
from skillshelf.evals.report._tree import CaseSummary, Group, Summary
from skillshelf.evals.report._words import (
    NOTHING,
    STOPPED,
    amount,
    apart,
    chance,
    change,
    cost,
    ends,
    gain,
    name_of,
    percent,
    rate,
    seconds,
)
from skillshelf.tables import Cell, Column, Table, to_plain_lines, to_rich
from skillshelf.text import clean_line

if TYPE_CHECKING:
    from rich.console import RenderableType

_WORST = {"missed": "red", "error": "yellow"}
# As much of one reason, and as many of them, as a cell can hold; the HTML report has the rest.
_CLIP, _REASONS = 200, 3


def tables(summary: Summary) -> tuple[Table, ...]:
    """Everything the summary shows, in its order; tables without rows are left out."""
    found = [
        _skills(summary),
        cut_rows(_cases(summary)),
        _versus(summary),
        _triggers(summary),
        _confusion(summary),
        _coverage(summary),
        _faults(summary),
    ]
    return tuple(one for one in found if one.rows)


def headline(summary: Summary) -> str:
    """The run in a line."""
    arm = summary.total.arms.get("with")
    if arm is None:
        return "Nothing was tried."
    counts = arm.counts
    errors = f"; {apart(counts.errors)}" if counts.errors else ""
    several = "".join(f"; pass@{one.k} {percent(one.at)}, pass^{one.k} {percent(one.all)}" for one in arm.tries[-1:])
    return (
        f"{counts.passed} of {counts.trials} trials passed, {rate(arm.rate)}{several}{errors}; "
        f"{amount(arm.spent.tokens)} tokens, {cost(arm.spent)}"
    )


def plain(given: Sequence[Table], last: str = "") -> str:
    """Aligned columns under titles, whole and without colour: what a pipe gets, and the log of a CI."""
    lines: list[str] = []
    for table in given:
        lines += [*to_plain_lines(table), ""]
    if last:
        lines.append(clean_line(last))
    return "".join(f"{inert(line)}\n" for line in lines)


def rich(given: Sequence[Table], last: str = "", style: str = "") -> RenderableType:
    """Return the tables for a terminal. Imports rich."""
    from rich.console import Group as Lines
    from rich.text import Text

    lines: list[RenderableType] = []
    for table in given:
        lines += [to_rich(_color_rows(table)), Text("")]
    if last:
        lines.append(Text(clean_line(last), style))
    return Lines(*lines)


def _color_rows(table: Table) -> Table:
    """Color whole rows by the worst status in them."""
    rows: list[Sequence[str | Cell]] = []
    for row in table.rows:
        color = next((_WORST[cell] for cell in row if isinstance(cell, str) and cell in _WORST), "")
        rows.append([Cell(cell, color) if isinstance(cell, str) else cell for cell in row])
    return replace(table, rows=rows)


def _skills(summary: Summary) -> Table:
    titles = ("passed", "rate [95%]", "errors", "tokens", "time", "cost")
    rows = []
    for group in (*summary.skills, *([summary.total] if len(summary.skills) > 1 else [])):
        for arm, one in group.arms.items():
            rows.append(
                (
                    "all" if group is summary.total else name_of(group.name),
                    arm,
                    f"{one.counts.passed}/{one.counts.trials}",
                    rate(one.rate),
                    str(one.counts.errors or ""),
                    amount(one.spent.tokens),
                    seconds(one.spent.seconds),
                    cost(one.spent),
                )
            )
    columns = (Column("skill"), Column("arm"), *(Column(title, True) for title in titles))
    return Table("Skills", columns, tuple(rows))


def _cases(summary: Summary) -> Table:
    """Those that are not as they should be."""
    wrong = [case for case in summary.total.cases if case.main.counts.missed or case.main.counts.errors]
    wrong.sort(key=lambda case: not case.main.counts.missed)
    rows = [
        (
            "missed" if case.main.counts.missed else "error",
            f"{case.main.counts.passed}/{case.main.counts.trials}",
            case.info.id,
            _why(case),
        )
        for case in wrong
    ]
    columns = (Column("status"), Column("passed", True), Column("case"), Column("why"))
    return Table("Cases to look at", columns, tuple(rows))


def _why(case: CaseSummary) -> str:
    failed = [f"{STOPPED}: {one.reason}" for one in case.main.stops]
    failed += [f"{one.check}: {one.reason}" for one in case.main.failures]
    reasons = [clip(one, _CLIP) for one in failed or dict.fromkeys(case.main.errors)]
    more = [f"and {len(reasons) - _REASONS} more"] if len(reasons) > _REASONS else []
    return "; ".join([*reasons[:_REASONS], *more])


def _versus(summary: Summary) -> Table:
    rows, notes = [], []
    for group in (*summary.skills, *([summary.total] if len(summary.skills) > 1 else [])):
        name = "all" if group is summary.total else name_of(group.name)
        for one in group.versus:
            found = one.difference
            said = (gain(found), found.verdict, chance(found.p)) if found else (NOTHING,) * 3
            rows.append((name, one.base, str(len(one.pairs)), *said, change(one.tokens), change(one.cost, "$")))
            if one.account:
                notes.append(f"{name} against {one.base}: {one.account}")
            if found and found.verdict == "open" and one.settle:
                notes.append(f"{name} against {one.base}: {one.settle.text}")
    titles = ("skill", "against", "cases", "gain [95%]", "verdict", "p", "tokens per trial", "cost per trial")
    return Table("Gain", tuple(Column(title, title == "cases") for title in titles), tuple(rows), tuple(notes))


def _triggers(summary: Summary) -> Table:
    rows = [tuple(_scores(group)) for group in summary.skills if group.trigger]
    titles = ("skill", "precision [95%]", "recall [95%]", "F1 [95%]")
    return Table("Triggers", tuple(Column(title, title != "skill") for title in titles), tuple(rows))


def _scores(group: Group) -> Iterator[str]:
    one = group.trigger
    assert one is not None
    yield name_of(group.name)
    yield rate(one.precision)
    yield rate(one.recall)
    yield f"{percent(one.f1)} {ends(one.f1_interval)}".rstrip()


def _confusion(summary: Summary) -> Table:
    found = summary.confusion
    if found is None:
        return Table("", (), ())
    rows = [
        (
            str(row),
            str(found.totals[row]),
            *(str(found.counts.get((row, column), "")) for column in found.columns),
        )
        for row in found.rows
    ]
    columns = [Column("should be loaded"), Column("trials", True)]
    columns += [Column(column or "(none)", True) for column in found.columns]
    notes = tuple(
        f"{column} was loaded in {number} trials that were for {row}" for row, column, number in found.stolen[:5]
    )
    return Table("Who was loaded", tuple(columns), tuple(rows), notes)


def _coverage(summary: Summary) -> Table:
    rows = []
    for one in summary.coverage:
        reached = f"{one.references - len(one.unloaded)}/{one.references}"
        sections = f"{one.sections - len(one.unread)}/{one.sections}"
        rows.append((one.skill, reached, sections, ", ".join(one.gaps[:4]) + (" …" if len(one.gaps) > 4 else "")))
    columns = (Column("skill"), Column("references", True), Column("sections", True), Column("never loaded"))
    return Table("Coverage", columns, tuple(rows))


def _faults(summary: Summary) -> Table:
    rows = tuple((str(one.times), str(len(one.cases)), clip(one.message, _CLIP)) for one in summary.faults)
    notes = ("neither passes nor misses: in no rate above",)
    return Table("Infrastructure errors", (Column("trials", True), Column("cases", True), Column("what")), rows, notes)
