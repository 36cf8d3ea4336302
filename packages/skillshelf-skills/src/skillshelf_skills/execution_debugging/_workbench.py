"""The folder of the runs, their environment, and the output that is kept of them."""

import asyncio
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count

from skillshelf.errors import SkillError
from skillshelf.sandbox import (
    CleanPath,
    GitGuard,
    Program,
    ProgramLimits,
    ProgramResult,
    Sandbox,
    SandboxError,
    find_sandbox,
    run_program,
)
from skillshelf_skills.execution_debugging._results import Limits

_MAX_RUNS = 16
"""Of how many runs the output is kept."""
# With -c, the working folder is on the import path, but only once Python has started: a PYTHONPATH would run a
# sitecustomize.py of the folder, which the user has not been asked about.
_START_PROGRAM = (
    "import sys; del sys.argv[0]; __file__ = sys.argv[0]; exec(compile(open(__file__, 'rb').read(), __file__, 'exec'))"
)


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A run with its output, in `result.stdout`."""

    id: str
    result: ProgramResult


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
        for name in ("work", "home", "python", "scratch"):
            os.mkdir(os.path.join(base, name))
        return base

    @property
    def folder(self) -> str:
        """The folder that runs start in."""
        return self._attached or os.path.join(self._base, "work")

    @cached_property
    def _path(self) -> CleanPath:
        return CleanPath(self.folder)

    @cached_property
    def _git(self) -> GitGuard:
        return GitGuard(self.folder)

    def find_sandbox(self) -> Sandbox:
        """Return the sandbox of the runs. The first time, a program is started in it."""
        sandbox = find_sandbox() if self._sandbox is None else self._sandbox
        return sandbox if self._network else sandbox.without_network()

    async def run_command(self, command: str, seconds: float) -> FinishedRun:
        """Run a shell command. Raises SkillError if it cannot be started."""
        return await self._run(["/bin/sh", "-c", command], seconds)

    async def run_python(self, code: str, arguments: Sequence[str], seconds: float) -> FinishedRun:
        """Run a Python program. Raises SkillError if it cannot be started."""
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

        program = Program(
            words,
            self.folder,
            self._make_environment(),
            writable=[self.folder, os.path.join(self._base, "home")],
            readable=[os.path.join(self._base, "python")],
            scratch=os.path.join(self._base, "scratch"),
            network=self._network,
            git=self._git,
        )
        limits = ProgramLimits(
            seconds,
            self.limits.output_bytes,
            memory_mb=self.limits.memory_mb,
            processes=self.limits.processes,
            file_mb=self.limits.file_mb,
        )
        try:
            result = await run_program(program, sandbox, limits, merge=True)
        except (SandboxError, OSError) as error:
            raise SkillError(
                f"Nothing was run: the sandbox could not be set up ({error}). Try once more, then tell the user. The "
                f"reference 'error_codes.md' lists what can be in the way."
            ) from error
        except ValueError:
            raise SkillError(
                "Nothing was run: no program can be given a text with a null character or half of another one."
            ) from None
        return self._keep(result)

    def _make_environment(self) -> dict[str, str]:
        """Return the whole environment of a run. Nothing of the user's is in it but the path, which is cleaned."""
        return {
            "PATH": self._path.text,
            "LANG": "C.UTF-8",
            "HOME": os.path.join(self._base, "home"),
            "SKILLSHELF_PYTHON": sys.executable,  # for sandbox_runner.py
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONUNBUFFERED": "1",
            "PYTHONFAULTHANDLER": "1",
            "TERM": "dumb",
            "NO_COLOR": "1",
        }

    def _keep(self, result: ProgramResult) -> FinishedRun:
        run = FinishedRun(f"run-{next(self._numbers)}", result)
        self._runs[run.id] = run
        while len(self._runs) > _MAX_RUNS:
            del self._runs[next(iter(self._runs))]
        return run
