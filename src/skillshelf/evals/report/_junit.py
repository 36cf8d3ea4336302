"""JUnit XML: one testcase for each case and each gate, in the form that both Ant's schema and Jenkins' xunit accept.

There is a failure in it if the exit code of the run is 1, and never otherwise. A miss that does not fail the run is
`skipped` with a message, as pytest writes expected failures: CI tools show such a case, and stay green.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple
from xml.sax.saxutils import escape, quoteattr

from skillshelf.evals.report._format import STOPPED, format_errors, skill_label
from skillshelf.evals.report._gates import GateResult, Judgement, judge_run
from skillshelf.evals.report._summary import CaseSummary, Group, Summary
from skillshelf.evals.report._tables import format_case_rate
from skillshelf.text import clean, clean_line

_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")


def render_junit(summary: Summary, judgement: Judgement | None = None) -> str:
    """Return a summary as JUnit XML, judged as the run was: by default, without a gate.

    It uses only what the strictest schema has: one result for a testcase, and no attributes of one tool's own.
    """
    judgement = judgement or judge_run(summary)
    groups = [group for group in summary.skills if group.cases]
    suites = [_make_suite(group, judgement.failed_cases) for group in groups]
    gates = [_make_gate_case(result) for result in judgement.results if result.is_chosen]
    if gates:
        suites.append(_Suite("gates", gates))
    body = "".join(_render_suite(index, suite, summary) for index, suite in enumerate(suites))
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n{body}</testsuites>\n'


class _TestCase(NamedTuple):
    """A testcase, and what it adds to the counts of its suite."""

    name: str
    classname: str
    seconds: float
    account: str
    """A line for the output of the suite."""
    tag: Literal["", "failure", "error", "skipped"] = ""
    kind: str = ""
    reasons: Sequence[str] = ()


class _Suite(NamedTuple):
    name: str
    cases: Sequence[_TestCase]

    def count(self, tag: str) -> int:
        return sum(case.tag == tag for case in self.cases)


def _make_suite(group: Group, failed: Collection[str]) -> _Suite:
    return _Suite(skill_label(group.name), [_make_case(case, case.info.id in failed) for case in group.cases])


def _make_case(case: CaseSummary, is_failed: bool) -> _TestCase:
    """Return the testcase of a case. `is_failed` says whether its misses fail the run."""
    arm = case.main
    test_case = _TestCase(case.info.name, skill_label(case.info.skill), arm.spent.seconds, _account_for(case))
    misses = [f"{STOPPED}: {stop.reason} ({stop.times}×)" for stop in arm.stops]
    misses += [f"{failure.check}: {failure.reason} ({failure.times}×)" for failure in arm.failures]
    place = [f"at {case.info.location}"] if case.info.location else []
    if arm.counts.missed and is_failed:
        return test_case._replace(tag="failure", kind="missed", reasons=[*(misses or ["missed"]), *place])
    if arm.counts.errors:
        return test_case._replace(tag="error", kind="infrastructure", reasons=[*dict.fromkeys(arm.errors), *place])
    if arm.counts.missed:
        first, *others = misses or ["missed"]
        return test_case._replace(
            tag="skipped", reasons=[f"missed, which does not fail the run: {first}", *others, *place]
        )
    if not arm.counts.trials:
        return test_case._replace(tag="skipped")
    return test_case


def _make_gate_case(result: GateResult) -> _TestCase:
    test_case = _TestCase(result.gate, "gates", 0.0, result.line)
    if result.passed is None:
        return test_case._replace(tag="error", kind="infrastructure", reasons=[result.text])
    if not result.passed:
        return test_case._replace(tag="failure", kind="gate", reasons=[result.text])
    return test_case


def _render_suite(index: int, suite: _Suite, summary: Summary) -> str:
    timestamp = _TIMESTAMP.match(summary.run.started)
    attributes = {
        "name": suite.name,
        "package": "skillshelf.evals",
        "id": str(index),
        "timestamp": timestamp[0] if timestamp else "1970-01-01T00:00:00",
        "hostname": "localhost",
        "tests": str(len(suite.cases)),
        "failures": str(suite.count("failure")),
        "errors": str(suite.count("error")),
        "skipped": str(suite.count("skipped")),
        "time": f"{sum(case.seconds for case in suite.cases):.3f}",
    }
    properties = {"model": summary.run.model, "run": summary.run.id, "repeats": str(summary.run.repeats)}
    accounts = "\n".join(case.account for case in suite.cases)
    lines = [
        f"<testsuite{_render_attributes(attributes)}>",
        "<properties>",
        *(f"<property{_render_attributes({'name': key, 'value': value})}/>" for key, value in properties.items()),
        "</properties>",
        *(_render_case(case) for case in suite.cases),
        f"<system-out>{_render_text(accounts)}</system-out>",
        "<system-err></system-err>",
        "</testsuite>\n",
    ]
    return "\n".join(lines)


def _render_case(case: _TestCase) -> str:
    attributes = _render_attributes({"name": case.name, "classname": case.classname, "time": f"{case.seconds:.3f}"})
    if not case.tag:
        return f"<testcase{attributes}/>"
    if not case.reasons:
        return f"<testcase{attributes}><{case.tag}/></testcase>"
    details = {"message": case.reasons[0]}
    if case.kind:
        details["type"] = case.kind
    text = _render_text("\n".join([case.account, *case.reasons]))
    return f"<testcase{attributes}><{case.tag}{_render_attributes(details)}>{text}</{case.tag}></testcase>"


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
