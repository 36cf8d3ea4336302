"""The launcher as a script."""

import os
import sys
from types import ModuleType


def _find_package() -> None:
    """Make this package importable. With -I -S it is not, and its parents would import more than a launcher needs."""
    agent = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for name, folder in (("skillshelf", os.path.dirname(agent)), ("skillshelf.agent", agent)):
        package = ModuleType(name)
        package.__path__ = [folder]
        sys.modules[name] = package


if __name__ == "__main__":
    _find_package()
    from skillshelf.agent.launcher._start import main

    main()
