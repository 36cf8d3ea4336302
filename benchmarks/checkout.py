"""Where a checkout has its code, so that one can be compared with another."""

import os
from pathlib import Path


def import_path(checkout: Path) -> str:
    """Return what PYTHONPATH needs for the packages of a checkout. Versions before them had one package in src/."""
    folders = sorted(checkout.resolve().glob("packages/*/src")) or [checkout.resolve() / "src"]
    return os.pathsep.join(map(str, folders))
