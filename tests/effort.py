"""How much a test tries: a sample in `make test`, everything with `pytest --long`."""

import os

VARIABLE = "SKILLSHELF_LONG_TESTS"
"""Set by conftest.py with `--long`, for modules that are imported and processes that are started later."""


def examples(count: int) -> int:
    """Return how many of `count` examples Hypothesis should make now."""
    return count if os.environ.get(VARIABLE) else count // 4
