"""Finding skills below a root: walked once, then kept current by stat.

Every folder is opened relative to the one above it and never through a link, so nothing outside the root is listed or
read, whatever is swapped meanwhile.
"""

import os
import time
from collections.abc import Collection, Mapping

from skillshelf.files import NotPlainFile, file_stamp, is_fresh, mounts_below, open_below, open_folder, system
from skillshelf.found import Found
from skillshelf.sources._folder import (
    MAX_DEPTH,
    SKILL_FILES,
    TOO_DEEP,
    TOO_DEEP_FIX,
    Entries,
    FolderReader,
    stamp_of,
)
from skillshelf.sources._ignorefile import IGNORE_FILE, IgnoreFile
from skillshelf.sources._ledger import EVERYWHERE, Ledger
from skillshelf.sources._links import follow_links, set_links
from skillshelf.sources._names import SKIPPED_FOLDERS, SKIPPED_UNLESS_SKILL
from skillshelf.sources._state import MISSING, Folder, Skill

Shut = (OSError, NotPlainFile)
"""Why a folder cannot be entered."""
_GONE = (FileNotFoundError, NotADirectoryError, NotPlainFile)


class Tree:
    """The folders and skills below a root."""

    def __init__(self, root: str, source: str, max_folders: int) -> None:
        self.root, self.source, self.max_folders = root, source, max_folders
        self.ledger = Ledger(root)
        self.reads = 0
        """Skill folders read at the last look."""
        self._ignore = IgnoreFile(root)
        self._mounts: frozenset[str] = frozenset()
        self._device = 0
        self._now = 0
        self._reader = FolderReader(source, 0, self._mounts, 0)

    def look(self, changed: Collection[str] | None) -> Mapping[str, Found | None]:
        """What differs from the last look. `changed`: the only paths to look at."""
        self._now, self.reads, self.ledger.changes = time.time_ns(), 0, {}
        try:
            root = open_folder(self.root)
        except Shut as error:
            self._lose_root(error)
            return self.ledger.changes
        try:
            self.ledger.unsay("")
            self._device = system.fstat(root).st_dev
            self._look(root, changed)
        except OSError as error:  # no descriptor to be had, say: what is known stays in use
            self._lose_root(error)
        finally:
            system.close(root)
        return self.ledger.changes

    def _look(self, root: int, changed: Collection[str] | None) -> None:
        state = self.ledger.state
        known, state.ignore_stamp = state.ignore_stamp, self._ignore.update(root)
        if changed is None or not state.folders:
            self._mounts = mounts_below(self.root)
        self._reader = FolderReader(self.source, self._device, self._mounts, self._now)
        if state.ignore_stamp != known or not (state.folders or state.skills):
            self.ledger.forget_all()
            self._enter(root, system.fstat(root), "", 0)
        elif changed is None:
            self._sweep(root)
            few = len(state.folders) + len(state.skills) < self.max_folders
            if few and self.ledger.said("too-many-folders"):
                self.ledger.forget_all()
                self._enter(root, system.fstat(root), "", 0)
        else:
            for path in changed:
                self._visit(root, path)
        follow_links(self.ledger, lambda key: self._visit_folder(root, key, linked=True))
        if self._ignore.fault:
            message = f"the ignore file cannot be read whole: {self._ignore.fault}"
            self.ledger.say(IGNORE_FILE, "warning", "ignore-unreadable", message, "make it a short, plain text file")

    # -- walking ------------------------------------------------------------------------------------------------------

    def _enter(self, fd: int, info: os.stat_result, key: str, depth: int, told: bool = False) -> None:
        """An open folder: a skill, or a folder that may hold some. `told`: a file in it is known to have changed."""
        entries = Entries(system.scandir(fd))
        if self.ledger.state.notes:
            self.ledger.unsay(key)
        if file := entries.skill_file():
            self.reads += 1
            skill, text = self._reader.read(fd, self.ledger.path(key), entries, info, file)
            self.ledger.take(key, skill, text, told)
            if key:
                return
            # A workspace that is itself a skill still keeps others in its dot-folders.
            entries.folders = [name for name in entries.folders if name[0] == "."]
        elif key in self.ledger.state.skills:
            self.ledger.forget(key)
        if not file:
            self._warn_of_case(key, entries.files)
        folder = self.ledger.state.folders.setdefault(key, Folder(MISSING, True))
        folder.stamp, folder.fresh = hash(file_stamp(info)), self._is_fresh(info)
        self._set_links(key, folder, entries)
        for name in entries.folders:
            self._enter_child(fd, key, name, depth, folder.children)

    def _warn_of_case(self, key: str, files: list[str]) -> None:
        """`Skill.md` makes no skill here, which its author should hear."""
        odd = {f"{key}/{name}" if key else name for name in files if len(name) == 8 and name.lower() == "skill.md"}
        for place in self.ledger.said("skill-file-case") if self.ledger.state.notes else ():
            if place.rpartition("/")[0] == key and place not in odd:
                self.ledger.unsay(place)
        for place in odd:
            message = "only SKILL.md and skill.md make a folder a skill"
            self.ledger.say(place, "warning", "skill-file-case", message, "rename the file SKILL.md")

    def _enter_child(self, fd: int, key: str, name: str, depth: int, children: set[str]) -> None:
        child = f"{key}/{name}" if key else name
        if name in SKIPPED_FOLDERS and not (name in SKIPPED_UNLESS_SKILL and _holds_skill(fd, f"{name}/")):
            return
        if self._ignore.active and self._ignore.covers(child):
            return
        if depth >= MAX_DEPTH:
            self.ledger.say(child, "warning", "too-deep", TOO_DEEP, TOO_DEEP_FIX)
            return
        if len(self.ledger.state.folders) + len(self.ledger.state.skills) >= self.max_folders:
            message = f"only the first {self.max_folders} folders were looked at"
            fix = f"name the folders to leave out in {IGNORE_FILE}"
            self.ledger.say(EVERYWHERE, "warning", "too-many-folders", message, fix)
            return
        try:
            inner = open_folder(name, fd)
            try:
                info = system.fstat(inner)
                if (info.st_dev != self._device or self._mounts) and self._is_elsewhere(info, child):
                    return
                children.add(name)
                self._enter(inner, info, child, depth + 1)
            finally:
                system.close(inner)
        except Shut as error:
            self._leave_out(child, error)

    def _is_elsewhere(self, info: os.stat_result, key: str) -> bool:
        if info.st_dev == self._device and not (self._mounts and self.ledger.path(key) in self._mounts):
            return False
        self.ledger.forget(key)
        message = "the folder lies on another mount and is not entered"
        self.ledger.say(key, "warning", "other-mount", message, "open it as a source of its own")
        return True

    # -- looking again ------------------------------------------------------------------------------------------------

    def _sweep(self, root: int) -> None:
        """Stat what is known; look again only at what differs."""
        folders, skills = self.ledger.state.folders, self.ledger.state.skills
        stale_folders = [key for key, folder in folders.items() if folder.fresh or _stamp(root, key) != folder.stamp]
        stale_skills = [key for key, one in skills.items() if one.fresh or stamp_of(root, key, one) != one.stamp]
        for key in stale_folders:
            if key in folders:
                self._look_again(root, key)
        for key in stale_skills:
            if key in skills:  # and not taken in by a skill above it just now
                self._visit_folder(root, key)
        for key in self.ledger.said("folder-unreadable", "other-mount"):
            self._visit_folder(root, key)

    def _visit(self, root: int, path: str) -> None:
        """Look at the one place that a changed path belongs to."""
        parts = self._parts_below(path)
        if parts is None:
            return
        state, key = self.ledger.state, ""
        for depth in range(len(parts) + 1):
            key = "/".join(parts[:depth])
            if key in state.skills:
                self._visit_folder(root, key, _is_offered(state.skills[key], "/".join(parts[depth:])))
                return
            if key not in state.folders:
                break
        parent = "/".join(parts[:-1])
        if parts and parts[-1] in SKILL_FILES and parent in state.folders:
            self._look_again(root, parent)
        elif key in state.folders:
            self._look_again(root, key)
        else:
            self._visit_folder(root, key)

    def _parts_below(self, path: str) -> list[str] | None:
        """The path's components below the root; None for a path elsewhere."""
        real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        if real == self.root:
            return []
        return real[len(self.root) + 1 :].split("/") if real.startswith(self.root + "/") else None

    def _visit_folder(self, root: int, key: str, told: bool = False, linked: bool = False) -> None:
        """Read one folder anew: a skill that changed, a folder that is new, or one that is gone.

        `linked`: a link asks for it, so that it counts even where the walk does not go by itself.
        """
        parent, _, name = key.rpartition("/")
        state = self.ledger.state
        try:
            with open_below(root, key.split("/") if key else ()) as fd:
                if key not in state.skills and not linked and self._is_left_out(fd, key, name):
                    return
                info = system.fstat(fd)
                if self._is_elsewhere(info, key):
                    return
                if key and parent in state.folders:
                    state.folders[parent].children.add(name)
                self._enter(fd, info, key, key.count("/") + bool(key), told)
        except Shut as error:
            self._lose(key, error)
            if key not in state.skills and parent in state.folders:
                state.folders[parent].children.discard(name)

    def _is_left_out(self, fd: int, key: str, name: str) -> bool:
        skipped = name in SKIPPED_FOLDERS and not (name in SKIPPED_UNLESS_SKILL and _holds_skill(fd, ""))
        return skipped or self._ignore.covers(key)

    def _look_again(self, root: int, key: str) -> None:
        """A folder whose entries changed: enter what is new in it, forget what is gone, leave the rest alone."""
        try:
            with open_below(root, key.split("/") if key else ()) as fd:
                self._compare(fd, key)
        except Shut as error:
            self._lose(key, error)

    def _compare(self, fd: int, key: str) -> None:
        info, entries = system.fstat(fd), Entries(system.scandir(fd))
        if self._is_elsewhere(info, key):
            return
        state, depth = self.ledger.state, key.count("/") + bool(key)
        if entries.skill_file() and key not in state.skills:
            self.ledger.forget(key)
            self._enter(fd, info, key, depth)
            return
        folder = state.folders[key]
        folder.stamp, folder.fresh = hash(file_stamp(info)), self._is_fresh(info)
        for name in folder.children.difference(entries.folders):
            self.ledger.forget(f"{key}/{name}" if key else name)
            folder.children.discard(name)
        self._set_links(key, folder, entries)
        if key not in state.skills:
            self._warn_of_case(key, entries.files)
        for name in entries.folders:
            if name not in folder.children and (key not in state.skills or name[0] == "."):
                self._enter_child(fd, key, name, depth, folder.children)

    def _set_links(self, key: str, folder: Folder, entries: Entries) -> None:
        if entries.links or folder.links:
            prefix = f"{key}/" if key else ""
            set_links(self.ledger, key, folder, {one for one in entries.links if not self._ignore.covers(prefix + one)})

    # -- what cannot be opened ----------------------------------------------------------------------------------------

    def _lose(self, key: str, error: Exception) -> None:
        """A known folder cannot be read now: gone, closed to us, or (no descriptor to be had) to be tried again."""
        if isinstance(error, _GONE):
            self.ledger.forget(key)
        elif isinstance(error, PermissionError):
            self.ledger.forget(key)
            self._leave_out(key, error)
        elif key in self.ledger.state.folders:
            self.ledger.state.folders[key].fresh = True

    def _leave_out(self, key: str, error: Exception) -> None:
        reason = (error.strerror or "it cannot be opened") if isinstance(error, OSError) else str(error)
        message = f"the folder is left out: {reason}"
        self.ledger.say(key, "warning", "folder-unreadable", message, "check its permissions")

    def _lose_root(self, error: Exception) -> None:
        if isinstance(error, FileNotFoundError):
            self.ledger.forget_all()
            message, fix = "the folder does not exist", "create it to keep skills there"
            self.ledger.say("", "info", "root-missing", message, fix)
            return
        if isinstance(error, (*_GONE, PermissionError)):
            self.ledger.forget_all()
        message = "the folder cannot be opened, or is a symlink now"
        self.ledger.say("", "error", "root-unreadable", message, "check what lies there")

    def _is_fresh(self, info: os.stat_result) -> bool:
        return is_fresh(info, self._now)


def _is_offered(skill: Skill, path: str) -> bool:
    """Whether it is one of the skill's references, or a folder of some: its text is not in what is compared."""
    listed = skill.found.descriptor.references if path and skill.found.descriptor else ()
    return any(one == path or one.startswith(f"{path}/") for one in listed)


def _holds_skill(fd: int, prefix: str) -> bool:
    try:
        system.stat(f"{prefix}SKILL.md", dir_fd=fd, follow_symlinks=False)
    except OSError:
        return False
    return True


def _stamp(root: int, key: str) -> int:
    try:
        return hash(file_stamp(system.stat(key or ".", dir_fd=root, follow_symlinks=False)))
    except OSError:
        return MISSING
