"""A program that reads the agent's events. Type checkers must know the fields of an event from its `kind`."""

from typing import Literal, assert_type

from skillshelf_agent import AgentCore
from skillshelf_agent.events import BaseEvent, Event, Failed, Finished, SkillLoaded, Text, Usage, from_json


async def answer(core: AgentCore) -> str:
    async for event in core.process_message("Hello."):
        if event.kind == "text":
            assert_type(event, Text)
            print(event.text)
        elif event.kind == "skill_loaded":
            assert_type(event, SkillLoaded)
            assert_type(event.by, Literal["model", "user"])
        elif event.kind == "usage":
            assert_type(event.cost, float | None)
        elif event.kind == "finished":
            return event.text
    return ""


async def end(core: AgentCore) -> Failed | Finished | None:
    async for event in core.invoke_skill("pdf-forms"):
        if event.kind in ("error", "finished") and isinstance(event, Failed | Finished):
            return event
    return None


def is_wrong(event: Event) -> None:
    if event.kind == "text":
        print(event.stopped)  # type: ignore[attr-defined]  # pyright: ignore


def describe(event: Event) -> str:
    # Complete: without one of the kinds, a checker reports the missing `return`.
    match event.kind:
        case "text" | "thinking" | "tool_output" | "steered":
            return event.text
        case "tool_call" | "tool_result":
            return event.name
        case (
            "skill_loaded"
            | "skill_invoked"
            | "side_started"
            | "reference_loaded"
            | "load_repeated"
            | "reference_denied"
        ):
            return event.skill
        case "file_written":
            return event.path
        case "server_awaited":
            return event.server
        case "retrying":
            return event.reason
        case "skills_reloaded":
            return ", ".join(event.added)
        case "usage":
            return str(event.input)
        case "notice" | "finished":
            return event.text
        case "error":
            return event.message


def by_class(event: Event) -> BaseEvent:
    assert_type(from_json(event.as_json()), Event)
    match event:
        case Usage(input=tokens):
            assert_type(tokens, int)
        case _:
            pass
    return event
