"""Checks of what files of the workspace hold: JSON under a schema, and tables."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillshelf.errors import EvalError
from skillshelf_evals import FileState, Trace, Verdict, check, find_cases
from skillshelf_evals.check import Check

SCHEMA = {
    "type": "object",
    "required": ["name"],
    "properties": {"name": {"type": "string"}, "age": {"$ref": "#/$defs/age"}},
    "$defs": {"age": {"type": "integer", "minimum": 0}},
}
TABLE = "name,age\nAda,36\nAlan,41.5\n"


def look(one: Check, data: bytes | str, name: str = "out") -> Verdict:
    content = data.encode() if isinstance(data, str) else data
    trace = Trace(files={name: FileState(None, True, len(content), content)})
    return asyncio.run(check.look(one, trace))


@pytest.fixture
def table_check(tmp_path: Path) -> Callable[..., Check]:
    """Makes a check of the file `out` against a table, which is stored in a file."""

    def make(text: str = TABLE, name: str = "table.csv", **options: Any) -> Check:
        (tmp_path / name).write_text(text)
        return check.table_equals("out", str(tmp_path / name), **options)

    return make


# -- JSON -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "passed", "reason"),
    [
        ('{"name": "Ada", "age": 36}', True, "out is valid"),
        ('{"age": 36}', False, "out, at $: 'name' is a required property"),
        ('{"name": "Ada", "age": -1}', False, "out, at $.age: -1 is less than the minimum of 0"),
        ("{", False, "out is not JSON: "),
        (b"\xff\xfe\x00", False, "out is not JSON: "),
        ("[" * 100_000, False, "out is not JSON: "),
    ],
)
def test_json_is_valid_under_a_schema_or_the_place_of_the_fault_is_named(
    data: bytes | str, passed: bool, reason: str
) -> None:
    found = look(check.json_schema("out", SCHEMA), data)
    assert (found.passed, found.error) == (passed, "")
    assert found.reason.startswith(reason)


def test_a_value_that_is_not_a_schema_is_refused_before_a_run() -> None:
    with pytest.raises(EvalError, match="this is not a JSON schema"):
        check.json_schema("out", {"type": "strin"})


@pytest.mark.parametrize("reference", ["http://localhost:9/schema.json", "file:///etc/passwd", "#/$defs/none"])
def test_a_schema_is_never_fetched(reference: str) -> None:
    found = look(check.json_schema("out", {"$ref": reference}), "1")
    assert "which is not in it" in found.error


@pytest.mark.parametrize(("text", "passed"), [("aaa", True), ("aab", False)])
def test_a_pattern_of_a_schema_is_searched_like_others(text: str, passed: bool) -> None:
    found = look(check.json_schema("out", {"pattern": "^a+$"}), json.dumps(text))
    assert (found.passed, found.error) == (passed, "")


def test_a_pattern_that_takes_forever_is_stopped() -> None:
    schema = {"patternProperties": {"^(a+)+$": {"type": "string"}}}
    found = look(check.json_schema("out", schema), json.dumps({"a" * 60 + "!": 1}))
    assert "took more than 3 s: write patterns without nested repetitions" in found.error


# -- tables -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (TABLE, ""),
        ("\ufeffname,age\r\nAda,36.0\r\n\r\nAlan,4.15e1\r\n", ""),
        ('age;name\n36;"Ada"\n41.50; Alan\n', ""),
        ("name,age\nAda,36\nAlan,41\n", "row 2 has '41' in 'age' instead of '41.5'"),
        ("name,age\nAlan,41.5\nAda,36\n", "row 1 has 'Alan' in 'name' instead of 'Ada'"),
        ("name,age\nAda,36\n", "1 row instead of 2"),
        ("name\nAda\nAlan\n", "there is no column age"),
        ("name,age,town\nAda,36,x\nAlan,41.5,x\n", "there is another column town"),
        ("name,age\nAda\n", "row 1 has 1 cell for 2 columns"),
        ("name,name\n", "two columns have the same name"),
        ("name,age\nAda,1e999999999\nAlan,nan\n", "row 1 has '1e999999999' in 'age'"),
        ("\n\n", "it is empty"),
        (b"\xff\x00", "is not a table"),
    ],
)
def test_a_table_has_the_expected_rows_or_the_first_difference_is_named(
    table_check: Callable[..., Check], data: bytes | str, reason: str
) -> None:
    found = look(table_check(), data)
    assert (found.passed, found.error) == (not reason, "")
    assert reason in found.reason


def test_numbers_may_differ_by_the_tolerance(table_check: Callable[..., Check]) -> None:
    data = "name,age\nAda,36.01\nAlan,41.49\n"
    assert look(table_check(tolerance=0.01), data).passed
    assert not look(table_check(tolerance=0.009), data).passed


def test_rows_may_come_in_any_order(table_check: Callable[..., Check]) -> None:
    assert look(table_check(any_order=True), "name,age\nAlan,41.5\nAda,36\n").passed
    found = look(table_check(any_order=True), "name,age\nAlan,41.5\nAda,35\n")
    assert found.reason == "out: a row has '35' in 'age' instead of '36'"


def test_a_tsv_file_is_separated_by_tabs(tmp_path: Path) -> None:
    (tmp_path / "table.tsv").write_text("a,b,c\td\n1\t2\n")
    one = check.table_equals("out.tsv", str(tmp_path / "table.tsv"))
    assert look(one, "d\ta,b,c\n2\t1\n", "out.tsv").passed


ROWS = st.lists(st.tuples(st.integers(), st.sampled_from("abc")), max_size=6)


@given(rows=ROWS, data=st.data())
def test_a_table_equals_itself_in_any_order(tmp_path_factory: Any, rows: list[tuple[int, str]], data: Any) -> None:
    def write(lines: list[tuple[int, str]]) -> str:
        return "n,t\n" + "".join(f"{number},{text}\n" for number, text in lines)

    stored = tmp_path_factory.mktemp("tables") / "table.csv"
    stored.write_text(write(rows))
    shuffled = data.draw(st.permutations(rows))
    assert look(check.table_equals("out", str(stored), any_order=True), write(shuffled)).passed
    assert look(check.table_equals("out", str(stored)), write(shuffled)).passed == (shuffled == rows)


# -- in case files ----------------------------------------------------------------------------------------------------


def test_they_are_written_in_yaml_with_tables_beside_the_file(write: Callable[..., Path]) -> None:
    text = f"""
cases:
  - name: a
    prompt: x
    checks:
      - file_exists: out
      - file_matches: {{path: out, regex: "name"}}
      - command_run: fill.py
      - json_schema: {{path: out, schema: {json.dumps(SCHEMA)}}}
      - table_equals: {{path: out, expected: table.csv, tolerance: 0.5, any_order: true}}
"""
    skill = write("pdf", evals__cases_yaml=text)
    (skill.parent / "evals/table.csv").write_text(TABLE)
    [case], notes = find_cases([skill.parent])
    assert notes == ()
    [*_, table] = case.checks
    assert look(table, "name,age\nAlan,41\nAda,36\n").passed
    write("pdf", evals__cases_yaml=text.replace("table.csv", "../../table.csv"))
    assert "leads out of" in find_cases([skill.parent])[1][0].message


def test_a_table_that_is_not_beside_the_case_is_found_before_a_run(write: Callable[..., Path]) -> None:
    """A run would pay for answers that nothing can be compared with."""
    case = "- name: a\n  prompt: x\n  checks: [{table_equals: {path: out, expected: tabel.csv}}]\n"
    skill = write("pdf", evals__cases_yaml=case)
    [fault] = find_cases([skill.parent])[1]
    assert fault.severity == "error"
    assert "there is no file 'tabel.csv'" in fault.message
