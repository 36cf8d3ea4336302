"""Run programs that aren't trusted: commands of an agent, scripts of skills, and parsers of foreign files.

`find_sandbox` tells how far this machine can confine a program: bubblewrap where it is installed, Landlock with a
system call filter elsewhere on Linux, sandbox-exec on macOS. `run_program` runs a program in it. `Worker` and
`call_worker` run a program of ours that parses what others wrote, and `worker` is its side of the pipes.
"""

from typing import TYPE_CHECKING

from skillshelf.lazy import export_lazily

# On demand: a worker imports this package, too, and needs none of it.
if TYPE_CHECKING:
    from skillshelf.sandbox._clean_path import CleanPath
    from skillshelf.sandbox._git import GitGuard
    from skillshelf.sandbox._program import Limit, Program, ProgramLimits, ProgramResult, SandboxError
    from skillshelf.sandbox._run import TakeOutput, run_program
    from skillshelf.sandbox._sandbox import Level, Sandbox, find_sandbox, switch_off
    from skillshelf.sandbox._worker import Worker, WorkerError, WorkerLimits, call_worker

__all__ = [
    "CleanPath",
    "GitGuard",
    "Level",
    "Limit",
    "Program",
    "ProgramLimits",
    "ProgramResult",
    "Sandbox",
    "SandboxError",
    "TakeOutput",
    "Worker",
    "WorkerError",
    "WorkerLimits",
    "call_worker",
    "find_sandbox",
    "run_program",
    "switch_off",
]

__getattr__ = export_lazily(
    __name__,
    {
        "_clean_path": ["CleanPath"],
        "_git": ["GitGuard"],
        "_program": ["ProgramResult", "Limit", "ProgramLimits", "Program", "SandboxError"],
        "_run": ["TakeOutput", "run_program"],
        "_sandbox": ["Level", "Sandbox", "find_sandbox", "switch_off"],
        "_worker": ["Worker", "WorkerError", "WorkerLimits", "call_worker"],
    },
)
