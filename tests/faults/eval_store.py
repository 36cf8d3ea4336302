"""Fail or kill an eval run at the n-th statement of its database, start it again, and look at what it reports.

The fault sits in `sqlite3` itself. Each start is a child forked from this process, because importing the engine takes
seconds.

    python -m faults.eval_store http://127.0.0.1:8000/v1 kill sample:4
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
import tempfile
import threading
import traceback
from pathlib import Path
from typing import Any, Literal

from faults.harness import connect_counted, parse_choice

Kind = Literal["fail", "kill"]
CASES = 2

_SKILL = "---\nname: pdf\ndescription: Fills forms.\n---\n\nFill them.\n"
_CASE = """\
- name: case {number}
  skill: pdf
  skills: [..]
  prompt: "{place}: prompt {number}"
  checks:
    - response_contains: well
"""


class _Statements:
    """Counts the statements that this process sends to SQLite, and strikes at one of them."""

    def __init__(self, kind: Kind, at: int) -> None:
        self.kind = kind
        self.at = at
        self.count = 0
        self._lock = threading.Lock()

    def pass_one(self) -> None:
        """Let a statement pass, or strike."""
        with self._lock:
            self.count += 1
            is_chosen = self.count == self.at
        if not is_chosen:
            return
        if self.kind == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        raise sqlite3.OperationalError("disk I/O error (injected)")

    def install(self) -> None:
        sqlite3.connect = connect_counted(self.pass_one)  # type: ignore[assignment]
        sqlite3.dbapi2.connect = sqlite3.connect


def strike_everywhere(url: str, kind: Kind, which: str) -> dict[str, Any]:
    """Run the suite with a fault at each chosen statement, then again without one."""
    failures: list[str] = []
    places: list[str] = []
    with tempfile.TemporaryDirectory(prefix="skillshelf-faults-") as folder:
        first = _start(_lay_out(Path(folder) / "without"), url, kind, 0)
        if first["code"] != 0:
            return {"operations": 0, "tried": [], "places": [], "failures": [f"without a fault: {first}"]}
        chosen = parse_choice(which)(first["count"])
        for at in chosen:
            place = _lay_out(Path(folder) / f"{kind}-{at}")
            places.append(place.name)
            struck = _start(place, url, kind, at)
            again = struck if struck["code"] == 0 else _start(place, url, kind, 0)
            failure = _find_fault(place, struck, again)
            if failure:
                failures.append(f"{kind} at {at}: {failure}")
    return {"operations": first["count"], "tried": chosen, "places": places, "failures": failures}


def _find_fault(place: Path, struck: dict[str, Any], again: dict[str, Any]) -> str:
    """Return what is wrong after the second start, or nothing."""
    if struck["code"] not in (-signal.SIGKILL, 0, 2, 3):
        return f"the first start ended with {struck}"
    if again["code"] != 0:
        return f"the second start ended with {again}, after {struck}"
    outcomes = json.loads((place / "report/run.json").read_text())["outcomes"]
    reported = sorted((outcome["case"], outcome["status"]) for outcome in outcomes)
    expected = [(f"pdf/case {number}", "passed") for number in range(CASES)]
    return "" if reported == expected else f"the report has {reported}"


def _lay_out(place: Path) -> Path:
    evals = place / "pdf/evals"
    evals.mkdir(parents=True)
    (place / "pdf/SKILL.md").write_text(_SKILL)
    cases = [_CASE.format(place=place.name, number=number) for number in range(CASES)]
    (evals / "cases.yaml").write_text("".join(cases))
    return place


def _start(place: Path, url: str, kind: Kind, at: int) -> dict[str, Any]:
    """Run `skillshelf eval` in a child. Return its exit code, the statements it made and what it printed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        statements = _Statements(kind, at)
        code = 70
        try:
            code = _run_eval(place, url, statements)
        except BaseException:
            traceback.print_exc()
        os.write(writing, json.dumps(statements.count).encode())
        os._exit(code)

    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        count = pipe.read()
    status = os.waitpid(child, 0)[1]
    printed = (place / "output").read_text()[-2000:]
    return {"code": os.waitstatus_to_exitcode(status), "count": int(count or 0), "printed": printed}


def _run_eval(place: Path, url: str, statements: _Statements) -> int:
    from skillshelf.cli import main

    output = os.open(place / "output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.chdir(place)
    statements.install()
    if (place / "report/state/begun.json").exists():
        arguments = ["--resume", "report"]
    else:
        arguments = ["pdf", "--base-url", url, "--model", "tiny", "--report", "report", "--parallel", "1"]
    return main(["eval", *arguments, "--trust-workspace", "--allow-unconfined"])


if __name__ == "__main__":
    import skillshelf_evals.engine._queue  # noqa: F401  # imported once, before the children are forked

    json.dump(strike_everywhere(sys.argv[1], sys.argv[2], sys.argv[3]), sys.stdout, indent=1)  # type: ignore[arg-type]
