"""JUnit XML: a testcase for each case, as Ant's schema and Jenkins' xunit both take it."""

from __future__ import annotations

import re
from xml.sax.saxutils import escape, quoteattr

from skillshelf.evals.report._tree import CaseSummary, Group, Summary
from skillshelf.evals.report._words import STOPPED, apart, name_of, rate
from skillshelf.text import clean, clean_line

_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")


def junit(summary: Summary) -> str:
    """Only what is in the strictest schema: one outcome for a testcase, and no attributes of one tool's own."""
    suites = [group for group in summary.skills if group.cases]
    body = "".join(_suite(at, group, summary) for at, group in enumerate(suites))
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n{body}</testsuites>\n'


def _suite(at: int, group: Group, summary: Summary) -> str:
    main = [case.main.counts for case in group.cases]
    stamp = _TIMESTAMP.match(summary.run.started)
    took = sum(case.main.spent.seconds for case in group.cases)
    attributes = {
        "name": name_of(group.name),
        "package": "skillshelf.evals",
        "id": str(at),
        "timestamp": stamp[0] if stamp else "1970-01-01T00:00:00",
        "hostname": "localhost",
        "tests": str(len(group.cases)),
        "failures": str(sum(counts.missed > 0 for counts in main)),
        "errors": str(sum(not counts.missed and counts.errors > 0 for counts in main)),
        "skipped": str(sum(not counts.trials and not counts.errors for counts in main)),
        "time": f"{took:.3f}",
    }
    properties = {"model": summary.run.model, "run": summary.run.id, "repeats": str(summary.run.repeats)}
    lines = [
        f"<testsuite{_attributes(attributes)}>",
        "<properties>",
        *(f"<property{_attributes({'name': key, 'value': value})}/>" for key, value in properties.items()),
        "</properties>",
        *(_case(case) for case in group.cases),
        f"<system-out>{_text(chr(10).join(_account(case) for case in group.cases))}</system-out>",
        "<system-err></system-err>",
        "</testsuite>\n",
    ]
    return "\n".join(lines)


def _case(case: CaseSummary) -> str:
    arm, info = case.main, case.info
    attributes = {"name": info.name, "classname": name_of(info.skill), "time": f"{arm.spent.seconds:.3f}"}
    opening = f"<testcase{_attributes(attributes)}>"
    if arm.counts.missed:
        reasons = [f"{STOPPED}: {one.reason} ({one.times}×)" for one in arm.stops]
        reasons += [f"{one.check}: {one.reason} ({one.times}×)" for one in arm.failures]
        inner = _outcome("failure", "missed", reasons or ["missed"], case)
    elif arm.counts.errors:
        inner = _outcome("error", "infrastructure", list(dict.fromkeys(arm.errors)), case)
    elif not arm.counts.trials:
        inner = "<skipped/>"
    else:
        return f"<testcase{_attributes(attributes)}/>"
    return f"{opening}{inner}</testcase>"


def _outcome(tag: str, kind: str, reasons: list[str], case: CaseSummary) -> str:
    lines = [_account(case), *reasons, *([f"at {case.info.location}"] if case.info.location else [])]
    return f"<{tag}{_attributes({'message': reasons[0], 'type': kind})}>{_text(chr(10).join(lines))}</{tag}>"


def _account(case: CaseSummary) -> str:
    """The repeats in a line."""
    counts = case.main.counts
    errors = f", {apart(counts.errors)}" if counts.errors else ""
    return f"{case.info.id}: {counts.passed} of {counts.trials} passed, {rate(case.main.rate)}{errors}"


def _attributes(given: dict[str, str]) -> str:
    return "".join(f" {name}={quoteattr(clean_line(value).strip() or '-')}" for name, value in given.items())


def _text(text: str) -> str:
    """`clean` writes out every character that XML 1.0 has no place for."""
    return escape(clean(text))
