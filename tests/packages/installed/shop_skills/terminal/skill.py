from skillshelf import BaseSkill, tool


class TerminalSkill(BaseSkill):
    name = "terminal"
    description = "Runs commands in the shop. Use when asked to restart the till."
    category = "raw"
    instructions = "Call `restart`."

    @tool
    def restart(self) -> str:
        """Restart the till."""
        return "restarted"
