"""Measure what the skills that come with skillshelf cost a shelf: attaching them, and listing them.

    python -m benchmarks.bundled

Each number is from a fresh process that has opened and listed a shelf before, so that it counts only what a skill adds:
its imports, its tools' schemas and its entry in the listing. Python finds the bytecode of every module.
"""

import json
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from benchmarks.clock import best, bytecode_environment
from benchmarks.report import HEADINGS, Row, aligned
from skillshelf_skills import ATTACHABLE, AttachableSkill

_ALL = "bundled: attach all and list them, for each skill"
_COSTLIEST = "bundled: attach the costliest alone and list it"
_AGAIN = "bundled: list attached skills again, for each skill"
ROWS = (_ALL, _COSTLIEST, _AGAIN)
_MOST = 1e-3
_PROGRAM = """
import json, sys, time
from skillshelf import BaseSkill, Shelf, tool
from skillshelf.sources.attachable import attach_skill


class Plain(BaseSkill):
    name = "plain"
    description = "Has a tool, so that the schemas' own modules are imported."
    instructions = "Call it.\\n    Or not."

    @tool
    def plain(self, text: str, number: int = 1) -> str:
        "Do nothing."


def list_with(*skills):
    start = time.process_time()
    Shelf.open(".", skills=[Plain(), *skills]).listing()
    return time.process_time() - start


list_with()
without = min(list_with() for _ in range(5))
start = time.process_time()
skills = [attach_skill(text) for text in sys.argv[1:]]
attaching = time.process_time() - start
first = list_with(*skills) - without
again = min(list_with(*skills) for _ in range(5)) - without
print(json.dumps([attaching + first, again]))
"""


def measure(rounds: int) -> list[Row]:
    """Return a row for each of `ROWS`, from as many fresh processes for each."""
    with tempfile.TemporaryDirectory(prefix="skillshelf-bundled-") as folder:
        workspace = Path(folder, "workspace")
        workspace.mkdir()
        environment = bytecode_environment(f"{folder}/bytecode")

        def run(*texts: str) -> tuple[float, float]:
            """Return the CPU seconds that attaching skills takes with a first listing, and those of another one."""
            command = [sys.executable, "-c", _PROGRAM, *texts]
            done = subprocess.run(command, cwd=workspace, env=environment, check=True, capture_output=True)
            attaching, again = json.loads(done.stdout)
            return attaching, again

        available = [skill for skill in ATTACHABLE if skill.find_obstacle() is None]
        texts = [_write_setting(skill, Path(folder)) for skill in available]
        run(*texts)  # compiles everything
        (together,) = best(rounds, lambda: run(*texts)[0])
        (again,) = best(rounds, lambda: run(*texts)[1])
        alone = {text: best(rounds, lambda text=text: run(text)[0])[0] for text in texts}  # type: ignore[misc]

    costliest = max(alone, key=alone.__getitem__)
    names = ", ".join(skill.name for skill in available)
    return [
        Row(_ALL, together / len(texts), against=f"{len(texts)} skills: {names}", most=_MOST),
        Row(_COSTLIEST, alone[costliest], against=costliest.partition("=")[0], most=_MOST),
        Row(_AGAIN, again / len(texts), most=_MOST),
    ]


def _write_setting(skill: AttachableSkill, folder: Path) -> str:
    """Return what to write after `--with`, with something to work on if the skill needs it."""
    if not skill.needs_setting:
        return skill.name
    target = folder / skill.name
    if skill.takes == "FILE":
        with closing(sqlite3.connect(target)) as database:
            database.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
    else:
        target.mkdir()
    return f"{skill.name}={target}"


if __name__ == "__main__":
    print(aligned(HEADINGS, [row.cells() for row in measure(7)]))
