"""Fail, shorten or kill at the n-th file operation that a piece of skillshelf makes, and look at what is left.

A scenario works with files between `with armed:` and the end of that block. The driver first counts the file
operations in the block. Then it runs the scenario once for each of them in a child process, with a fault at that
operation, and checks what the scenario promises: in the child if it survives, and on the disk in any case.

    python -m faults.harness new kill 17          one run, to look into a failure
    python -m faults.harness new kill all         every operation
    python -m faults.harness new every sample:12  each kind of fault at twelve operations

Operations are counted in `skillshelf.files.system`, which everything that touches the disk goes through, except SQLite:
of a database, each statement and commit is an operation.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import sqlite3
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

from skillshelf.files import system

Kind = Literal["fail", "short", "kill", "torn"]
"""What happens at the chosen operation:

- fail: it raises an input/output error and does nothing.
- short: a read returns half of what it could; a write puts half of the data on the disk and finds it full.
- kill: the process is killed before it.
- torn: a write puts half of the data on the disk, and the process is killed.
"""
KINDS: tuple[Kind, ...] = get_args(Kind)

_TRANSFERS = frozenset({"read", "pread", "write"})
_WRITES = frozenset({"write"})
# A close that fails has still closed the file, and no caller can do anything about it.
_UNFAILING = frozenset({"close"})


class Armed:
    """Counts the file operations made inside its `with` block, and strikes at one of them."""

    def __init__(self, kind: Kind, at: int = 0) -> None:
        """`at`: the operation to strike at, counted from 1. 0 counts and never strikes."""
        self.kind = kind
        self.at = at
        self.count = 0
        self._real: dict[str, Callable[..., Any]] = {}

    def __enter__(self) -> None:
        for name, function in vars(system).items():
            if callable(function) and self._counts(name):
                self._real[name] = function
        for name, function in self._real.items():
            setattr(system, name, self._wrap(name, function))
        if self._counts("statement"):
            sqlite3.connect = connect_counted(self._wrap("statement", lambda: None))  # type: ignore[assignment]

    def __exit__(self, *_: object) -> None:
        sqlite3.connect = _connect
        for name, function in self._real.items():
            setattr(system, name, function)
        self._real.clear()

    def _counts(self, name: str) -> bool:
        if self.kind == "fail":
            return name not in _UNFAILING
        if self.kind == "short":
            return name in _TRANSFERS
        if self.kind == "torn":
            return name in _WRITES
        return True

    def _wrap(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            self.count += 1
            if self.count != self.at:
                return function(*args, **kwargs)
            return self._strike(name, function, *args, **kwargs)

        return call

    def _strike(self, name: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if self.kind == "fail" and name == "statement":
            raise sqlite3.OperationalError("disk I/O error (injected)")
        if self.kind == "fail":
            raise OSError(errno.EIO, "Input/output error (injected)")
        if name == "write":
            descriptor, data = args
            function(descriptor, data[: len(data) // 2])
        elif self.kind == "short":
            descriptor, size, *rest = args
            return function(descriptor, max(1, size // 2), *rest)
        if self.kind == "short":
            raise OSError(errno.ENOSPC, "No space left on device (injected)")
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("unreachable")


_connect = sqlite3.connect


def connect_counted(pass_one: Callable[[], None]) -> Callable[..., sqlite3.Connection]:
    """Return a `sqlite3.connect` whose connections to a file call this before each statement and commit."""

    class Cursor(sqlite3.Cursor):
        def execute(self, *args: Any) -> Any:
            pass_one()
            return super().execute(*args)

        def executemany(self, *args: Any) -> Any:
            pass_one()
            return super().executemany(*args)

    def connect(path: str, *args: Any, factory: Any = sqlite3.Connection, **kwargs: Any) -> Any:
        if path == ":memory:":
            return _connect(path, *args, factory=factory, **kwargs)

        class Connection(factory):  # type: ignore[misc]
            def cursor(self, factory: Any = Cursor) -> Any:
                return super().cursor(factory)

            def execute(self, *args: Any) -> Any:
                return self.cursor().execute(*args)

            def executemany(self, *args: Any) -> Any:
                return self.cursor().executemany(*args)

            def commit(self) -> None:
                pass_one()
                super().commit()

        return _connect(path, *args, factory=Connection, **kwargs)

    return connect


class Scenario(Protocol):
    """An operation of skillshelf on files, and what must hold whatever happens to it."""

    def prepare(self, place: Path) -> None:
        """Create the files that it starts from."""

    def act(self, place: Path, armed: Armed) -> object:
        """Do it, with faults inside `with armed:`. Errors that it promises are caught and are part of the result."""

    def verify(self, place: Path, result: Any) -> None:
        """Check the result in the process that survived, after the fault has passed."""

    def verify_disk(self, place: Path) -> None:
        """Check what a new process finds."""


@dataclass(slots=True)
class Report:
    """The results of one scenario with one kind of fault."""

    operations: int = 0
    tried: list[int] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


def strike_everywhere(scenario: Scenario, kind: Kind, choose: Callable[[int], list[int]]) -> Report:
    """Run a scenario with a fault at each chosen operation. `choose` gets the number of operations."""
    report = Report()
    with _place(scenario) as place:
        outcome = _run_in_child(scenario, place, Armed(kind))
        report.operations = int(outcome["count"])
        if outcome["failure"]:
            report.failures.append(f"without a fault: {outcome['failure']}")
            return report
        scenario.verify_disk(place)

    for at in choose(report.operations):
        report.tried.append(at)
        with _place(scenario) as place:
            outcome = _run_in_child(scenario, place, Armed(kind, at))
            if outcome["failure"]:
                report.failures.append(f"{kind} at {at}: {outcome['failure']}")
                continue
            try:
                scenario.verify_disk(place)
            except Exception:
                report.failures.append(f"{kind} at {at}, on the disk: {traceback.format_exc()}")
    return report


def spread(most: int) -> Callable[[int], list[int]]:
    """Return a chooser of at most so many operations, the first and the last among them, evenly spread."""

    def choose(operations: int) -> list[int]:
        if operations <= most:
            return list(range(1, operations + 1))
        step = (operations - 1) / (most - 1)
        return sorted({1 + round(step * number) for number in range(most)})

    return choose


@contextmanager
def _place(scenario: Scenario) -> Iterator[Path]:
    """Prepare a folder for one run, with a home of its own."""
    folder = Path(tempfile.mkdtemp(prefix="skillshelf-faults-"))
    try:
        for variable in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
            os.environ[variable] = str(folder / "home" / variable.lower())
        scenario.prepare(folder)
        yield folder
    finally:
        shutil.rmtree(folder)


def _run_in_child(scenario: Scenario, place: Path, armed: Armed) -> dict[str, Any]:
    """Act and verify in a child. Return its count and failure; a child killed by the fault has neither."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        failure = ""
        try:
            result = scenario.act(place, armed)
            scenario.verify(place, result)
        except BaseException:
            failure = traceback.format_exc()
        os.write(writing, json.dumps({"count": armed.count, "failure": failure[-4000:]}).encode())
        os._exit(0)

    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    status = os.waitpid(child, 0)[1]
    if answer:
        outcome: dict[str, Any] = json.loads(answer)
        return outcome
    expected = armed.at and armed.kind in ("kill", "torn") and os.WTERMSIG(status) == signal.SIGKILL
    return {"count": 0, "failure": "" if expected else f"the process ended with status {status}"}


def main(arguments: list[str]) -> int:
    from faults.scenarios import SCENARIOS

    name, kind, which = arguments
    chosen: tuple[Kind, ...] = tuple(each for each in KINDS if kind in (each, "every"))
    if not chosen or name not in SCENARIOS:
        raise SystemExit(f"Give a scenario ({', '.join(SCENARIOS)}) and a kind ({', '.join(KINDS)}, every).")

    reports = {each: strike_everywhere(SCENARIOS[name], each, parse_choice(which)) for each in chosen}
    json.dump({each: asdict(report) for each, report in reports.items()}, sys.stdout, indent=1)
    return 1 if any(report.failures for report in reports.values()) else 0


def parse_choice(which: str) -> Callable[[int], list[int]]:
    """Read which operations to strike at: a number, `all`, or `sample:` and how many."""
    if which == "all":
        return lambda operations: list(range(1, operations + 1))
    if which.startswith("sample:"):
        return spread(int(which.removeprefix("sample:")))
    return lambda _: [int(which)]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
