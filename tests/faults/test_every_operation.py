"""K01–K03: whichever file operation fails, is cut short or is the last one, what skillshelf promises still holds."""

import json
import subprocess
import sys

import pytest

from faults.scenarios import SCENARIOS
from repository import TESTS

SAMPLE = 12


@pytest.mark.sampled
@pytest.mark.parametrize("name", SCENARIOS)
def test_any_file_operation_can_go_wrong(name: str, long: bool) -> None:
    which = "all" if long else f"sample:{SAMPLE}"
    completed = subprocess.run(
        [sys.executable, "-m", "faults.harness", name, "every", which],
        cwd=TESTS,
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.stdout, completed.stderr
    reports = json.loads(completed.stdout)
    assert [failure for report in reports.values() for failure in report["failures"]] == []
    for kind, report in reports.items():
        assert len(report["tried"]) == (report["operations"] if which == "all" else min(SAMPLE, report["operations"]))
        assert report["operations"] > 10 or kind in ("short", "torn")
