"""A raw skill: it runs commands, so it is attached under a policy or not at all."""

import subprocess

from skillshelf import BaseSkill, tool


class RepoShellSkill(BaseSkill):
    name = "repo-shell"
    description = "Look at a Git repository and run its checks. Use when asked about its state, history or tests."
    category = "raw"
    references = ("references/commands.md",)
    instructions = """
    Call `status` first. Before `run`, load the reference `commands.md`: it names the targets that this repository
    has. Never call `clean` to make an error go away.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder

    @tool
    def status(self) -> str:
        """Branch and changed files."""
        return self._run("git", "status", "--short", "--branch")

    @tool
    def run(self, target: str) -> str:
        """The output of a make target.

        Args:
            target: One of those in commands.md.
        """
        return self._run("make", "--", target)

    @tool
    def clean(self) -> str:
        """Throws away every change that is not committed."""
        return self._run("git", "reset", "--hard")

    def _run(self, *command: str) -> str:
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=60, check=False)
        return done.stdout or done.stderr
