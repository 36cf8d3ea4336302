"""A session for other eyes: a transcript to read, and JSON for a program."""

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

from skillshelf.agent.sessions._lines import plain
from skillshelf.agent.sessions._loaded import LOAD, loaded_skills, prompt_text
from skillshelf.agent.sessions._session import Session
from skillshelf.text import clean, clean_line


def export_markdown(session: Session) -> str:
    """Everything that was said. Words are quoted and what tools did is fenced, so neither can pass for the rest."""
    skills = dict.fromkeys(loaded.name for loaded in loaded_skills(session.transcript))
    facts = {
        "Workspace": session.workspace,
        "Begun": f"{session.created:%Y-%m-%d %H:%M} UTC",
        "Model": session.model,
        "Skills loaded": ", ".join(skills),
    }
    blocks = [f"# Session {_span(session.id)}"]
    blocks.append("\n".join(f"- {name}: {_span(value)}" for name, value in facts.items() if value))
    blocks += (block for message in session.transcript for block in _blocks(message))
    return "\n\n".join(blocks) + "\n"


def export_json(session: Session) -> str:
    """Everything that was said, in the form that pydantic-ai reads, with what is known of the session."""
    exported: dict[str, Any] = {
        "id": session.id,
        "workspace": session.workspace,
        "created": session.created.isoformat(),
        "model": session.model,
        "messages": plain(session.transcript),
    }
    text = json.dumps(exported, ensure_ascii=False, indent=2)
    return text.encode("utf-8", "replace").decode() + "\n"


def _blocks(message: ModelMessage) -> Iterator[str]:
    if isinstance(message, ModelRequest):
        for part in message.parts:
            yield from _request_blocks(part)
    else:
        for answer in message.parts:
            yield from _response_blocks(answer)


def _request_blocks(part: ModelRequestPart) -> Iterator[str]:
    if isinstance(part, UserPromptPart):
        yield from ("## User", _quoted(prompt_text(part)))
    elif isinstance(part, ToolReturnPart):
        outcome = "" if part.outcome == "success" else f" ({part.outcome})"
        yield from (f"Result of {_span(part.tool_name)}{outcome}:", _fenced(part.model_response_str(), "text"))
    elif isinstance(part, RetryFeedbackPart):
        yield from ("Asked to try again:", _fenced(part.model_response(), "text"))
    elif isinstance(part, CompactionPart) and part.content:
        yield from ("## Summary of what came before", _quoted(part.content))


def _response_blocks(part: ModelResponsePart) -> Iterator[str]:
    if isinstance(part, TextPart) and part.content:
        yield from ("## Answer", _quoted(part.content))
    elif isinstance(part, ToolCallPart):
        yield from (_call_heading(part), _fenced(_arguments(part), "json"))


def _call_heading(part: ToolCallPart) -> str:
    arguments = part.args_as_dict()
    if part.tool_name == LOAD and isinstance(arguments.get("skill_name"), str):
        reference = arguments.get("reference")
        of = f", reference {_span(str(reference))}" if reference else ""
        return f"### Loads skill {_span(arguments['skill_name'])}{of}"
    return f"### Calls {_span(part.tool_name)}"


def _arguments(part: ToolCallPart) -> str:
    return json.dumps(part.args_as_dict(), ensure_ascii=False, indent=2, default=repr)


def _shown(text: str) -> str:
    """Fit for a terminal; a lone carriage return would begin a line of its own in Markdown."""
    return clean(text.replace("\r\n", "\n"))


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in _shown(text).split("\n"))


def _fenced(text: str, kind: str) -> str:
    shown = _shown(text)
    fence = "`" * max(3, _longest_run(shown) + 1)
    return f"{fence}{kind}\n{shown}\n{fence}"


def _span(text: str) -> str:
    shown = clean_line(text).strip() or " "
    ticks = "`" * (_longest_run(shown) + 1)
    pad = " " if "`" in shown else ""
    return f"{ticks}{pad}{shown}{pad}{ticks}"


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)
