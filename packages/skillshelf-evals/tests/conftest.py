"""Evals here are the tests' own. tests/threats/test_eval_trust.py has those that a user did not write."""

from collections.abc import Callable

import pytest

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(run: Run) -> Run:
    """Run `skillshelf` with these words in tmp_path. Runs of cases get --trust-workspace."""

    def run_trusting(*words: str) -> tuple[int, str, str]:
        if words[:1] == ("eval",) and not {"list", "compare", "view", "judge-check", "worker"} & set(words):
            words = (*words, "--trust-workspace")
        return run(*words)

    return run_trusting
