"""K01–K03: whichever statement of its databases goes wrong, an eval run goes on and counts each case once."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("dbos", reason="the extra `evals` is not installed")

TESTS = Path(__file__).parents[1]
sys.path.insert(0, str(TESTS / "evals"))

from provider import Provider  # noqa: E402

CALLS = 2


@pytest.mark.parametrize(("kind", "sample"), [("kill", 5), ("fail", 5)])
def test_any_statement_can_go_wrong(kind: str, sample: int, request: pytest.FixtureRequest) -> None:
    which = "all" if request.config.getoption("--every-fault") else f"sample:{sample}"
    with Provider(CALLS) as provider:
        done = subprocess.run(
            [sys.executable, "-m", "faults.eval_store", provider.url, kind, which],
            cwd=TESTS,
            capture_output=True,
            text=True,
            check=False,
        )
        answered = dict(provider.answered)
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    assert report["failures"] == []
    assert report["operations"] > 50
    for place in report["places"]:
        paid = [count for (prompt, _), count in answered.items() if prompt.startswith(f"{place}:")]
        assert len(paid) == CALLS * 2
        # One trial runs at a time, so at most the response that was on its way at the fault is paid for again.
        assert sum(paid) <= len(paid) + 1
