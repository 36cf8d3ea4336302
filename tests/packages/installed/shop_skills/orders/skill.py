from skillshelf import BaseSkill, tool


class OrdersSkill(BaseSkill):
    name = "orders"
    description = "Finds orders. Use when a customer asks about an order."
    instructions = "Call `find_order` with the order's number."

    def __init__(self, database: dict[str, str], *, limit: int = 5) -> None:
        self.database = database
        self.limit = limit

    @tool
    def find_order(self, number: str) -> str:
        """Return an order."""
        return self.database[number]
