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
        for name in [name for name in sys.modules if name.partition(".")[0].endswith("_skills")]:
            del sys.modules[name]
