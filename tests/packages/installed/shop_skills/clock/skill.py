from skillshelf import BaseSkill, tool


class ClockSkill(BaseSkill):
    name = "clock"
    description = "Tells the opening hours. Use when asked when the shop opens."
    instructions = "Call `opening_hours`."

    def __init__(self) -> None:
        raise RuntimeError("SHOP_CLOCK is not set")

    @tool
    def opening_hours(self) -> str:
        """Return the opening hours."""
        return "9 to 5"
