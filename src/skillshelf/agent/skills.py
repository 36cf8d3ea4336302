"""The agent's shelf: the skills of its workspace, as far as the person agreed to them."""

import os
from collections.abc import Sequence

from skillshelf.agent.trust import INSTRUCTION_FILES, Pending, Trust, TrustedSource, trusted_text
from skillshelf.characters import show_hidden
from skillshelf.descriptor import Delta
from skillshelf.errors import SourceError
from skillshelf.reference import NotPlainFile, read_file
from skillshelf.shelf import Shelf, sources_around
from skillshelf.skill import BaseSkill
from skillshelf.skillmd import Unreadable, decode
from skillshelf.sources.directory import DirectorySource
from skillshelf.turn import Turn

# Every call carries it; what is longer belongs in skills.
_MAX_GUIDANCE = 32 * 1024


class WorkspaceSkills:
    """A shelf on a workspace. With a trust store, project skills are served only as the person approved them."""

    def __init__(
        self,
        root: str | os.PathLike[str],
        skills: Sequence[BaseSkill] = (),
        trust: Trust | None = None,
        frozen: bool = False,
    ) -> None:
        if not os.path.isdir(root):
            raise SourceError(f"There is no folder {os.fspath(root)!r} to take as the workspace.")
        project = DirectorySource(root, "project")
        self.root, self.frozen = project.root, frozen
        self.trusted = TrustedSource(project, trust) if trust else None
        self.shelf = Shelf(sources_around(self.trusted or project, self.root, skills))
        self.guidance = ""
        """The text of the project's AGENTS.md, as far as the person agreed to it."""
        self._guidance_pending: Pending | None = None
        self._read_guidance()

    @property
    def pending(self) -> tuple[Pending, ...]:
        """What of the project the person has not agreed to as it is now: skills, and its AGENTS.md."""
        skills = self.trusted.pending if self.trusted else ()
        return (*skills, self._guidance_pending) if self._guidance_pending else skills

    @property
    def granted(self) -> frozenset[str]:
        """The skills that are live because the agent wrote them in this session."""
        return self.trusted.granted if self.trusted else frozenset()

    def approve(self, pending: Sequence[Pending]) -> None:
        """The person agrees to these, exactly as they were shown. Raises TrustError."""
        if self.trusted:
            self.trusted.approve(pending)

    def open_turn(self, last: Turn | None) -> tuple[Turn, Delta]:
        """A turn after the last one, and what a sweep found changed on disk."""
        return Turn(self.shelf, last.invoked if last else ()), self.reload()

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
        self.guidance = show_hidden(text or "")[:_MAX_GUIDANCE]

    def wrote(self, turn: Turn, path: str, confirmed: bool) -> tuple[Delta, str]:
        """The agent wrote a file: what that changed on the shelf, and what to tell the model.

        `confirmed`: the person agreed to this very write, so a skill it makes is live for this session.
        """
        path = os.path.join(self.root, path)
        is_skill = os.path.basename(path) == "SKILL.md"
        if not is_skill and not self._in_a_skill(path):
            return Delta(), ""
        if self.frozen:
            return Delta(), "The skills of this session are frozen: this change is not used."
        granted = self.trusted.grant([path]) if self.trusted and confirmed else ()
        delta = turn.wrote(path)
        said = [say(delta)] if delta or is_skill else []
        said += [
            f"{note.code}: {note.message}." + (f" Fix: {note.fix}." if note.fix else "") for note in delta.diagnostics
        ]
        if not granted and any(_holds(one.key, path, self.root) for one in self.pending):
            said.append("The skill as it is now is not live until the person has reviewed it: /skills trust.")
        return delta, "\n".join(said)

    def _in_a_skill(self, path: str) -> bool:
        folder = os.path.dirname(path)
        while folder.startswith(self.root) and folder != self.root:
            if os.path.lexists(os.path.join(folder, "SKILL.md")):
                return True
            folder = os.path.dirname(folder)
        return False


def _text_of(root: str, name: str) -> str:
    try:
        return decode(read_file(root, [name], 0, _MAX_GUIDANCE).data)
    except (OSError, NotPlainFile, Unreadable):
        return ""


def say(delta: Delta) -> str:
    """What a reload changed, in a line."""
    kinds = (("added", delta.added), ("changed", delta.changed), ("removed", delta.removed))
    told = "; ".join(f"{kind} {', '.join(names)}" for kind, names in kinds if names)
    return f"Skills reloaded: {told}." if told else "Skills reloaded: nothing changed."


def _holds(key: str, path: str, root: str) -> bool:
    return f"{os.path.dirname(path)}/".startswith(os.path.join(root, key, ""))
