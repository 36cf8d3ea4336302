"""Programs in tests/typed pass type checkers as they stand. mypy reads them with the package, in `make test`."""

import ast
import subprocess
import sys

import skillshelf
from repository import REPO


def test_pyright_accepts_the_programs_in_strict_mode() -> None:
    """basedpyright is pyright with its Node runtime in a wheel, so that nothing is downloaded when it runs."""
    command = [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable]
    checked = subprocess.run(command, cwd=REPO, capture_output=True, text=True, check=False, timeout=300)
    assert (checked.returncode, checked.stdout) == (0, "0 errors, 0 warnings, 0 notes\n")


def test_the_programs_use_every_public_name() -> None:
    """A name without a use here could change its type unnoticed."""
    program = ast.parse((REPO / "tests" / "typed" / "public_api.py").read_text(encoding="utf-8"))
    [imported] = [node for node in program.body if isinstance(node, ast.ImportFrom) and node.module == "skillshelf"]
    used = {node.id for node in ast.walk(program) if isinstance(node, ast.Name)}
    assert [alias.name for alias in imported.names] == skillshelf.__all__
    assert set(skillshelf.__all__) <= used
