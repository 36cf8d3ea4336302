"""Eval runs written by an earlier version, in tests/stored/evals: they open, are reported, listed and compared."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("dbos", reason="the extra `evals` is not installed")

Run = Callable[..., tuple[int, str, str]]
STORED = Path(__file__).parent / "stored" / "evals"
RUNS = sorted(path.parent.relative_to(STORED) for path in STORED.rglob("run.json"))


@pytest.mark.parametrize("folder", RUNS, ids=str)
def test_a_stored_run_is_reported_again(folder: Path, tmp_path: Path) -> None:
    """With all of its trials, although checks, options and statistics have changed since."""
    from skillshelf_evals.report import read_run, summarize, write_run

    plain = json.loads((STORED / folder / "run.json").read_text())
    run = read_run(STORED / folder)
    assert [(outcome.case, outcome.arm, outcome.repeat, outcome.status) for outcome in run.outcomes] == [
        (outcome["case"], outcome["arm"], outcome["repeat"], outcome["status"]) for outcome in plain["outcomes"]
    ]
    write_run(summarize(run), tmp_path)
    assert read_run(tmp_path) == run
    page = (tmp_path / "report.html").read_text()
    assert run.id in page


def test_stored_runs_are_compared(run: Run) -> None:
    code, out, _ = run("eval", "compare", str(STORED / "first"), str(STORED / "second"), "--json")
    comparison = json.loads(out)
    assert code == comparison["exit_code"] == 3, "errors left a case open"
    assert len(comparison["cases"]) == 9
    assert comparison["statistics"]["difference"]["value"] > 0


def test_stored_runs_are_listed(run: Run) -> None:
    code, out, _ = run("eval", "view", str(STORED), "--json")
    found = {Path(record["folder"]).name: record for record in json.loads(out)["runs"]}
    assert code == 0
    assert {"first", "second"} <= found.keys()
    assert found["second"]["before"] == found["first"]["run"]


@pytest.mark.parametrize("folder", ["first", "choice"])
def test_a_stored_run_that_another_user_began_is_not_resumed(run: Run, tmp_path: Path, folder: str) -> None:
    """The request that is stored beside it has options that are gone."""
    shutil.copytree(STORED / folder, tmp_path / folder)
    code, _, err = run("eval", "--resume", folder)
    assert code == 2
    assert "cannot be resumed" in err or "is finished" in err
