from skillshelf.skills import BaseSkill, tool


class ShellSkill(BaseSkill):
    name = "shell"
    description = "Runs commands."
    category = "raw"

    @tool
    def run(self, command: str) -> str:
        """Runs a command."""
        return f"ran {command}"

    @tool
    def read(self, path: str) -> str:
        """Reads a file."""
        return f"read {path}"

    @tool
    def delete(self, path: str) -> str:
        """Deletes a file."""
        return f"deleted {path}"
