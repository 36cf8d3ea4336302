"""File tools while another process swaps files and folders for links that lead outside."""

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from skillshelf.errors import FileAccessError
from skillshelf.files import FileChanged
from skillshelf_agent.filetools import FileAccess, propose_change
from skillshelf_agent.filetools._changes import apply_change
from skillshelf_agent.filetools._finding import find_files, list_directory, search_files
from skillshelf_agent.filetools._reading import read_page
from threats import flipper
from threats.workspace import CANARY

OPERATIONS = 10_000
LONG_OPERATIONS = 100_000
FLIPPER = Path(flipper.__file__)


class Contested:
    """A workspace in which names are swapped all the time, and a folder outside that must stay as it is."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "workspace"
        self.outside = folder / "outside"
        self.outside.mkdir(parents=True)
        for name in ("file.txt", "inner.txt", "deep.txt"):
            (self.outside / name).write_text(CANARY)
        for path in ("folder/deep", "links"):
            (self.root / path).mkdir(parents=True)
        for path in ("file.txt", "folder/inner.txt", "folder/deep/deep.txt"):
            (self.root / path).write_text("inside\n")
        (self.root / "links/file").symlink_to(self.outside / "file.txt")
        (self.root / "links/folder").symlink_to(self.outside)
        (self.root / "links/deep").symlink_to("../../../outside")
        self.before = self.state()

    def state(self) -> dict[str, str]:
        return {path.name: path.read_text() for path in sorted(self.outside.iterdir())}

    @contextmanager
    def flip(self) -> Iterator[None]:
        """Swap a file, a folder and a folder in it for links."""
        pairs = ("file.txt", "links/file", "folder", "links/folder", "folder/deep", "links/deep")
        flipper = subprocess.Popen([sys.executable, FLIPPER, self.root, *pairs], stdout=subprocess.PIPE)
        try:
            assert flipper.stdout is not None
            assert flipper.stdout.readline() == b"ready\n"
            yield
        finally:
            flipper.kill()
            flipper.communicate()


@pytest.fixture
def contested(tmp_path: Path) -> Contested:
    return Contested(tmp_path)


@pytest.mark.sampled
def test_no_byte_from_outside_is_read_and_none_is_written_there(contested: Contested, long: bool) -> None:
    """Thousands of operations, most of them reads, on paths that lead inside and outside in turns."""
    operations = LONG_OPERATIONS if long else OPERATIONS
    access = FileAccess(str(contested.root))
    paths = ("file.txt", "folder/inner.txt", "folder/deep/deep.txt")
    outcomes: Counter[str] = Counter()

    def attempt(operation: Callable[[], object]) -> str:
        try:
            text = str(operation())
        except (FileAccessError, FileChanged) as error:
            outcomes["refused"] += 1
            return str(error)
        outcomes["done"] += 1
        return text

    def write(path: str, number: int) -> None:
        change = propose_change(access, "write_file", {"path": path, "content": f"inside {number}\n"})
        assert CANARY not in change.diff
        apply_change(access, change)

    with contested.flip():
        for number in range(operations // 100):
            for path in paths:
                for _ in range(30):
                    assert CANARY not in attempt(lambda path=path: read_page(access, path))  # type: ignore[misc]
                attempt(lambda path=path, number=number: write(path, number))  # type: ignore[misc]
            for folder in ("folder", "folder/deep", "."):
                assert CANARY not in attempt(lambda folder=folder: list_directory(access, folder))  # type: ignore[misc]
            for pattern in ("**/*.txt", "folder/*"):
                assert CANARY not in attempt(lambda pattern=pattern: find_files(access, pattern, "."))  # type: ignore[misc]
            for folder in ("folder", "."):
                assert CANARY not in attempt(lambda folder=folder: search_files(access, "e", folder, None, 600))  # type: ignore[misc]
            assert CANARY not in attempt(lambda: search_files(access, "e", "file.txt", None, 600))

    assert outcomes.total() >= operations
    # Without both outcomes there was no race.
    assert outcomes["done"] > 100
    assert outcomes["refused"] > 100
    assert contested.state() == contested.before
