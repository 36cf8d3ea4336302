"""The project's files beside its skills: its AGENTS.md and CLAUDE.md files and its Markdown commands."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from skillshelf.files import NotPlainFile, is_at_or_inside, read_file
from skillshelf.skillmd import MAX_FILE, Unreadable, decode, read
from skillshelf.sources.workspace import Workspace
from skillshelf.text import quote_for_model, text_for_model
from skillshelf.trust import (
    COMMAND_FOLDERS,
    INSTRUCTION_FILES,
    Pending,
    Trust,
    approve_file_write,
    find_command_files,
    find_instruction_files,
    find_unapproved_file,
    is_command_file,
    list_commands,
    name_command,
    trusted_text,
)

_MAX_GUIDANCE = 32 * 1024
"""Characters of all instruction files together. Every model call carries them; longer texts belong in skills."""


@dataclass(frozen=True, slots=True)
class MarkdownCommand:
    """A file whose text the user sends by typing its name: `.claude/commands/fix-issue.md` is `/fix-issue`."""

    name: str
    """Without the slash."""
    text: str
    """The text below the frontmatter."""
    description: str
    argument_hint: str
    arguments: tuple[str, ...]
    """The names of the arguments, if the file gives them names."""
    model: str
    """The model that it asks for, which it does not get; empty if it asks for none."""


class ProjectFiles:
    """The instruction files and commands from the root of a workspace down to the folder the agent works in.

    With a trust store, each file counts only in the version that the user approved. The user's own commands in the home
    folder need no approval.
    """

    def __init__(self, workspace: Workspace, trust: Trust | None) -> None:
        self._workspace = workspace
        self._trust = trust
        self.guidance = ""
        """The text of all instruction files."""
        self.commands: tuple[MarkdownCommand, ...] = ()
        """The same tuple until one of them changes."""
        self.pending: tuple[Pending, ...] = ()
        """The files that the user has not approved as they are now."""
        self.read()

    def read(self) -> None:
        """Bring everything up to date. The file nearest to the folder has the last word."""
        texts: dict[str, str] = {}
        commands: dict[str, MarkdownCommand] = {}
        pending: list[Pending] = []
        for file in self._find_files():
            text = self._read_trusted(file, pending)
            if is_command_file(file):
                _add_command(commands, name_command(file), text)
            elif text.strip():
                texts[os.path.relpath(file, self._workspace.root)] = text_for_model(text)
        for place in self._find_own_places():
            for path in list_commands(place):
                _add_command(commands, name_command(path), _read_text(place, path))

        self.guidance = _join_texts(texts)
        self.pending = tuple(pending)
        if tuple(commands.values()) != self.commands:
            self.commands = tuple(commands.values())

    def _read_trusted(self, file: str, pending: list[Pending]) -> str:
        """Return the approved text of a file; empty if there is none. Add the file to `pending` if it has another."""
        if self._trust is None:
            return _read_text(self._workspace.root, os.path.relpath(file, self._workspace.root))
        trusted = trusted_text(file, self._trust, self._workspace.root)
        if trusted.pending:
            pending.append(trusted.pending)
        return trusted.text or ""

    def includes(self, path: str) -> bool:
        """Return True for an instruction file or a command, even if it repeats another one now or is not there yet."""
        folder, name = os.path.split(path)
        if name in INSTRUCTION_FILES:
            return folder in self._workspace.levels()
        places = (f"{folder}/{place}/" for folder in self._workspace.levels() for place in COMMAND_FOLDERS)
        return is_command_file(path) and any(path.startswith(place) for place in places)

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
        """Return the paths of instruction files, whether they exist or not, from the root down to the folder.

        The commands follow, those that count first.
        """
        levels = self._workspace.levels()
        instructions = [file for folder in levels for file in find_instruction_files(folder)]
        return instructions + [file for folder in reversed(levels) for file in find_command_files(folder)]

    def _find_own_places(self) -> Iterator[str]:
        """Yield the folders of the user's own commands, unless the project has them."""
        for place in COMMAND_FOLDERS:
            own = os.path.expanduser(f"~/{place}")  # which stays as it is for a user without a home
            folder = os.path.realpath(own)
            if os.path.isabs(own) and os.path.isdir(folder) and not is_at_or_inside(folder, self._workspace.root):
                yield folder


def _add_command(commands: dict[str, MarkdownCommand], name: str, text: str) -> None:
    """Add a command, unless another one has its name, or there is nothing in it to send."""
    try:
        file = read(text, name)
    except Unreadable:
        return
    if name in commands or not file.instructions.strip():
        return
    model = file.optional.fields.get("model", "")
    commands[name] = MarkdownCommand(
        name,
        text_for_model(file.instructions),
        file.description,
        file.optional.argument_hint,
        file.optional.arguments,
        model if isinstance(model, str) else "",
    )


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
