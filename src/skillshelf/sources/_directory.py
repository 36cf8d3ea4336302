"""Skills in a folder."""

import os
from collections.abc import Collection, Mapping

from skillshelf.descriptor import SkillDescriptor
from skillshelf.errors import (
    ReferenceNotAllowedError,
    ReferenceNotFoundError,
    ReferenceUnreadableError,
    SkillUnreadableError,
    SourceError,
)
from skillshelf.files import NotPlainFile, Page, read_file
from skillshelf.found import Found
from skillshelf.skillmd import MAX_FILE, Unreadable, decode, read
from skillshelf.sources._lastgood import is_half_written
from skillshelf.sources._tree import Tree

# A workspace of 100,000 skills has 200,000 folders; a home folder opened by mistake has millions.
MAX_FOLDERS = 500_000


class DirectorySource:
    """Every skill below a folder. A folder with a SKILL.md is a skill, and what lies below it belongs to that skill."""

    def __init__(
        self, root: str | os.PathLike[str], name: str = "", *, max_folders: int = MAX_FOLDERS, cache: bool = True
    ) -> None:
        """`cache`: keep what a large folder holds in a file under XDG_CACHE_HOME, so that the next start is cheap."""
        self.root = os.path.realpath(os.path.expanduser(root))
        self.name = name or os.path.basename(self.root) or "root"
        if os.path.lexists(self.root) and not os.path.isdir(self.root):
            raise SourceError(f"Not a directory: {os.fspath(root)!r}. A DirectorySource takes a folder of skills.")
        self._tree = Tree(self.root, self.name, max_folders)
        self._cache = cache
        self._looked = False

    def refresh(self, changed: Collection[str] | None = None) -> Mapping[str, Found | None]:
        if self._looked:
            return self._tree.look(changed)
        changes = self._first_look() if self._cache else self._tree.look(None)
        self._looked = True
        return changes

    def _first_look(self) -> Mapping[str, Found | None]:
        from skillshelf.sources import _scan_cache as index

        tree = self._tree
        known = index.load(self.root, self.name, tree.max_folders)
        if known:
            tree.ledger.state = known
        tree.look(None)
        state = tree.ledger.state
        # Not for every edit: what the file does not know yet is read again at the next start, no more.
        if tree.reads > len(state.skills) // 100 or not known:
            note = index.save(self.root, state, tree.max_folders)
            if note:
                state.notes["//index"] = Found(None, (note,))
        return {**state.notes, **{key: skill.found for key, skill in state.skills.items()}}

    def instructions(self, key: str, descriptor: SkillDescriptor) -> str:
        skill = self._tree.ledger.state.skills.get(key)
        file = descriptor.location.rpartition("/")[2]
        kept = skill.kept if skill else None
        try:
            text = read(decode(read_file(self.root, f"{key}/{file}".lstrip("/").split("/"), 0, MAX_FILE + 1).data))
            # Beside the description of one version go the instructions of that version: the next look brings both.
            is_other = text.description != descriptor.description or is_half_written(text)
            return kept if kept is not None and is_other else text.instructions
        except Unreadable as fault:
            reason = f"{fault.diagnostic.message} (line {fault.diagnostic.line})"
        except NotPlainFile as fault:
            reason = fault.reason
        except OSError as error:
            reason = error.strerror or "it cannot be opened"
        if kept is None:
            raise SkillUnreadableError(descriptor.name, reason)
        return kept

    def reference(self, key: str, descriptor: SkillDescriptor, path: str, offset: int, limit: int) -> Page:
        try:
            return read_file(self.root, f"{key}/{path}".lstrip("/").split("/"), offset, limit)
        except (FileNotFoundError, NotADirectoryError):
            raise ReferenceNotFoundError(descriptor.name, path, descriptor.references) from None
        except NotPlainFile as fault:
            raise ReferenceNotAllowedError(descriptor.name, path, descriptor.references, fault.reason) from None
        except OSError as error:
            raise ReferenceUnreadableError(descriptor.name, path, error.strerror or "it cannot be opened") from None
