"""`skillshelf eval view`: the runs in a folder, in the terminal and as JSON."""

import json
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from run_kit import case, run_of
from skillshelf_evals import Run
from skillshelf_evals.report import read_history, summarize, write_run

Command = Callable[..., tuple[int, str, str]]


def _write(folder: Path, name: str, day: int, words: str, model: str = "m", cases: int = 10) -> Run:
    """Write a run in which each case has these trials."""
    run = run_of({case(f"c{number}"): (words,) for number in range(cases)}, run_id=name)
    run = replace(run, started=f"2026-11-{day:02}T10:00:00+00:00", model=model)
    write_run(summarize(run), folder / name)
    return run


def test_runs_are_listed_with_the_newest_first(run: Command, tmp_path: Path) -> None:
    _write(tmp_path / "reports", "first", 1, "pm")
    _write(tmp_path / "reports" / "deeper", "third", 3, "pp")
    _write(tmp_path / "reports", "second", 2, "pm")
    code, out, _ = run("eval", "view", "reports")
    assert code == 0
    assert [line.split()[2] for line in out.splitlines()[2:5]] == ["third", "second", "first"]
    assert re.search(r"2026-11-03 10:00 +third +m +10 +100% \[69%, 100%\] +\+50 pp \[.*\] better", out)
    assert re.search(r"2026-11-02 10:00 +second +m +10 +50% \[\d+%, \d+%\] +the same", out)


def test_a_run_is_compared_with_the_run_before_of_the_same_model(tmp_path: Path) -> None:
    _write(tmp_path, "a", 1, "pp", model="one")
    _write(tmp_path, "b", 2, "mm", model="two")
    _write(tmp_path, "c", 3, "mm", model="one")
    c, b, a = read_history(str(tmp_path)).records
    assert (a.before, b.before, c.before) == ("", "", "a")
    assert c.change
    assert (c.change.value, c.change.verdict) == (-1, "worse")


def test_runs_without_a_case_in_common_are_not_compared(tmp_path: Path) -> None:
    _write(tmp_path, "a", 1, "p")
    write_run(summarize(replace(run_of({case("other"): ("m",)}, run_id="b"), started="2026-11-02")), tmp_path / "b")
    assert [record.change for record in read_history(str(tmp_path)).records] == [None, None]


def test_verdicts_are_corrected_for_the_number_of_runs(tmp_path: Path) -> None:
    for day in range(1, 8):
        _write(tmp_path, f"run{day}", day, "p" if day < 7 else "m", cases=6)
    newest = read_history(str(tmp_path)).records[0]
    assert newest.change
    assert newest.change.p < 0.05 < newest.change.corrected_p
    assert newest.change.verdict == "open"


def test_files_that_are_not_runs_are_named_and_left_out(run: Command, tmp_path: Path) -> None:
    _write(tmp_path, "good", 1, "p")
    for name, text in (("cut", '{"skillshelf_evals": 1, "id"'), ("foreign", '{"results": []}'), ("newer", "")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_text(text or '{"skillshelf_evals": 99}')
    code, out, _ = run("eval", "view", ".")
    assert code == 0
    assert "3 files that cannot be read" in out
    for name, reason in (("cut", "was cut off"), ("foreign", "JSON of another kind"), ("newer", "has version 99")):
        assert re.search(rf"/{name}/run.json +.*{reason}", out)


@pytest.mark.parametrize("amount", [10**400, -1, 1e308])
@pytest.mark.parametrize("place", ["input", "cost"])
def test_amounts_that_cannot_be_are_no_numbers_of_a_run(tmp_path: Path, place: str, amount: float) -> None:
    _write(tmp_path, "good", 1, "p")
    _write(tmp_path, "bad", 2, "p")
    file = tmp_path / "bad" / "run.json"
    plain = json.loads(file.read_text())
    plain["outcomes"][0]["trace"]["usage"][place] = amount
    file.write_text(json.dumps(plain))
    history = read_history(str(tmp_path))
    assert [record.run.id for record in history.records] == ["good"]
    assert len(history.unreadable) == 1


def test_a_folder_without_runs_is_an_error(run: Command, tmp_path: Path) -> None:
    code, _, err = run("eval", "view", ".")
    assert code == 2
    assert f"There is no run in {tmp_path}" in err
    code, _, err = run("eval", "view", "gone")
    assert (code, "gone cannot be read: No such file or directory" in err) == (2, True)


def test_a_linked_folder_is_not_entered(tmp_path: Path) -> None:
    _write(tmp_path / "elsewhere", "a", 1, "p")
    (tmp_path / "reports").mkdir()
    os.symlink(tmp_path / "elsewhere", tmp_path / "reports" / "link")
    assert read_history(str(tmp_path / "reports")).records == ()


def test_the_default_folder_is_that_of_runs_without_a_report(run: Command) -> None:
    _write(Path(os.environ["HOME"], ".local/state/skillshelf/evals"), "kept", 1, "p")
    code, out, _ = run("eval", "view", "--json")
    assert code == 0
    assert [found["run"] for found in json.loads(out)["runs"]] == ["kept"]


def test_the_json_has_every_number(run: Command, tmp_path: Path) -> None:
    _write(tmp_path, "a", 1, "pm")
    _write(tmp_path, "b", 2, "pp")
    _, out, _ = run("eval", "view", ".", "--json")
    found = json.loads(out)
    newest = found["runs"][0]
    assert (newest["run"], newest["before"], newest["model"]) == ("b", "a", "m")
    assert newest["statistics"]["rate"]["value"] == 1
    assert newest["statistics"]["change"]["verdict"] == "better"
    assert found["unreadable"] == []


def test_columns_that_say_nothing_are_left_out(tmp_path: Path) -> None:
    _write(tmp_path, "a", 1, "p")
    [runs] = read_history(str(tmp_path)).tables
    assert [column.title for column in runs.columns] == ["started", "run", "model", "cases", "rate [95%]", "cost"]
