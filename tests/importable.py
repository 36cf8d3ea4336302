"""Put a folder or a zip of fixture packages (their names end in `_skills`) on sys.path for a while."""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PACKAGES = Path(__file__).parent / "packages"


@contextmanager
def importable(place: Path) -> Iterator[None]:
    sys.path.insert(0, str(place))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(str(place))
        packages = {name.partition(".")[0] for name in sys.modules} - {"skillshelf_skills"}
        ours = tuple(name for name in packages if name.endswith("_skills"))
        for name in [name for name in sys.modules if name.partition(".")[0] in ours]:
            del sys.modules[name]
