"""`skillshelf eval` as a process that can be killed, on a suite whose model is a provider on loopback."""

import json
import os
import signal
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import prepared
from provider import Provider

_SUITE = '''
import asyncio, pathlib
from skillshelf_evals import Case, Message, check

HERE = pathlib.Path(__file__).parent

async def held(trace):
    """Pass, but wait while a test looks at a run whose trials are over."""
    if (HERE / "hold").exists():
        (HERE / "held").touch()
        await asyncio.sleep(600)
    return True

CASES = [
    Case(f"case {{number}}", (Message(f"prompt {{number}}"),), (check.response_contains("well"), check.custom(held)),
         skill="pdf", skills=(str(HERE.parent),))
    for number in range({cases})
]
'''


def suite(folder: Path, cases: int) -> Path:
    """Write a skill with this many cases for the model of the run."""
    evals = folder / "pdf" / "evals"
    evals.mkdir(parents=True)
    (folder / "pdf" / "SKILL.md").write_text("---\nname: pdf\ndescription: Fills forms.\n---\n\nFill them.\n")
    (evals / "cases.py").write_text(_SUITE.format(cases=cases))
    return evals


class Child:
    """A process that runs `skillshelf eval`."""

    def __init__(self, *words: str, cwd: Path, **environment: str) -> None:
        trusting = () if words[:1] == ("worker",) else ("--trust-workspace",)
        self.output = cwd / f"output-{time.monotonic_ns()}"
        with open(os.devnull, "rb") as nothing, self.output.open("wb") as file:
            streams = (nothing.fileno(), file.fileno(), file.fileno())
            self._process = prepared.start(
                ["eval", *trusting, *words], cwd=cwd, env={**os.environ, **environment}, streams=streams
            )
        self.pid = self._process.pid

    def kill(self) -> None:
        """Kill it, and return when it is gone."""
        self._process.end_by(signal.SIGKILL)

    def interrupt(self) -> None:
        """Interrupt it, and return when it has ended."""
        self._process.end_by(signal.SIGINT)

    def poll(self) -> int | None:
        """Return the exit code, or None while it runs."""
        return self._process.poll()

    def end(self, seconds: float = 60) -> int:
        """Wait for the end, and return the exit code."""
        code = self._process.wait(seconds)
        assert code is not None, f"it did not end:\n{self.said()}"
        return code

    def said(self) -> str:
        return self.output.read_text()


def wait_until(holds: Callable[[], Any], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def count_trials(report: Path) -> dict[str, int]:
    """Return how often each trial is in the results, by its id and status."""
    found: dict[str, int] = {}
    for one in json.loads((report / "run.json").read_text())["outcomes"]:
        name = f"{one['case']}#{one['arm']}#{one['repeat']} {one['status']}"
        found[name] = found.get(name, 0) + 1
    return found


def count_responses(report: Path) -> int:
    """Return how many model responses a run has stored."""
    with closing(sqlite3.connect(f"file:{report}/state/run.sqlite?mode=ro", uri=True)) as database:
        return int(database.execute("SELECT count(*) FROM responses").fetchone()[0])


def expect_each_call_once(cases: int, calls: int) -> dict[tuple[str, int], int]:
    """Return what a provider should have answered: every call of every trial once."""
    return {(f"prompt {case}", call): 1 for case in range(cases) for call in range(1, calls + 1)}


def model_options(provider: Provider) -> list[str]:
    return ["--base-url", provider.url, "--model", "tiny"]
