"""A raw skill: it runs commands, so it can only be attached with a policy."""

import subprocess

from skillshelf import BaseSkill, tool


class RepoShellSkill(BaseSkill):
    name = "repo-shell"
    description = "Look at a Git repository and run its checks. Use when asked about its state, history or tests."
    category = "raw"
    references = ("references/commands.md",)
    instructions = """
    Call `status` first. Before `run`, load the reference `commands.md`: it lists the targets of this repository.
    Never call `clean` to make an error go away.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder

    @tool
    def status(self) -> str:
        """Return the branch and the changed files."""
        return self._run("git", "status", "--short", "--branch")

    @tool
    def run(self, target: str) -> str:
        """Run a make target and return its output.

        Args:
            target: A target listed in commands.md.
        """
        return self._run("make", "--", target)

    @tool
    def clean(self) -> str:
        """Discard every uncommitted change."""
        return self._run("git", "reset", "--hard")

    def _run(self, *command: str) -> str:
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=60, check=False)
        return done.stdout or done.stderr
