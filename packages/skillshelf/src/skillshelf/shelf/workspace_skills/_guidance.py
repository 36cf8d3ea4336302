"""The project's own instructions: its AGENTS.md and CLAUDE.md files, as far as the user approved them."""

import os
from collections.abc import Mapping

from skillshelf.files import NotPlainFile, read_file
from skillshelf.skillmd import MAX_FILE, Unreadable, decode
from skillshelf.sources.workspace import Workspace
from skillshelf.text import quote_for_model, text_for_model
from skillshelf.trust import (
    INSTRUCTION_FILES,
    Pending,
    Trust,
    approve_file_write,
    find_instruction_files,
    find_unapproved_file,
    trusted_text,
)

_MAX_GUIDANCE = 32 * 1024
"""Characters of all instruction files together. Every model call carries them; longer texts belong in skills."""


class ProjectGuidance:
    """The text of all instruction files from the root of a workspace down to the folder the agent works in.

    With a trust store, each file counts only in the version that the user approved.
    """

    def __init__(self, workspace: Workspace, trust: Trust | None) -> None:
        self._workspace = workspace
        self._trust = trust
        self.text = ""
        self.pending: tuple[Pending, ...] = ()
        """The files that the user has not approved as they are now."""
        self.read()

    def read(self) -> None:
        """Bring the text up to date. The file nearest to the folder has the last word."""
        texts: dict[str, str] = {}
        pending: list[Pending] = []
        for file in self._find_files():
            path = os.path.relpath(file, self._workspace.root)
            if self._trust:
                trusted = trusted_text(file, self._trust, self._workspace.root)
                text = trusted.text
                if trusted.pending:
                    pending.append(trusted.pending)
            else:
                text = _read_text(self._workspace.root, path)
            if text and text.strip():
                texts[path] = text_for_model(text)
        self.text = _join_texts(texts)
        self.pending = tuple(pending)

    def includes(self, path: str) -> bool:
        """Return True for an instruction file, even if it repeats another one now: the next write may change that."""
        folder, name = os.path.split(path)
        return name in INSTRUCTION_FILES and folder in self._workspace.levels()

    def is_pending(self, path: str) -> bool:
        """Return True if the file was not approved as it was at the last `read`."""
        return any(file.location == path for file in self.pending)

    def is_reviewed(self, path: str) -> bool:
        """Return True if the user approved the file as it is on disk now, or if no file needs approval."""
        if self._trust is None:
            return True
        return trusted_text(path, self._trust, self._workspace.root).pending is None

    def find_unapproved(self) -> list[Pending]:
        """Return the files that the user has not approved as they are, even if they are the user's own."""
        if self._trust is None:
            return []
        files = [find_unapproved_file(path, self._trust, self._workspace.root) for path in self._find_files()]
        return [file for file in files if file]

    def approve_write(self, path: str, sha256: str) -> None:
        """Approve a file that the agent wrote with this content in the user's sight. Raises TrustError."""
        if self._trust:
            approve_file_write(path, sha256, self._trust, self._workspace.root)

    def _find_files(self) -> list[str]:
        """Return the paths of instruction files, whether they exist or not, from the root down to the folder."""
        return [file for folder in self._workspace.levels() for file in find_instruction_files(folder)]


def _join_texts(texts: Mapping[str, str]) -> str:
    """Join the texts of instruction files, by path. Each of several gets a heading, and its share of the space."""
    if len(texts) < 2:
        return "".join(texts.values())[:_MAX_GUIDANCE]
    share = _MAX_GUIDANCE // len(texts)
    parts = []
    for path, text in texts.items():
        scope = "the whole repository"
        if os.path.dirname(path):
            scope = f"the folder {quote_for_model(os.path.dirname(path))} below its root"
        parts.append(f"For {scope}:\n\n{text[:share]}")
    return "\n\n".join(parts)


def _read_text(root: str, path: str) -> str:
    """Return the text of a file; empty if it cannot be read."""
    try:
        return decode(read_file(root, path.split("/"), 0, MAX_FILE).data)
    except (OSError, NotPlainFile, Unreadable):
        return ""
