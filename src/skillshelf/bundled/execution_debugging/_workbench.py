"""The folder of the runs, their environment, and the output that is kept of them."""

import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import get_args

from skillshelf.agent import find_repositories
from skillshelf.agent.scripts import CleanPath, Program, RunLimits, run_program
from skillshelf.bundled.execution_debugging._results import Ending, Limit, Limits
from skillshelf.bundled.execution_debugging._sandbox import Sandbox, find_sandbox
from skillshelf.errors import SkillError

_MAX_RUNS = 16
"""Of how many runs the output is kept."""
_GRACE_SECONDS = 5.0
"""How long the runner has to end a run at its limit. After that it is ended from outside."""
_MAX_REPORT_BYTES = 4096
_WRITABLE_PARTS = ("home", "tmp", "reports")
_SHELL_SIGNAL_BASE = 128
# With -c, the working folder is on the import path, but only once Python has started: a PYTHONPATH would run a
# sitecustomize.py of the folder, which the user has not been asked about.
_START_PROGRAM = (
    "import sys; del sys.argv[0]; __file__ = sys.argv[0]; exec(compile(open(__file__, 'rb').read(), __file__, 'exec'))"
)
_RUNNER = os.path.join(os.path.dirname(__file__), "references", "sandbox_runner.py")


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A run with its output."""

    id: str
    ending: Ending
    output: str


class Workbench:
    """Runs programs in a folder. Its temporary folder goes with this object."""

    def __init__(
        self, folder: str | None, limits: Limits, *, network: bool, allow_unsandboxed: bool, sandbox: Sandbox | None
    ) -> None:
        """`folder` is the user's; None for a temporary one."""
        self.limits = limits
        self._attached = folder
        self._network = network
        self._allow_unsandboxed = allow_unsandboxed
        self._sandbox = sandbox
        self._numbers = count(1)
        self._runs: dict[str, FinishedRun] = {}

    @cached_property
    def _temporary(self) -> tempfile.TemporaryDirectory[str]:
        return tempfile.TemporaryDirectory(prefix="skillshelf-run-", ignore_cleanup_errors=True)

    @cached_property
    def _base(self) -> str:
        """The temporary folder, with the parts that every run needs.

        Runs may write in some of the parts and not in the folder itself. Otherwise one could put a link in the place of
        a part, and what is written there for the next run, or by it, would go elsewhere.
        """
        base = os.path.realpath(self._temporary.name)
        for name in ("work", "python", *_WRITABLE_PARTS):
            os.mkdir(os.path.join(base, name))
        return base

    @property
    def folder(self) -> str:
        """The folder that runs start in."""
        return self._attached or os.path.join(self._base, "work")

    @cached_property
    def _path(self) -> CleanPath:
        return CleanPath(self.folder)

    def find_sandbox(self) -> Sandbox:
        """Return what runs are confined by. It takes about a second the first time."""
        if self._sandbox is None:
            self._sandbox = find_sandbox(network=self._network, bubblewrap=self._path.find("bwrap") or "")
        return self._sandbox

    async def run_command(self, command: str, seconds: float) -> FinishedRun:
        """Run a shell command. Raises SkillError if it cannot be started."""
        if "\0" in command:
            raise SkillError("Nothing was run: a command cannot hold a null character.")
        return await self._run(["/bin/sh", "-c", command], seconds)

    async def run_python(self, code: str, arguments: Sequence[str], seconds: float) -> FinishedRun:
        """Run a Python program. Raises SkillError if it cannot be started."""
        if any("\0" in argument for argument in arguments):
            raise SkillError("Nothing was run: an argument cannot hold a null character.")
        python = await asyncio.to_thread(self._path.find_python)
        if python is None:
            raise SkillError("Nothing was run: there is no python3 on the PATH. Tell the user, or use another tool.")
        file = await asyncio.to_thread(self._write_program, code)
        return await self._run([python, "-c", _START_PROGRAM, file, *arguments], seconds)

    def get_run(self, run_id: str) -> FinishedRun:
        """Return a run whose output is still kept. Raises SkillError."""
        if run_id not in self._runs:
            runs = f"Output is kept of: {', '.join(self._runs)}." if self._runs else "Nothing has been run yet."
            raise SkillError(f"There is no output of a run {run_id!r}. {runs}")
        return self._runs[run_id]

    def _write_program(self, code: str) -> str:
        """Write a program into a file, so that tracebacks show its lines."""
        try:
            data = code.encode()
        except UnicodeEncodeError:
            raise SkillError("Nothing was run: the program holds characters that UTF-8 cannot encode.") from None
        descriptor, path = tempfile.mkstemp(prefix="program-", suffix=".py", dir=os.path.join(self._base, "python"))
        with open(descriptor, "wb") as file:
            file.write(data)
        return path

    async def _run(self, words: Sequence[str], seconds: float) -> FinishedRun:
        sandbox = await asyncio.to_thread(self.find_sandbox)
        if not sandbox and not self._allow_unsandboxed:
            raise SkillError(
                f"Nothing was run: there is no sandbox here ({sandbox.reason}). Do not look for another way. Tell the "
                f"user: they can install bubblewrap, or allow runs without a sandbox: "
                f"--with execution-debugging=unsandboxed:FOLDER."
            )
        if not os.path.isdir(self.folder):
            raise SkillError(f"Nothing was run: the folder {self.folder} is gone. Tell the user.")

        writable = [self.folder, *(os.path.join(self._base, name) for name in _WRITABLE_PARTS)]
        repositories: list[str] = []
        if sandbox.launcher_level == "mounted":
            repositories = await asyncio.to_thread(find_repositories, self.folder)
        with tempfile.NamedTemporaryFile(
            prefix="report-", dir=os.path.join(self._base, "reports"), delete=False
        ) as report:
            started = time.monotonic()
            limits = RunLimits(seconds + _GRACE_SECONDS, self.limits.output_bytes)
            program = Program(
                sandbox.wrap([*self._runner_words(seconds, report.name), *words], self.folder, writable),
                folder=self.folder,
                environment=self._make_environment(),
                writable=writable,
                level=sandbox.launcher_level,
                repositories=repositories,
                network=self._network,
            )
            try:
                result = await run_program(program, limits)
            except OSError as error:
                raise _sandbox_failed(str(error)) from None
            elapsed = time.monotonic() - started
            # The descriptor was opened before the run: whatever is at its path now does not count.
            ending = _read_report(report.read(_MAX_REPORT_BYTES))

        if result.limit == "output":
            ending = Ending(None, None, "output", elapsed, None)
        elif result.limit == "seconds":
            ending = Ending(None, None, "seconds", elapsed, None)
        elif ending is None:
            number = _find_signal(result.exit_code)
            if number is None:  # the launcher, bubblewrap or the runner did not start
                raise _sandbox_failed(result.output.strip()[-500:] or f"exit code {result.exit_code}")
            # A process of the run, or the system, has killed the runner, too.
            ending = Ending(None, number, None, elapsed, None)
        return self._keep(ending, result.output)

    def _runner_words(self, seconds: float, report: str) -> list[str]:
        limits = self.limits
        return [
            sys.executable,
            "-I",
            "-S",
            _RUNNER,
            f"--seconds={seconds}",
            f"--memory={limits.memory_mb}",
            f"--processes={limits.processes}",
            f"--file={limits.file_mb}",
            f"--report={report}",
            "--",
        ]

    def _make_environment(self) -> dict[str, str]:
        """Return the whole environment of a run. Nothing of the user's is in it but the path, which is cleaned."""
        return {
            "PATH": self._path.text,
            "LANG": "C.UTF-8",
            "HOME": os.path.join(self._base, "home"),
            "TMPDIR": os.path.join(self._base, "tmp"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONUNBUFFERED": "1",
            "PYTHONFAULTHANDLER": "1",
            "TERM": "dumb",
            "NO_COLOR": "1",
        }

    def _keep(self, ending: Ending, output: str) -> FinishedRun:
        run = FinishedRun(f"run-{next(self._numbers)}", ending, output)
        self._runs[run.id] = run
        while len(self._runs) > _MAX_RUNS:
            del self._runs[next(iter(self._runs))]
        return run


def _read_report(data: bytes) -> Ending | None:
    """Return what the runner reported; None if it was ended before it could."""
    try:
        report = json.loads(data)
    except ValueError:
        return None
    # The program cannot easily reach the report, but runs as the same user: take nothing that is not as it should be.
    is_valid = (
        isinstance(report, dict)
        and isinstance(report.get("exit_code"), int | None)
        and isinstance(report.get("signal"), int | None)
        and report.get("limit") in (None, *get_args(Limit))
        and isinstance(report.get("seconds"), int | float)
        and isinstance(report.get("peak_memory_mb"), int | float)
    )
    if not is_valid:
        return None
    return Ending(report["exit_code"], report["signal"], report["limit"], report["seconds"], report["peak_memory_mb"])


def _find_signal(code: int | None) -> int | None:
    """Return the signal that ended a program, by its exit code, also as bubblewrap passes it on; None if none did."""
    if code is None or 0 <= code <= _SHELL_SIGNAL_BASE:
        return None
    return -code if code < 0 else code - _SHELL_SIGNAL_BASE


def _sandbox_failed(reason: str) -> SkillError:
    return SkillError(
        f"Nothing was run: the sandbox could not be set up ({reason}). Try once more, then tell the user. The "
        f"reference 'error_codes.md' lists what can be in the way."
    )
