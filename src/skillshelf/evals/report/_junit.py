"""JUnit XML: one testcase for each case, in the form that both Ant's schema and Jenkins' xunit accept."""

from __future__ import annotations

import re
from xml.sax.saxutils import escape, quoteattr

from skillshelf.evals.report._format import STOPPED, format_errors, skill_label
from skillshelf.evals.report._summary import CaseSummary, Group, Summary
from skillshelf.evals.report._tables import format_case_rate
from skillshelf.text import clean, clean_line

_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")


def render_junit(summary: Summary) -> str:
    """Return a summary as JUnit XML.

    It uses only what the strictest schema has: one result for a testcase, and no attributes of one tool's own.
    """
    suites = [group for group in summary.skills if group.cases]
    body = "".join(_render_suite(index, group, summary) for index, group in enumerate(suites))
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n{body}</testsuites>\n'


def _render_suite(index: int, group: Group, summary: Summary) -> str:
    counts = [case.main.counts for case in group.cases]
    timestamp = _TIMESTAMP.match(summary.run.started)
    seconds = sum(case.main.spent.seconds for case in group.cases)
    attributes = {
        "name": skill_label(group.name),
        "package": "skillshelf.evals",
        "id": str(index),
        "timestamp": timestamp[0] if timestamp else "1970-01-01T00:00:00",
        "hostname": "localhost",
        "tests": str(len(group.cases)),
        "failures": str(sum(count.missed > 0 for count in counts)),
        "errors": str(sum(not count.missed and count.errors > 0 for count in counts)),
        "skipped": str(sum(not count.trials and not count.errors for count in counts)),
        "time": f"{seconds:.3f}",
    }
    properties = {"model": summary.run.model, "run": summary.run.id, "repeats": str(summary.run.repeats)}
    accounts = "\n".join(_account_for(case) for case in group.cases)
    lines = [
        f"<testsuite{_render_attributes(attributes)}>",
        "<properties>",
        *(f"<property{_render_attributes({'name': key, 'value': value})}/>" for key, value in properties.items()),
        "</properties>",
        *(_render_case(case) for case in group.cases),
        f"<system-out>{_render_text(accounts)}</system-out>",
        "<system-err></system-err>",
        "</testsuite>\n",
    ]
    return "\n".join(lines)


def _render_case(case: CaseSummary) -> str:
    arm = case.main
    attributes = _render_attributes(
        {"name": case.info.name, "classname": skill_label(case.info.skill), "time": f"{arm.spent.seconds:.3f}"}
    )
    if arm.counts.missed:
        reasons = [f"{STOPPED}: {stop.reason} ({stop.times}×)" for stop in arm.stops]
        reasons += [f"{failure.check}: {failure.reason} ({failure.times}×)" for failure in arm.failures]
        result = _render_result("failure", "missed", reasons or ["missed"], case)
    elif arm.counts.errors:
        result = _render_result("error", "infrastructure", list(dict.fromkeys(arm.errors)), case)
    elif not arm.counts.trials:
        result = "<skipped/>"
    else:
        return f"<testcase{attributes}/>"

    return f"<testcase{attributes}>{result}</testcase>"


def _render_result(tag: str, kind: str, reasons: list[str], case: CaseSummary) -> str:
    lines = [_account_for(case), *reasons]
    if case.info.location:
        lines.append(f"at {case.info.location}")
    attributes = _render_attributes({"message": reasons[0], "type": kind})
    text = _render_text("\n".join(lines))
    return f"<{tag}{attributes}>{text}</{tag}>"


def _account_for(case: CaseSummary) -> str:
    """Return the repeats of a case in one line."""
    counts = case.main.counts
    errors = f", {format_errors(counts.errors)}" if counts.errors else ""
    return f"{case.info.label}: {counts.passed} of {counts.trials} passed, {format_case_rate(case)}{errors}"


def _render_attributes(attributes: dict[str, str]) -> str:
    return "".join(f" {name}={quoteattr(clean_line(value).strip() or '-')}" for name, value in attributes.items())


def _render_text(text: str) -> str:
    """Escape a text. `clean` writes out every character that XML 1.0 does not allow."""
    return escape(clean(text))
