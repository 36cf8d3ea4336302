"""Conversations that outlast a process: one file of JSON lines for each, outside the workspace."""

from skillshelf.agent.sessions._export import export_json, export_markdown
from skillshelf.agent.sessions._glance import SessionInfo
from skillshelf.agent.sessions._history import sendable, stripped
from skillshelf.agent.sessions._loaded import LOAD, LoadedText, loaded_skills, prompt_text
from skillshelf.agent.sessions._session import Session
from skillshelf.agent.sessions._store import Sessions

__all__ = [
    "LOAD",
    "LoadedText",
    "Session",
    "SessionInfo",
    "Sessions",
    "export_json",
    "export_markdown",
    "loaded_skills",
    "prompt_text",
    "sendable",
    "stripped",
]
