"""Evals here are the tests' own. Those in `eval_threats` are not: a user did not write them."""

from collections.abc import Callable

import pytest

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(run: Run, request: pytest.FixtureRequest) -> Run:
    """Run `skillshelf` with these words in tmp_path. Runs of cases get --trust-workspace, except in threats."""
    if request.path.parent.name == "eval_threats":
        return run

    def run_trusting(*words: str) -> tuple[int, str, str]:
        if words[:1] == ("eval",) and not {"list", "compare", "view", "judge-check", "worker"} & set(words):
            words = (*words, "--trust-workspace")
        return run(*words)

    return run_trusting
