"""A session for other readers: a transcript in Markdown, or JSON for a program."""

import json
import re
from collections.abc import Iterator
from typing import Any

from pydantic_ai.messages import (
    CompactionPart,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponsePart,
    RetryFeedbackPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from skillshelf.shelf import LOAD_TOOL
from skillshelf.text import clean, clean_line
from skillshelf_agent.sessions._format import SideTranscript, dump_messages
from skillshelf_agent.sessions._history import loaded_skills, prompt_text
from skillshelf_agent.sessions._session import Session


def export_markdown(session: Session) -> str:
    """Return the whole conversation as Markdown.

    Words are quoted and tool results are fenced, so that neither can pass for the rest.
    """
    skills = dict.fromkeys(loaded.name for loaded in loaded_skills(session.transcript))
    facts = {
        "Name": session.name,
        "Workspace": session.workspace,
        "Begun": f"{session.created:%Y-%m-%d %H:%M} UTC",
        "Model": session.model,
        "Skills loaded": ", ".join(skills),
    }
    blocks = [f"# Session {_code_span(session.id)}"]
    blocks.append("\n".join(f"- {name}: {_code_span(value)}" for name, value in facts.items() if value))
    by_call = {side.call_id: side for side in session.sides if side.call_id}
    asked_by_user = {side.position: side for side in session.sides if not side.call_id}
    for position, message in enumerate(session.transcript):
        if position in asked_by_user:
            blocks += _format_side(asked_by_user[position])
        blocks += _format_message(message)
        for part in message.parts:
            if isinstance(part, ToolReturnPart) and part.tool_call_id in by_call:
                blocks += _format_side(by_call[part.tool_call_id])
    return "\n\n".join(blocks) + "\n"


def export_json(session: Session) -> str:
    """Return the whole conversation in the form that pydantic-ai reads, with the facts about the session."""
    exported: dict[str, Any] = {
        "id": session.id,
        "name": session.name,
        "workspace": session.workspace,
        "created": session.created.isoformat(),
        "model": session.model,
        "messages": dump_messages(session.transcript),
        "sides": [
            {"skill": side.skill, "model": side.model, "call": side.call_id, "messages": dump_messages(side.messages)}
            for side in session.sides
        ],
    }
    text = json.dumps(exported, ensure_ascii=False, indent=2)
    return text.encode("utf-8", "replace").decode() + "\n"


def _format_side(side: SideTranscript) -> Iterator[str]:
    """Yield a side conversation, between two lines that say so."""
    yield f"### The side conversation of {_code_span(side.skill)}, with {_code_span(side.model)}"
    for message in side.messages:
        for block in _format_message(message):
            yield f"#{block}" if block.startswith("##") else block
    yield f"### End of the side conversation of {_code_span(side.skill)}"


def _format_message(message: ModelMessage) -> Iterator[str]:
    if isinstance(message, ModelRequest):
        for part in message.parts:
            yield from _format_request_part(part)
    else:
        for answer in message.parts:
            yield from _format_response_part(answer)


def _format_request_part(part: ModelRequestPart) -> Iterator[str]:
    if isinstance(part, UserPromptPart):
        yield "## User"
        yield _quote(prompt_text(part))
    elif isinstance(part, ToolReturnPart):
        outcome = "" if part.outcome == "success" else f" ({part.outcome})"
        yield f"Result of {_code_span(part.tool_name)}{outcome}:"
        yield _fence(part.model_response_str(), "text")
    elif isinstance(part, RetryFeedbackPart):
        yield "Asked to try again:"
        yield _fence(part.model_response(), "text")
    elif isinstance(part, CompactionPart) and part.content:
        yield "## Summary of what came before"
        yield _quote(part.content)


def _format_response_part(part: ModelResponsePart) -> Iterator[str]:
    if isinstance(part, TextPart) and part.content:
        yield "## Answer"
        yield _quote(part.content)
    elif isinstance(part, ToolCallPart):
        yield _call_heading(part)
        yield _fence(json.dumps(part.args_as_dict(), ensure_ascii=False, indent=2, default=repr), "json")


def _call_heading(part: ToolCallPart) -> str:
    arguments = part.args_as_dict()
    skill = arguments.get("skill_name")
    if part.tool_name != LOAD_TOOL or not isinstance(skill, str):
        return f"### Calls {_code_span(part.tool_name)}"

    heading = f"### Loads skill {_code_span(skill)}"
    reference = arguments.get("reference")
    if reference:
        heading += f", reference {_code_span(str(reference))}"
    return heading


def _clean_lines(text: str) -> str:
    """Make text fit for a terminal. A lone carriage return would begin a line of its own in Markdown."""
    return clean(text.replace("\r\n", "\n"))


def _quote(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in _clean_lines(text).split("\n"))


def _fence(text: str, language: str) -> str:
    content = _clean_lines(text)
    fence = "`" * max(3, _longest_backtick_run(content) + 1)
    return f"{fence}{language}\n{content}\n{fence}"


def _code_span(text: str) -> str:
    content = clean_line(text).strip() or " "
    ticks = "`" * (_longest_backtick_run(content) + 1)
    padding = " " if "`" in content else ""
    return f"{ticks}{padding}{content}{padding}{ticks}"


def _longest_backtick_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)
