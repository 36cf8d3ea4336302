"""Commands and Python in a sandboxed working folder, with their failures explained."""

from typing import TYPE_CHECKING, Self

from skillshelf.errors import SettingsError, SkillError
from skillshelf.skills import BaseSkill, tool
from skillshelf.text import truncate_middle
from skillshelf_skills.execution_debugging._results import Limits, OutputPiece, RunResult, SandboxDescription

if TYPE_CHECKING:
    from skillshelf.sandbox import Sandbox
    from skillshelf_skills.execution_debugging._workbench import FinishedRun, Workbench

__all__ = ["ExecutionDebuggingSkill", "Limits"]

_NETWORK = "network:"
_UNSANDBOXED = "unsandboxed:"
_SHOWN_CHARACTERS = 8_000
"""Output in one result."""


class ExecutionDebuggingSkill(BaseSkill):
    name = "execution-debugging"
    description = (
        "Run shell commands and Python in a sandboxed folder: output, exit code, time, memory, and why a run failed. "
        "Use when code has to be run, tested or debugged."
    )
    category = "raw"
    references = ("references/debugging.md", "references/error_codes.md", "references/sandbox_runner.py")
    instructions = """
    Call `execute_command` for a shell command and `execute_python` for a Python program. Each runs in the same working
    folder, without input and without the network unless the user allowed it, and ends with everything it started. If
    `failure` is set, read its explanation and load the reference that it names before you try again. Change one thing
    at a time, and say what you ran and what it printed.

    - An exception, a hang, a wrong result: load the reference `debugging.md`.
    - An exit code, a signal, something refused: load the reference `error_codes.md`.
    - Limits of memory, processes or time, or a failure that comes and goes: load the reference `sandbox_runner.py`.
    - `is_whole` is false: call `read_output`. To know what runs can reach, call `describe_sandbox`.
    """

    def __init__(
        self,
        folder: str | None = None,
        *,
        network: bool = False,
        allow_unsandboxed: bool = False,
        limits: Limits | None = None,
        sandbox: "Sandbox | None" = None,
    ) -> None:
        """Run nothing yet. Raises SettingsError for a folder that cannot be worked in.

        `folder`: where runs start and may write; a temporary folder, removed at the end, if it is None. With
        `allow_unsandboxed`, they run even if this machine has no sandbox. `sandbox` is found by itself if it is None.
        """
        self._folder = None if folder is None else _check_folder(folder)
        self._limits = limits or Limits()
        self._network = network
        self._allow_unsandboxed = allow_unsandboxed
        self._sandbox = sandbox
        # Copies of the skill with other policies share the workbench, and with it their runs.
        self._shared: dict[str, Workbench] = {}

    @classmethod
    def from_setting(cls, setting: str) -> Self:
        """Return the skill for `FOLDER`, after `network:` and `unsandboxed:` if it may. Every run asks."""
        words = {_NETWORK: False, _UNSANDBOXED: False}
        rest = setting
        while rest.startswith(tuple(words)):
            word, _, rest = rest.partition(":")
            words[f"{word}:"] = True
        skill = cls(rest or None, network=words[_NETWORK], allow_unsandboxed=words[_UNSANDBOXED])
        return skill.with_policy(
            {
                "execute_command": "ask",
                "execute_python": "ask",
                "read_output": "safe",
                "describe_sandbox": "safe",
            }
        )

    @tool
    async def execute_command(self, command: str, seconds: float = 60.0) -> RunResult:
        """Run a shell command in the sandboxed working folder, and return its output, how it ended and why it failed.

        Args:
            command: For /bin/sh. It gets no input.
            seconds: The time after which it is ended.
        """
        allowed = self._limit_seconds(seconds)
        run = await self._workbench.run_command(command, allowed)
        return self._describe(run, allowed)

    @tool
    async def execute_python(self, code: str, arguments: list[str] | None = None, seconds: float = 60.0) -> RunResult:
        """Run a Python program in the sandboxed working folder. Modules in the folder can be imported.

        Args:
            code: The whole program. It prints what you want to see.
            arguments: For sys.argv.
            seconds: The time after which it is ended.
        """
        allowed = self._limit_seconds(seconds)
        run = await self._workbench.run_python(code, arguments or [], allowed)
        return self._describe(run, allowed)

    @tool
    def read_output(self, run_id: str, offset: int = 0) -> OutputPiece:
        """Read a piece of a run's output. The last 16 runs are kept.

        Args:
            run_id: As the run returned it.
            offset: Where to start, in characters; negative to count from the end.
        """
        output = self._workbench.get_run(run_id).result.stdout
        start = max(0, len(output) + offset) if offset < 0 else offset
        end = start + _SHOWN_CHARACTERS
        return OutputPiece(
            text=output[start:end],
            next_offset=end if end < len(output) else None,
            output_characters=len(output),
        )

    @tool
    def describe_sandbox(self) -> SandboxDescription:
        """Say where runs work, what they are kept from, what stays open to them, and their limits."""
        workbench = self._workbench
        sandbox = workbench.find_sandbox()
        limits = self._limits
        return SandboxDescription(
            folder=workbench.folder,
            level=sandbox.level,
            reason=sandbox.reason,
            blocked=list(sandbox.blocked),
            stays_open=list(sandbox.stays_open),
            has_network=sandbox.network,
            seconds=limits.seconds,
            memory_mb=limits.memory_mb,
            processes=limits.processes,
            output_bytes=limits.output_bytes,
            file_mb=limits.file_mb,
        )

    @property
    def _workbench(self) -> "Workbench":
        """The workbench, made at the first use: its imports take 60 ms."""
        if "workbench" not in self._shared:
            from skillshelf_skills.execution_debugging._workbench import Workbench

            workbench = Workbench(
                self._folder,
                self._limits,
                network=self._network,
                allow_unsandboxed=self._allow_unsandboxed,
                sandbox=self._sandbox,
            )
            # Tools may run in several threads: the first of them decides.
            self._shared.setdefault("workbench", workbench)
        return self._shared["workbench"]

    def _limit_seconds(self, seconds: float) -> float:
        """Return the time that a run gets. Raises SkillError for one that is not a time."""
        if not seconds > 0:  # also for NaN
            raise SkillError(f"Nothing was run: {seconds} is not a number of seconds. Give one above 0.")
        return min(seconds, self._limits.seconds)

    def _describe(self, run: "FinishedRun", seconds: float) -> RunResult:
        from skillshelf_skills.execution_debugging._explain import explain_failure, find_signal, name_signal

        sandbox = self._workbench.find_sandbox()
        result = run.result
        output = result.stdout
        signal = find_signal(result.exit_code)
        rest = f": read_output, offset {_SHOWN_CHARACTERS // 2}"
        return RunResult(
            run_id=run.id,
            succeeded=result.exit_code == 0,
            exit_code=result.exit_code,
            signal="" if signal is None else name_signal(signal),
            seconds=round(result.seconds, 3),
            peak_memory_mb=round(result.peak_memory_mb, 1) or None,
            output=truncate_middle(output, _SHOWN_CHARACTERS, rest),
            output_characters=len(output),
            is_whole=len(output) <= _SHOWN_CHARACTERS,
            failure=explain_failure(
                result, self._limits, seconds=seconds, has_network=sandbox.network, is_confined=bool(sandbox)
            ),
            sandbox=sandbox.level,
            has_network=sandbox.network,
            notices=list(result.notices),
        )


def _check_folder(folder: str) -> str:
    """Return the real path of the user's folder. Raises SettingsError."""
    import os

    from skillshelf.files import is_at_or_inside

    path = os.path.realpath(os.path.expanduser(folder))
    if not os.path.isdir(path):
        raise SettingsError(f"There is no folder {folder!r}. Make it first, or leave it out to get a temporary one.")
    # Runs may write everywhere in the folder.
    if is_at_or_inside(os.path.realpath(os.path.expanduser("~")), path):
        raise SettingsError(f"The folder {folder!r} holds your whole home folder. Name the folder of a project.")
    return path
