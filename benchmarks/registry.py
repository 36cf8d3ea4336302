"""Measure what pinned skills cost: `verify`, `sync` with nothing to do, and the check when skills are loaded."""

import hashlib
import os
import tempfile
import time
from pathlib import Path

from benchmarks.clock import best, cpu
from benchmarks.collection import SETTLE_SECONDS, write
from benchmarks.report import Row
from skillshelf import DirectorySource, Shelf
from skillshelf.registry import (
    Installation,
    LockedSource,
    Pin,
    compare,
    count_same,
    describe_new,
    find_offered,
    install,
    is_in_sync,
    open_source,
    parse_source,
    project_installation,
    read_content,
    read_lock,
    read_lock_bytes,
)

SKILLS = 200


def measure(rounds: int) -> list[Row]:
    """Rows for 200 skills that were installed and compared before, as on every day but the first."""
    with tempfile.TemporaryDirectory(prefix="skillshelf-bench-") as folder:
        temp = Path(folder)
        state, os.environ["XDG_STATE_HOME"] = os.environ.get("XDG_STATE_HOME"), str(temp / "state")
        try:
            return _measure(temp, rounds)
        finally:
            del os.environ["XDG_STATE_HOME"]
            if state is not None:
                os.environ["XDG_STATE_HOME"] = state


def _measure(temp: Path, rounds: int) -> list[Row]:
    write(SKILLS, temp / "source")
    (temp / "work").mkdir()
    here = project_installation(str(temp / "work"))
    _install(here, temp / "source")
    time.sleep(SETTLE_SECONDS)
    compare(here, read_lock(here.lock_path))

    hashing, verifying, syncing, loading, plain = best(
        rounds,
        lambda: cpu(lambda: _hash_files(here.folder)),
        lambda: cpu(lambda: count_same(here)),
        lambda: cpu(lambda: is_in_sync(here, read_lock_bytes(here.lock_path))),
        lambda: cpu(lambda: Shelf([LockedSource(here.place, cache=False)])),
        lambda: cpu(lambda: Shelf([DirectorySource(here.place, cache=False)])),
    )
    return [
        Row(f"verify, {SKILLS} skills", verifying, against="hashing the files", other=hashing, most_ratio=1.3),
        Row(f"sync with nothing to do, {SKILLS} skills", syncing, most=0.05),
        Row(
            f"the check when {SKILLS} skills are loaded",
            loading - plain,
            against="hashing the files",
            other=hashing,
            most_ratio=1.3,
        ),
    ]


def _install(installation: Installation, source: Path) -> None:
    origin = parse_source(str(source), "", installation.place, anywhere=True)
    with open_source(origin, Pin(), installation.place, anywhere=True) as package:
        new = [
            describe_new(origin, skill.path, package.pin, read_content(package, skill.name, skill.path))
            for skill in find_offered(package, origin)
        ]
    install(installation, new)


def _hash_files(folder: str) -> None:
    for place, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(place, name), "rb") as file:
                hashlib.sha256(file.read()).hexdigest()
