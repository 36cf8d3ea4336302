"""Why a run cannot start, in words that a model can act on."""

from skillshelf.errors import SkillError


class ExecutionError(SkillError):
    """A command cannot be run here, or not like this."""


class NoSandboxError(ExecutionError):
    """This machine has no sandbox, and the user has not allowed runs without one."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(
            f"Nothing was run: there is no sandbox here ({reason}). Do not look for another way. Tell the user: they "
            f"can install bubblewrap, or allow runs without a sandbox: --with execution-debugging=unsandboxed:FOLDER."
        )


class SandboxFailedError(ExecutionError):
    """The sandbox could not be set up for this run."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(
            f"Nothing was run: the sandbox could not be set up ({reason}). Try once more, then tell the user. The "
            f"reference 'error_codes.md' lists what can be in the way."
        )


class UnknownRunError(ExecutionError):
    """There is no such run, or its output is no longer kept."""

    def __init__(self, run_id: str, kept: list[str]) -> None:
        self.run_id = run_id
        runs = f"Output is kept of: {', '.join(kept)}." if kept else "Nothing has been run yet."
        super().__init__(f"There is no output of a run {run_id!r}. {runs}")
