"""Evals here are the tests' own. tests/threats/test_eval_trust.py has those that a user did not write."""

from collections.abc import Callable

import pytest

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(run: Run) -> Run:
    """Runs `skillshelf` with these words in tmp_path, `eval` with the user's word that the workspace can be trusted."""

    def run_trusting(*words: str) -> tuple[int, str, str]:
        trusting = ("--trust-workspace",) if words[:1] == ("eval",) else ()
        return run(*words, *trusting)

    return run_trusting
