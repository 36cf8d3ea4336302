"""K01–K03: whichever statement of its database goes wrong, an eval run goes on and counts each case once."""

import json
import subprocess
import sys

import pytest

pytest.importorskip("dbos", reason="the extra `evals` is not installed")

from provider import Provider
from repository import TESTS

CALLS = 2
# A run makes some twenty statements, and each start takes seconds: all of them are tried with --every-fault.
SAMPLE = 2
LONG_SAMPLE = 12


@pytest.mark.sampled
@pytest.mark.parametrize("kind", ["kill", "fail"])
def test_any_statement_can_go_wrong(kind: str, long: bool, request: pytest.FixtureRequest) -> None:
    which = f"sample:{LONG_SAMPLE if long else SAMPLE}"
    if request.config.getoption("--every-fault"):
        which = "all"
    with Provider(CALLS) as provider:
        completed = subprocess.run(
            [sys.executable, "-m", "faults.eval_store", provider.url, kind, which],
            cwd=TESTS,
            capture_output=True,
            text=True,
            check=False,
        )
        answered = dict(provider.answered)
    assert completed.stdout, completed.stderr
    report = json.loads(completed.stdout)
    assert report["failures"] == []
    assert report["operations"] > 10
    for place in report["places"]:
        paid = [count for (prompt, _), count in answered.items() if prompt.startswith(f"{place}:")]
        assert len(paid) == CALLS * 2
        # One trial runs at a time, so at most the response that was on its way at the fault is paid for again.
        assert sum(paid) <= len(paid) + 1
