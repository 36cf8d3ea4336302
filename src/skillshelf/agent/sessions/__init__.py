"""Conversations that outlast a process: one file of JSON lines for each, outside the workspace."""

from skillshelf.agent.sessions.export import export_json, export_markdown
from skillshelf.agent.sessions.glance import SessionInfo
from skillshelf.agent.sessions.loaded import LoadedText, loaded_skills
from skillshelf.agent.sessions.session import Session
from skillshelf.agent.sessions.store import Sessions

__all__ = ["LoadedText", "Session", "SessionInfo", "Sessions", "export_json", "export_markdown", "loaded_skills"]
