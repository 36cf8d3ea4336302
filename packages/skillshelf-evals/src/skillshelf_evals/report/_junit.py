"""JUnit XML: one testcase for each case and each gate, in the form that both Ant's schema and Jenkins' xunit accept.

There is a failure in it if the exit code of the run is 1, and never otherwise. A miss that does not fail the run is
`skipped` with a message, as pytest writes expected failures: CI tools show such a case, and stay green.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from skillshelf.text import clean, clean_line
from skillshelf_evals.report._format import format_errors, skill_label
from skillshelf_evals.report._gates import GateResult, Judgement
from skillshelf_evals.report._summary import CaseSummary, Summary
from skillshelf_evals.report._tables import format_case_rate

_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")


def render_junit(summary: Summary, judgement: Judgement) -> str:
    """Return a summary as JUnit XML, judged as the run was.

    It uses only what the strictest schema has: one result for a testcase, and no attributes of one tool's own.
    """
    root = Element("testsuites")
    for group in summary.skills:
        if group.cases:
            cases = [_make_case(case, case.info.id in judgement.failed_cases) for case in group.cases]
            _add_suite(root, skill_label(group.name), cases, [_account_for(case) for case in group.cases], summary)

    gates = [result for result in judgement.results if result.is_chosen]
    if gates:
        _add_suite(root, "gates", [_make_gate_case(gate) for gate in gates], [gate.line for gate in gates], summary)

    indent(root, "")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(root, encoding="unicode")}\n'


def _add_suite(root: Element, name: str, cases: Sequence[Element], accounts: Sequence[str], summary: Summary) -> None:
    """Add a suite of testcases. `accounts` has a line about each for the output of the suite."""
    run = summary.run
    timestamp = _TIMESTAMP.match(run.started)
    counts = {
        attribute: str(sum(case.find(tag) is not None for case in cases))
        for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped"))
    }
    suite = _add(
        root,
        "testsuite",
        name=name,
        package="skillshelf.evals",
        id=str(len(root)),
        timestamp=timestamp[0] if timestamp else "1970-01-01T00:00:00",
        hostname="localhost",
        tests=str(len(cases)),
        **counts,
        time=f"{sum(float(case.attrib['time']) for case in cases):.3f}",
    )
    properties = _add(suite, "properties")
    for key, value in (("model", run.model), ("run", run.id), ("repeats", str(run.repeats))):
        _add(properties, "property", name=key, value=value)
    suite.extend(cases)
    _add(suite, "system-out").text = clean("\n".join(accounts))
    _add(suite, "system-err").text = ""


def _make_case(case: CaseSummary, is_failed: bool) -> Element:
    """Return the testcase of a case. `is_failed` says whether its misses fail the run."""
    arm = case.main
    account = _account_for(case)
    element = _make_testcase(case.info.name, skill_label(case.info.skill), arm.spent.seconds)
    misses = [f"{miss.check}: {miss.reason} ({miss.times}×)" for miss in arm.misses] or ["missed"]
    place = [f"at {case.info.location}"] if case.info.location else []
    if arm.counts.missed and is_failed:
        _add_result(element, "failure", account, [*misses, *place], type="missed")
    elif arm.counts.errors:
        _add_result(element, "error", account, [*dict.fromkeys(arm.errors), *place], type="infrastructure")
    elif arm.counts.missed:
        misses[0] = f"missed, which does not fail the run: {misses[0]}"
        _add_result(element, "skipped", account, [*misses, *place])
    elif not arm.counts.trials:
        _add(element, "skipped")
    return element


def _make_gate_case(result: GateResult) -> Element:
    element = _make_testcase(result.gate, "gates", 0.0)
    if result.passed is None:
        _add_result(element, "error", result.line, [result.text], type="infrastructure")
    elif not result.passed:
        _add_result(element, "failure", result.line, [result.text], type="gate")
    return element


def _make_testcase(name: str, classname: str, seconds: float) -> Element:
    return _add(Element("testsuite"), "testcase", name=name, classname=classname, time=f"{seconds:.3f}")


def _add_result(testcase: Element, tag: str, account: str, reasons: Sequence[str], **attributes: str) -> None:
    result = _add(testcase, tag, message=reasons[0], **attributes)
    result.text = clean("\n".join([account, *reasons]))


def _add(parent: Element, tag: str, **attributes: str) -> Element:
    """Add an element. `clean` and `clean_line` write out every character that XML 1.0 does not allow."""
    return SubElement(parent, tag, {name: clean_line(value).strip() or "-" for name, value in attributes.items()})


def _account_for(case: CaseSummary) -> str:
    """Return the repeats of a case in one line."""
    counts = case.main.counts
    errors = f", {format_errors(counts.errors)}" if counts.errors else ""
    return f"{case.info.label}: {counts.passed} of {counts.trials} passed, {format_case_rate(case)}{errors}"
