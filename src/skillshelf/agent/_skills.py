"""The agent's shelf: the skills of its workspace, as far as the person agreed to them."""

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from skillshelf.agent._mentions import mentioned_files
from skillshelf.descriptor import Delta
from skillshelf.errors import SourceError
from skillshelf.files import NotPlainFile, read_file
from skillshelf.shelf import Shelf, workspace_sources
from skillshelf.skill import BaseSkill
from skillshelf.skillmd import MAX_FILE, Unreadable, decode
from skillshelf.sources import SKILL_FILES, DirectorySource
from skillshelf.text import text_for_model
from skillshelf.trust import INSTRUCTION_FILES, Pending, Trust, TrustedSource, UnreviewedFile, trusted_text
from skillshelf.turn import Turn
from skillshelf.watch import Watch

if TYPE_CHECKING:
    # The file tools stand on pydantic-ai. The MCP server has this shelf without it, and starts in half the time.
    from skillshelf.agent.filetools import Change

# Every call carries it; what is longer belongs in skills.
_MAX_GUIDANCE = 32 * 1024


class WorkspaceSkills:
    """A shelf on a workspace. With a trust store, project skills are served only as the person approved them."""

    def __init__(
        self,
        root: str | os.PathLike[str],
        skills: Sequence[BaseSkill] | Shelf = (),
        trust: Trust | None = None,
        frozen: bool = False,
    ) -> None:
        """`skills`: code skills beside the workspace's, or a shelf in their place."""
        if not os.path.isdir(root):
            raise SourceError(f"There is no folder {os.fspath(root)!r} to take as the workspace.")
        project = DirectorySource(root, "project")
        self.root, self.frozen = project.root, frozen
        self.trusted = TrustedSource(project, trust) if trust else None
        own = self.trusted or project
        self.shelf = skills if isinstance(skills, Shelf) else Shelf(workspace_sources(own, self.root, skills))
        self.guidance = ""
        """The text of the project's AGENTS.md, as far as the person agreed to it."""
        self._guidance_pending: Pending | None = None
        self._noticed = Delta()
        """What the watcher reloaded since the last turn."""
        self._read_guidance()

    @property
    def pending(self) -> tuple[Pending, ...]:
        """What of the project the person has not agreed to as it is now: skills, and its AGENTS.md."""
        skills = self.trusted.pending if self.trusted else ()
        return (*skills, self._guidance_pending) if self._guidance_pending else skills

    def unreviewed_files(self, command: str) -> tuple[UnreviewedFile, ...]:
        """Return the skills' files that a command mentions and that the user has not approved as they are now."""
        return mentioned_files(command, self.trusted.unreviewed_files()) if self.trusted else ()

    @property
    def drift(self) -> tuple[str, ...]:
        """The names of what is not exactly as it was approved here: new, changed or gone."""
        gone = self.trusted.gone if self.trusted else ()
        return (*(one.name for one in self.pending), *gone)

    @property
    def granted(self) -> frozenset[str]:
        """The skills that are live because the agent wrote them in this session."""
        return self.trusted.granted if self.trusted else frozenset()

    def approve(self, pending: Sequence[Pending]) -> None:
        """The person agrees to these, exactly as they were shown. Raises TrustError."""
        if self.trusted:
            self.trusted.approve(pending)

    def watch(self, also: Callable[[], None]) -> Watch:
        """Reload by itself; what that changes is told when the next turn opens. Raises MissingExtraError."""

        def noticed(delta: Delta) -> None:
            self._noticed = _then(self._noticed, delta)
            also()

        return self.shelf.watch(noticed)

    def open_turn(self, last: Turn | None) -> tuple[Turn, Delta]:
        """A turn after the last one, and what a sweep found changed on disk."""
        noticed, self._noticed = self._noticed, Delta()
        delta = _then(noticed, self.reload())
        return Turn(self.shelf, last.invoked if last else ()), delta

    def reload(self) -> Delta:
        """What differs on disk from what was known. Nothing, where the skills are frozen."""
        if self.frozen:
            return Delta()
        self._read_guidance()
        return self.shelf.reload()

    def _read_guidance(self) -> None:
        path = os.path.join(self.root, INSTRUCTION_FILES[0])
        if self.trusted:
            text, self._guidance_pending = trusted_text(path, self.trusted.trust)
        else:
            text = _text_of(self.root, INSTRUCTION_FILES[0])
        self.guidance = text_for_model(text or "")[:_MAX_GUIDANCE]

    def is_agreed(self, path: str) -> bool:
        """Whether a file, as it is now, holds nothing that the person has not agreed to; true for one not there."""
        return self.trusted is None or self.trusted.is_reviewed(path)

    def wrote(self, turn: Turn, change: "Change", confirmed: bool) -> tuple[Delta, str]:
        """The agent wrote a file: what that changed on the shelf, and what to tell the model.

        `confirmed`: the person agreed to this very write, of a file they knew, so a skill it makes is live for this
        session.
        """
        is_skill = os.path.basename(change.path) in SKILL_FILES
        if not is_skill and not self._in_a_skill(change.path):
            return Delta(), ""
        if self.frozen:
            return Delta(), "The skills of this session are frozen: this change is not used."
        granted = self.trusted.grant([change.path]) if self.trusted and confirmed and self._is_as_shown(change) else ()
        delta = turn.wrote(change.path)
        said = [say(delta)] if delta or is_skill else []
        said += [
            f"{note.code}: {note.message}." + (f" Fix: {note.fix}." if note.fix else "") for note in delta.diagnostics
        ]
        if not granted and any(_holds(one.key, change.path, self.root) for one in self.pending):
            said.append("The skill as it is now is not live until the person has reviewed it: /skills trust.")
        return delta, "\n".join(said)

    def _is_as_shown(self, change: "Change") -> bool:
        """Whether the file is what the person was shown, and not what another program made of it meanwhile."""
        return _text_of(self.root, "/".join(change.parts)) == change.new

    def _in_a_skill(self, path: str) -> bool:
        folder = os.path.dirname(path)
        while folder.startswith(self.root) and folder != self.root:
            if any(os.path.lexists(os.path.join(folder, name)) for name in SKILL_FILES):
                return True
            folder = os.path.dirname(folder)
        return False


def _text_of(root: str, path: str) -> str:
    try:
        return decode(read_file(root, path.split("/"), 0, MAX_FILE).data)
    except (OSError, NotPlainFile, Unreadable):
        return ""


def _then(first: Delta, second: Delta) -> Delta:
    """Two changes as one."""
    gone, new = set(second.removed), set(first.added) | set(second.added)
    return Delta(
        tuple(sorted(new - gone)),
        tuple(sorted((set(first.changed) | set(second.changed)) - new - gone)),
        tuple(sorted((set(first.removed) - set(second.added)) | (gone - set(first.added)))),
        first.diagnostics + second.diagnostics,
    )


def say(delta: Delta) -> str:
    """What a reload changed, in a line."""
    kinds = (("added", delta.added), ("changed", delta.changed), ("removed", delta.removed))
    told = "; ".join(f"{kind} {', '.join(names)}" for kind, names in kinds if names)
    return f"Skills reloaded: {told}." if told else "Skills reloaded: nothing changed."


def _holds(key: str, path: str, root: str) -> bool:
    return f"{os.path.dirname(path)}/".startswith(os.path.join(root, key, ""))
