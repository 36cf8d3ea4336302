"""A workspace with a hostile neighbour, the base of the threat tests."""

import atexit
import json
import os
import subprocess
import sys
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from skillshelf import Diagnostic, DirectorySource, Shelf, SkillError, Turn

CANARY = "CANARY-7f3a9c"
"""Is in the path and in the bytes of everything that is outside the workspace, and may come out nowhere."""

PLAIN = "---\nname: {name}\ndescription: {description}\n---\n\n{body}"
GOOD = "good"
"""The neighbour that must not suffer."""

MEGABYTES = 200
"""The memory that one hostile file may cost. Its CPU time is limited too: the aim is two seconds."""


class Workspace:
    """A folder of skills beside a folder that the skills must not reach."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "workspace"
        self.outside = folder / f"outside-{CANARY}"
        self.secret = self.outside / "secret.md"
        self.root.mkdir(parents=True)
        write_skill(self.outside / "stolen", CANARY, CANARY, {"references/guide.md": CANARY})
        self.secret.write_text(CANARY)
        self.skill(GOOD, files={"references/guide.md": "Good guide."})

    def skill(
        self, key: str, description: str = "Does it.", body: str = "Do it.\n", files: Mapping[str, str] | None = None
    ) -> Path:
        """Write an ordinary skill, and return its folder."""
        return write_skill(self.root / key, description, body, files or {})

    def raw(self, key: str, content: str | bytes) -> Path:
        """Write a SKILL.md with exactly this content, and return its folder."""
        folder = self.root / key
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "SKILL.md").write_bytes(content if isinstance(content, bytes) else content.encode())
        return folder

    def shelf(self, **options: Any) -> Shelf:
        return Shelf([DirectorySource(self.root, "project", **{"cache": False, **options})])

    def faults(self, shelf: Shelf) -> list[tuple[str, str]]:
        """Return code and path below the root of every diagnostic. Each must name its file, reason and remedy."""
        for note in shelf.catalog.diagnostics:
            assert_complete(note)
        return [(note.code, os.path.relpath(note.path, self.root)) for note in shelf.catalog.diagnostics]


def write_skill(folder: Path, description: str, body: str, files: Mapping[str, str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_text(PLAIN.format(name=folder.name, description=description, body=body))
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def assert_complete(note: Diagnostic) -> None:
    assert note.path, note
    assert note.message, note
    assert note.fix, note
    assert len(note.message) + len(note.fix) < 1000, note


def collect_output(shelf: Shelf) -> str:
    """Return everything this shelf can show a caller, a model or an author, as one text."""
    parts = [f"{note} ({note.fix})" for note in shelf.catalog.diagnostics]
    parts += [shelf.listing(disclosure).text for disclosure in ("auto", "catalog", "full")]
    turn = Turn(shelf)
    for name, skill in shelf.catalog.items():
        parts += [repr(skill)] + [str(load(turn, name, reference)) for reference in ("", *skill.references)]
    return "\n".join(parts)


def load(turn: Turn, name: str, reference: str = "") -> str | SkillError:
    """Return the loaded text, or the error that the load raises."""
    try:
        return turn.load(name, reference).text
    except SkillError as error:
        return error


def assert_neighbour(shelf: Shelf) -> None:
    """Check that the good skill is intact and has no diagnostics."""
    turn = Turn(shelf)
    assert turn.load(GOOD).text == "Do it.\n"
    assert turn.load(GOOD, "guide.md").text == "Good guide."
    assert not [note for note in shelf.catalog.diagnostics if f"/{GOOD}/" in note.path]


def assert_standard(workspace: Workspace, shelf: Shelf, faults: Collection[tuple[str, str]]) -> None:
    """Check for a hostile file: exactly these faults, an intact neighbour, nothing from outside."""
    assert sorted(workspace.faults(shelf)) == sorted(faults)
    assert_neighbour(shelf)
    assert CANARY not in collect_output(shelf)


def read_in_process(root: Path, *references: str) -> dict[str, Any]:
    """Scan, list and load `root` in a process with a CPU limit, and check the memory it used."""
    reader = _reader()
    assert reader.stdin
    assert reader.stdout
    reader.stdin.write(json.dumps([str(root), *references]).encode() + b"\n")
    reader.stdin.flush()
    outcome: dict[str, Any] = json.loads(reader.stdout.readline())
    assert "error" not in outcome, outcome["error"]
    assert outcome.pop("megabytes") <= MEGABYTES
    return outcome


@cache
def _reader() -> subprocess.Popen[bytes]:
    """Start the process that those with a limit are forked from. It ends with this one."""
    script = Path(__file__).with_name("read_folder.py")
    reader = subprocess.Popen([sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    atexit.register(reader.communicate)
    return reader
