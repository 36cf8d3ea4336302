"""The launcher as a script."""

import os
import sys
from types import ModuleType


def _make_importable() -> None:
    """Make this package importable, without running the `__init__` of its parents.

    With -I -S it is not importable by itself, and its parents would import more than the standard library.
    """
    agent = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    folders = {
        "skillshelf": os.path.dirname(agent),
        "skillshelf.agent": agent,
    }
    for name, folder in folders.items():
        package = ModuleType(name)
        package.__path__ = [folder]
        sys.modules[name] = package


if __name__ == "__main__":
    _make_importable()
    from skillshelf.agent.launcher._start import main

    main()
