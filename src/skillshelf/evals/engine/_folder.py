"""A run's own folder: what it was asked, how far it is, and the databases that a second start goes on from."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from skillshelf.errors import EvalError
from skillshelf.evals.engine._liveness import LOCK
from skillshelf.files import make_private_folders, replace_file, state_home

KEPT = 100
"""Runs, of those without a folder of their own."""
_STATE, _MANIFEST = "state", "begun.json"


@dataclass(slots=True)
class RunFolder:
    """Where a run is kept."""

    path: str
    id: str
    started: str
    """ISO 8601, UTC."""
    fingerprint: str
    """Of everything that decides what the trials are."""
    request: Mapping[str, Any] = field(default_factory=dict)
    """What the command line said."""
    finished: bool = False
    failed: bool = False
    """Whether it ended with trials that were none, which another start tries again."""

    @property
    def state(self) -> str:
        return state_of(self.path)

    def save(self) -> None:
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "path"}
        data = json.dumps(plain, indent=1).encode()
        replace_file(os.path.join(self.state, _MANIFEST), data, 0o666)

    def finish(self, failed: bool) -> None:
        """The report is written. The databases go, unless there is something to try again."""
        self.finished, self.failed = True, failed
        self.save()
        if not failed:
            _clear(self.state, keep=(_MANIFEST,))


def state_of(folder: str) -> str:
    """Where the databases of the run in this folder are."""
    path = os.path.join(folder, _STATE)
    os.makedirs(path, mode=0o700, exist_ok=True)
    return path


def new_folder(report: str) -> str:
    """The folder of a run that has none yet: the one for its report, or one of its own."""
    if report:
        os.makedirs(report, exist_ok=True)
        return os.path.abspath(report)
    folder = os.path.join(_runs(), _new_id())
    make_private_folders(folder)
    _tidy(_runs())
    return folder


def _tidy(home: str) -> None:
    """Runs that are over and that nobody gave a folder of their own: the last ones will do."""
    begun = sorted((name for name in os.listdir(home) if os.path.isdir(os.path.join(home, name))), reverse=True)
    for name in begun[KEPT:]:
        found = read_run(os.path.join(home, name))
        if found and found.finished:
            shutil.rmtree(found.path, ignore_errors=True)


def find_folder(run: str) -> str:
    """The folder of a run, from its name or its path. Raises EvalError."""
    for folder in (run, os.path.join(_runs(), run)):
        if os.path.isfile(os.path.join(folder, _STATE, _MANIFEST)):
            return os.path.abspath(folder)
    raise EvalError(f"There is no run {run!r}", f"Runs are in {_runs()}, or in the folder that --report named")


def read_run(folder: str) -> RunFolder | None:
    """The run in a folder; None where there is none that can be read."""
    try:
        with open(os.path.join(folder, _STATE, _MANIFEST), encoding="utf-8") as file:
            return RunFolder(folder, **json.load(file))
    except (OSError, ValueError, TypeError):
        return None


def begin(folder: str, fingerprint: str, request: Mapping[str, Any]) -> RunFolder:
    """The run in this folder if it is the same and not over, else a new one in its place."""
    found = read_run(folder)
    if found and not found.finished and found.fingerprint == fingerprint:
        return found
    _clear(state_of(folder))
    # A folder of its own has the name of its run, so that --resume finds it by either.
    name = os.path.basename(folder) if state_home() and os.path.dirname(folder) == _runs() else _new_id()
    run = RunFolder(folder, name, datetime.now(UTC).isoformat(timespec="seconds"), fingerprint, request)
    run.save()
    return run


def _new_id() -> str:
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"


def _clear(state: str, keep: tuple[str, ...] = ()) -> None:
    for name in os.listdir(state):
        if name not in (LOCK, *keep):
            os.unlink(os.path.join(state, name))


def _runs() -> str:
    home = state_home()
    if home is None:
        raise EvalError("This user has no home folder to keep runs in", "Give --report DIR")
    return os.path.join(home, "evals")
