"""The agent as a library: it writes a skill and uses it in the same session.

    python examples/agent.py

No key and no network are needed. A script stands in for the model; the tools, the shelf and the events are real.
"""

import asyncio
import tempfile

from skillshelf.agent import AgentCore, Answer, Approval
from skillshelf.agent.events import Event, Text, Usage
from skillshelf.testing import ScriptedModel, call

SKILL = """\
---
name: greet
description: Greet people the way this project does. Use when somebody says hello.
---

Say hello in Latin.
"""
MODEL = ScriptedModel(
    call("write_file", path=".agents/skills/greet/SKILL.md", content=SKILL),
    call("load_skill_instructions", skill_name="greet"),
    "Salve!",
)


async def approve(approval: Approval) -> Answer:
    """A terminal shows the diff and waits for a key; a program may decide as it likes."""
    print(f"may {approval.tool} run? yes")
    return "yes"


async def main() -> None:
    with tempfile.TemporaryDirectory() as workspace:
        core = AgentCore(MODEL, approve=approve)
        core.load_skills(workspace)
        async for event in core.process_message("Make a skill for greetings, then greet me."):
            if not isinstance(event, Text | Usage):  # text comes in pieces, and whole at the end
                print(line(event))


def line(event: Event) -> str:
    """The kind of an event, and its values on one line."""
    values = [" ".join(str(value).split()) for key, value in event.as_json().items() if key not in ("event", "id")]
    return f"{event.kind:16} {' | '.join(value if len(value) < 40 else f'{value[:39]}…' for value in values)}"


if __name__ == "__main__":
    asyncio.run(main())
