"""Conversations that outlast a process: one file of JSON lines for each, outside the workspace."""

from skillshelf_agent.sessions._export import export_json, export_markdown
from skillshelf_agent.sessions._format import InUse, SideTranscript
from skillshelf_agent.sessions._history import (
    LoadedText,
    SentMessage,
    last_answer,
    list_sent,
    loaded_skills,
    make_prompt,
    make_sendable,
    mark_attachment,
    prompt_content,
    strip_system_prompt,
    typed_text,
)
from skillshelf_agent.sessions._session import Session
from skillshelf_agent.sessions._store import SessionInfo, Sessions

__all__ = [
    "InUse",
    "LoadedText",
    "SentMessage",
    "Session",
    "SessionInfo",
    "Sessions",
    "SideTranscript",
    "export_json",
    "export_markdown",
    "last_answer",
    "list_sent",
    "loaded_skills",
    "make_prompt",
    "make_sendable",
    "mark_attachment",
    "prompt_content",
    "strip_system_prompt",
    "typed_text",
]
