from skillshelf import BaseSkill, tool


class GreetingSkill(BaseSkill):
    name = "greeting"
    description = "Greets customers by name. Use when a customer says hello."
    instructions = "Call `greet` with the customer's name. For the tone load `tone.md`."
    references = ("references/tone.md",)

    @tool
    def greet(self, name: str) -> str:
        """Return a greeting.

        Args:
            name: The customer's name.
        """
        return f"Good morning, {name}."
