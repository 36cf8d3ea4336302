"""The agent as a library: it writes a skill and uses it in the same session.

    python examples/agent.py

No key and no network are needed. A script stands in for the model; the tools, the shelf and the events are real.
"""

import asyncio
import tempfile

from skillshelf_agent import AgentCore, Answer, Approval
from skillshelf_agent.events import Event, Text, Usage
from skillshelf_agent.testing import ScriptedModel, call

SKILL = """\
---
name: greet
description: Greet people the way this project does. Use when someone says hello.
---

Say hello in Latin.
"""
MODEL = ScriptedModel(
    call("write_file", path=".agents/skills/greet/SKILL.md", content=SKILL),
    call("load_skill_instructions", skill_name="greet"),
    "Salve!",
)


async def approve(approval: Approval) -> Answer:
    """Decide about a tool call. A terminal would show the diff and wait for a key."""
    print(f"approve {approval.tool}? yes")
    return "yes"


async def main() -> None:
    with tempfile.TemporaryDirectory() as workspace:
        core = AgentCore(MODEL, workspace, approve=approve)
        async for event in core.process_message("Make a skill for greetings, then greet me."):
            if not isinstance(event, Text | Usage):  # text arrives in pieces, and complete at the end
                print(line(event))


def line(event: Event) -> str:
    """Return an event's kind and values on one line."""
    values: list[str] = []
    for key, value in event.as_json().items():
        if key in ("event", "id"):
            continue
        text = " ".join(str(value).split())
        if len(text) > 39:
            text = f"{text[:39]}…"
        values.append(text)
    return f"{event.kind:16} {' | '.join(values)}"


if __name__ == "__main__":
    asyncio.run(main())
