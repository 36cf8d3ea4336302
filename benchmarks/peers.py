"""Other libraries that discover skills: each in a process of the environment it is installed in."""

import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

from benchmarks.clock import best
from benchmarks.report import Row, amount
from benchmarks.worker import Worker, WorkerError


@dataclass(frozen=True, slots=True)
class Peer:
    package: str
    most_ratio: float
    reads: str
    """What it makes of a skill's folder."""


PEERS = (
    Peer("langchain-skills-adapters", 0.1, "YAML by PyYAML, the whole text, the other files' names"),
    Peer("skills-ref", 0.1, "YAML by strictyaml, the whole text read, no other files"),
    Peer("openai-agents", 1, "name and description by splitting lines, the whole text read, no other files"),
)
_VERSION = "version "


def install(folder: Path) -> str:
    """A new environment below the folder with the peers that can be installed. Gives its interpreter."""
    venv.create(folder, with_pip=True)
    python = str(folder / "bin" / "python")
    for peer in PEERS:
        print(f"installing {peer.package} …", file=sys.stderr, flush=True)
        command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", peer.package]
        subprocess.run(command, check=False, capture_output=True)
    return python


def measure(folder: str, count: int, rounds: int, python: str = sys.executable) -> list[Row]:
    """Cold scans, ours and a peer's in turn. A peer that is not there has a row that says so."""
    return [_against(peer, folder, count, rounds, python) for peer in PEERS]


def table(rows: list[Row]) -> tuple[list[str], list[list[str]]]:
    """What each library makes of a skill, and what that takes."""
    headings = [
        "library",
        "what it reads of a skill",
        "takes",
        "skillshelf, in turn with it",
        "skillshelf is faster by",
    ]
    cells = []
    for peer, row in zip(PEERS, rows, strict=True):
        if row.ours is None or row.other is None:
            cells.append([peer.package, peer.reads, row.against, "", ""])
        else:
            name = f"{peer.package} {row.against.removeprefix(_VERSION)}"
            taken = [amount(row.other, "s"), amount(row.ours, "s"), f"{row.other / row.ours:.1f}x"]
            cells.append([name, peer.reads, *taken])
    return headings, cells


def _against(peer: Peer, folder: str, count: int, rounds: int, python: str) -> Row:
    what = f"cold scan against {peer.package}"
    version = _version(peer.package, python)
    if not version:
        return Row(what, None, against="not installed", most_ratio=peer.most_ratio)
    try:
        with Worker("cold", folder, count) as ours, Worker(peer.package, folder, count, python) as theirs:
            mine, other = best(rounds, ours, theirs)
    except WorkerError as error:
        return Row(what, None, against=str(error), most_ratio=peer.most_ratio)
    return Row(what, mine, against=_VERSION + version, other=other, most_ratio=peer.most_ratio)


def _version(package: str, python: str) -> str:
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=False).stdout.strip()
