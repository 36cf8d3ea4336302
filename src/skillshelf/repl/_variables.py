"""The question for the value of an environment variable that a skill declares for its scripts."""

import os

from rich.console import Console
from rich.text import Text

from skillshelf.agent import VariableRequest
from skillshelf.repl._keyboard import Keyboard
from skillshelf.text import clean_line


async def ask_variable(request: VariableRequest, console: Console, keyboard: Keyboard) -> str | None:
    """Return the value, from the environment or typed unseen, or None if the user does not give one."""
    name = clean_line(request.name)
    console.print(
        Text(
            f"The skill {clean_line(request.skill)} asks for {name} for its scripts. They get it until the session "
            "ends; nothing else does, and it is not saved.",
            "yellow",
        )
    )
    if request.in_environment:
        answers = {"y": "yes", "t": "type", "n": "no"}
        answer = await keyboard.ask(f"Give them {name} from your environment? [y]es [t]ype another [n]o", answers, "no")
        console.print(Text(answer, "dim"))
        if answer == "yes":
            return os.environ.get(request.name)
        if answer == "no":
            return None
    value = await keyboard.read_secret(f"{name} (not shown; Enter for none): ")
    console.print(Text("given" if value else "not given", "dim"))
    return value or None
