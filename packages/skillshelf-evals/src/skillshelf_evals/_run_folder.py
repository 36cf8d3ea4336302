"""The folder of a run: its request, its state, and the databases from which an interrupted run is resumed."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from skillshelf.errors import EvalError
from skillshelf.files import LockTimeout, hold_lock, make_private_folders, replace_file, state_home

MAX_RUNS_KEPT = 100
"""How many runs without `--report` are kept."""
STORE_FILE = "run.sqlite"
_STATE = "state"
_MARKS = "evals-begun"
"""The folder in the user's state folder that names the unfinished runs with `--report`."""
_RUN_ID = re.compile(r"\d{8}-\d{6}-[0-9a-f]{6}")
_MANIFEST = "begun.json"
_LOCK = "lock"


@dataclass(slots=True)
class RunFolder:
    """A run in its folder."""

    path: str
    id: str
    started: str
    """ISO 8601, UTC."""
    fingerprint: str
    """A digest of everything that decides what the trials are."""
    request: Mapping[str, Any] = field(default_factory=dict)
    """The options of the command line."""
    finished: bool = False
    failed: bool = False
    """True if the run ended with trials that could not be completed, which another start tries again."""

    @property
    def is_over(self) -> bool:
        """True if there is nothing left to resume."""
        return self.finished and not self.failed

    @property
    def state(self) -> str:
        """The folder of the run's databases."""
        return make_state_folder(self.path)

    def save(self) -> None:
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "path"}
        data = json.dumps(plain, indent=1).encode()
        replace_file(os.path.join(self.state, _MANIFEST), data, 0o666)

    def mark(self) -> None:
        """Note in the user's state folder that the run is this user's, unless it lies there itself."""
        mark = _find_mark(self.id)
        if mark is None or _is_in_state_home(self.path):
            return
        with suppress(OSError):  # then the run cannot be resumed
            make_private_folders(os.path.dirname(mark))
            replace_file(mark, os.fsencode(self.path))

    def finish(self, failed: bool) -> None:
        """Mark the run as finished. Its databases are removed unless there are trials to try again."""
        self.finished = True
        self.failed = failed
        self.save()
        if not failed:
            _remove_files(self.state, STORE_FILE)
            mark = _find_mark(self.id)
            if mark is not None:
                with suppress(OSError):
                    os.unlink(mark)


def make_state_folder(folder: str) -> str:
    """Make and return the folder for the databases of the run in `folder`. Raises EvalError if a link is there.

    A cloned repository can bring a link in its place, and files of a run are removed.
    """
    path = os.path.join(folder, _STATE)
    if os.path.islink(path):
        raise EvalError(f"{path} is a link, and a run keeps its files there", "Remove it, or give another --report DIR")
    os.makedirs(path, mode=0o700, exist_ok=True)
    return path


@contextmanager
def lock_run(folder: str) -> Iterator[None]:
    """Hold the run in a folder for this process, until it ends. Raises EvalError if another process has it."""
    with ExitStack() as stack:
        try:
            stack.enter_context(hold_lock(os.path.join(make_state_folder(folder), _LOCK)))
        except LockTimeout:
            raise EvalError(f"{folder}: another process is working on this run", "Wait until it ends") from None
        yield


def make_run_folder(report: str) -> str:
    """Make and return the folder of a new run: the one for its report, or one in the user's state folder.

    The newest `MAX_RUNS_KEPT` runs in the state folder are kept.
    """
    if report:
        os.makedirs(report, exist_ok=True)
        return os.path.abspath(report)
    runs = find_runs_folder()
    folder = os.path.join(runs, _make_id())
    make_private_folders(folder)
    _remove_old_runs(runs)
    return folder


def _remove_old_runs(runs: str) -> None:
    names = [name for name in os.listdir(runs) if os.path.isdir(os.path.join(runs, name))]
    names.sort(reverse=True)  # their names begin with the time
    for name in names[MAX_RUNS_KEPT:]:
        run = read_run_folder(os.path.join(runs, name))
        if run and run.finished:
            shutil.rmtree(run.path, ignore_errors=True)


def find_run_folder(run: str) -> str:
    """Return the folder of a run, given by its name or its path. Raises EvalError."""
    for folder in (run, os.path.join(find_runs_folder(), run)):
        if os.path.isfile(os.path.join(folder, _STATE, _MANIFEST)):
            return os.path.abspath(folder)
    raise EvalError(
        f"There is no run {run!r}", f"Runs are in {find_runs_folder()}, or in the folder that --report named"
    )


def read_run_folder(folder: str) -> RunFolder | None:
    """Return the run in a folder; None if there is none that can be read, or one that another user has to resume."""
    try:
        with open(os.path.join(folder, _STATE, _MANIFEST), encoding="utf-8") as file:
            run = RunFolder(folder, **json.load(file))
        return run if run.is_over or _is_own(run) else None
    except (OSError, ValueError, TypeError):
        return None


def _find_mark(run_id: str) -> str | None:
    """Return the file that says that a run was begun by this user, or None if the user has no home folder."""
    home = state_home()
    return None if home is None else os.path.join(home, _MARKS, run_id)


def _is_own(run: RunFolder) -> bool:
    """Return True if this user began the run.

    A repository can bring the folder of an interrupted run, whose stored answers and outcomes would then count.
    """
    if _is_in_state_home(run.path):
        return True
    mark = _find_mark(run.id) if _RUN_ID.fullmatch(run.id) else None
    return mark is not None and os.path.isfile(mark)


def _is_in_state_home(folder: str) -> bool:
    return state_home() is not None and os.path.dirname(folder) == find_runs_folder()


def begin_run(folder: str, fingerprint: str, request: Mapping[str, Any]) -> RunFolder:
    """Return the unfinished run in this folder if its fingerprint is the same; otherwise begin a new one."""
    found = read_run_folder(folder)
    if found and not found.finished and found.fingerprint == fingerprint:
        return found

    _remove_files(make_state_folder(folder), STORE_FILE, _MANIFEST)
    # A run in the state folder is named like its folder, so that --resume finds it by either.
    run = RunFolder(
        path=folder,
        id=os.path.basename(folder) if _is_in_state_home(folder) else _make_id(),
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        fingerprint=fingerprint,
        request=request,
    )
    run.mark()
    run.save()
    return run


def _make_id() -> str:
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"


def _remove_files(state: str, *beginnings: str) -> None:
    """Remove the files of a run whose names begin like this: a database has others beside it."""
    for name in os.listdir(state):
        if name.startswith(beginnings):
            os.unlink(os.path.join(state, name))


def find_runs_folder() -> str:
    """Return the folder of the runs without `--report`. Raises EvalError if the user has no home folder."""
    home = state_home()
    if home is None:
        raise EvalError("This user has no home folder to keep runs in", "Give --report DIR")
    return os.path.join(home, "evals")
