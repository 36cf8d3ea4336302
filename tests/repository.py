"""Where things are in the repository."""

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

REPO = Path(__file__).parents[1]
TESTS = REPO / "tests"
SKILLS = TESTS / "skills"
PACKAGES = {path.name: path for path in sorted(REPO.glob("packages/*/src/*")) if path.is_dir()}
"""The folder of each package that we publish, by the name it is imported with."""


@functools.cache
def modules() -> dict[str, Path]:
    """Return the file of each module of all packages, by its dotted name. A package goes by its own name."""
    return dict(sorted(_find_modules()))


def _find_modules() -> Iterator[tuple[str, Path]]:
    for package in PACKAGES.values():
        for path in package.rglob("*.py"):
            dotted = ".".join(path.relative_to(package.parent).with_suffix("").parts)
            yield dotted.removesuffix(".__init__"), path


@functools.cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))
