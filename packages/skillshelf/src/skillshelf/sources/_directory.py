"""Skills in a folder."""

import os
from collections.abc import Collection, Mapping

from skillshelf.errors import (
    ReferenceNotAllowedError,
    ReferenceNotFoundError,
    ReferenceUnreadableError,
    SkillUnreadableError,
    SourceError,
)
from skillshelf.files import NotPlainFile, Page, cache_home, read_file
from skillshelf.skillmd import MAX_FILE, Unreadable, decode, read
from skillshelf.skills import Found, SkillDescriptor
from skillshelf.sources._limits import MAX_FOLDERS
from skillshelf.sources._tree import NoteKey, SkillTree, TreeState, is_half_written

# Below this many folders a scan takes a few milliseconds, which is not worth a file.
MIN_CACHED_FOLDERS = 500


class DirectorySource:
    """Every skill below a folder. A folder with a SKILL.md is a skill, and everything below it belongs to it."""

    def __init__(
        self, root: str | os.PathLike[str], name: str = "", *, max_folders: int = MAX_FOLDERS, cache: bool = True
    ) -> None:
        """`cache`: save what is known of a large folder in a file under XDG_CACHE_HOME, for a faster next start."""
        self.root = os.path.realpath(os.path.expanduser(root))
        self.name = name or os.path.basename(self.root) or "root"
        if os.path.lexists(self.root) and not os.path.isdir(self.root):
            raise SourceError(f"Not a directory: {os.fspath(root)!r}. A DirectorySource takes a folder of skills.")
        self._tree = SkillTree(self.root, self.name, max_folders)
        self.uses_cache = cache
        self._is_scanned = False

    def refresh(self, changed: Collection[str] | None = None) -> Mapping[str, Found | None]:
        if self._is_scanned:
            return self._tree.scan(changed)
        changes = self._scan_with_cache() if self.uses_cache else self._tree.scan()
        self._is_scanned = True
        return changes

    def _scan_with_cache(self) -> Mapping[str, Found | None]:
        tree = self._tree
        caches = _find_cache_folder()
        cached: TreeState | None = None
        if os.path.isdir(caches):  # this user has opened a large folder
            from skillshelf.sources import _scan_cache  # takes 10 ms, which only users of large folders pay

            cached = _scan_cache.load_state(caches, self.root, self.name, tree.max_folders)
        if cached is not None:
            tree.state = cached
        tree.scan()
        state = tree.state
        # Not for every edit: whatever the file does not know yet is read again at the next start.
        is_outdated = cached is None or tree.reads > len(state.skills) // 100
        if caches and is_outdated and state.folder_count >= MIN_CACHED_FOLDERS:
            from skillshelf.sources import _scan_cache

            note = _scan_cache.save_state(caches, state, tree.max_folders)
            if note:
                state.notes[NoteKey("/index")] = Found(None, (note,))
        everything: dict[str, Found | None] = dict(state.notes.items())
        everything.update((key, skill.found) for key, skill in state.skills.items())
        return everything

    def instructions(self, key: str, descriptor: SkillDescriptor) -> str:
        skill = self._tree.state.skills.get(key)
        last_good = skill.last_good_text if skill else None
        file = os.path.basename(descriptor.location)
        try:
            text = read(decode(self._read(key, file, 0, MAX_FILE + 1).data))
        except Unreadable as fault:
            reason = f"{fault.diagnostic.message} (line {fault.diagnostic.line})"
        except NotPlainFile as fault:
            reason = fault.reason
        except OSError as error:
            reason = error.strerror or "it cannot be opened"
        else:
            # The description is of one version, so the instructions must be of that version too. The next scan brings
            # the new version of both.
            is_other_version = text.description != descriptor.description or is_half_written(text)
            if last_good is not None and is_other_version:
                return last_good
            return text.instructions

        if last_good is None:
            raise SkillUnreadableError(descriptor.name, reason)
        return last_good

    def reference(self, key: str, descriptor: SkillDescriptor, path: str, offset: int, limit: int) -> Page:
        try:
            return self._read(key, path, offset, limit)
        except (FileNotFoundError, NotADirectoryError):
            raise ReferenceNotFoundError(descriptor.name, path, descriptor.references) from None
        except NotPlainFile as fault:
            raise ReferenceNotAllowedError(descriptor.name, path, descriptor.references, fault.reason) from None
        except OSError as error:
            raise ReferenceUnreadableError(descriptor.name, path, error.strerror or "it cannot be opened") from None

    def has_file(self, key: str, path: str) -> bool:
        return True

    def _read(self, key: str, path: str, offset: int, limit: int) -> Page:
        parts = f"{key}/{path}".lstrip("/").split("/")
        return read_file(self.root, parts, offset, limit)


def _find_cache_folder() -> str:
    """Return the folder of the scan caches, which need not exist; empty for a user without a home."""
    home = cache_home()
    if home is None:
        return ""
    return os.path.join(home, "index")


def find_skill_places(root: str) -> list[str]:
    """Return the places of skills below a folder, and of links that may lead to one, as paths below it."""
    tree = SkillTree(os.path.realpath(root), source="", max_folders=MAX_FOLDERS)
    tree.scan()
    return sorted({*tree.state.skills, *tree.state.links})
