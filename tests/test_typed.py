"""Programs in tests/typed pass type checkers as they stand. mypy reads them with the package, in `make test`."""

import subprocess
import sys
from pathlib import Path

REPO = Path(__file__).parents[1]


def test_pyright_accepts_the_programs_in_strict_mode() -> None:
    """basedpyright is pyright with its Node runtime in a wheel, so that nothing is downloaded when it runs."""
    command = [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable]
    checked = subprocess.run(command, cwd=REPO, capture_output=True, text=True, check=False, timeout=300)
    assert (checked.returncode, checked.stdout) == (0, "0 errors, 0 warnings, 0 notes\n")
