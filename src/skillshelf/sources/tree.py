"""Finding skills below a root: walked once, then kept current by stat.

Every folder is opened relative to the one above it and never through a link, so nothing outside the root is listed or
read, whatever is swapped meanwhile.
"""

import os
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager

from skillshelf.descriptor import Diagnostic, Severity
from skillshelf.found import Found
from skillshelf.reference import NotPlainFile, open_folder
from skillshelf.sources.folder import FRESH_NS, MAX_DEPTH, SKILL_FILES, Entries, FolderReader, stamp_of, times
from skillshelf.sources.ignorefile import IGNORE_FILE, IgnoreFile
from skillshelf.sources.lastgood import LastGood
from skillshelf.sources.names import SKIPPED_FOLDERS
from skillshelf.sources.state import MISSING, Folder, State

_EVERYWHERE = "*"
"""The key of what is to be said of the whole, not of a folder."""
Shut = (OSError, NotPlainFile)
"""Why a folder cannot be entered."""


class Tree:
    """The folders and skills below a root, and what changed since the last look."""

    def __init__(self, root: str, source: str, max_folders: int) -> None:
        self.root, self.source, self.max_folders = root, source, max_folders
        self.state = State()
        self.last_good = LastGood()
        self.reads = 0
        """Skill folders read at the last look."""
        self._ignore = IgnoreFile(root)
        self._changes: dict[str, Found | None] = {}
        self._device = 0
        self._now = 0

    def path(self, key: str) -> str:
        return f"{self.root}/{key}" if key else self.root

    def look(self, changed: Collection[str] | None) -> Mapping[str, Found | None]:
        """What differs from the last look. `changed`: the only paths to look at."""
        self._changes, self._now, self.reads = {}, time.time_ns(), 0
        state = self.state
        try:
            root = open_folder(self.root)
        except Shut as error:
            self._lose_root(error)
            return self._changes
        try:
            self._device = os.fstat(root).st_dev
            if state.notes.pop("", None):
                self._changes[""] = None
            if self._ignore_changed(root) or not (state.folders or state.skills):
                self._forget_all()
                self._enter(root, os.fstat(root), "", 0)
            elif changed is None:
                self._sweep(root)
            else:
                for path in changed:
                    self._visit(root, path)
            self._follow_links(root)
        finally:
            os.close(root)
        return self._changes

    # -- walking ------------------------------------------------------------------------------------------------------

    def _enter(self, fd: int, info: os.stat_result, key: str, depth: int, told: bool = False) -> None:
        """An open folder: a skill, or a folder that may hold some. `told`: a file in it is known to have changed."""
        entries = Entries(fd)
        if file := entries.skill_file():
            self._take(fd, info, key, entries, file, told)
            if key:
                return
            # A workspace that is itself a skill still keeps others in its dot-folders.
            entries.folders = [name for name in entries.folders if name[0] == "."]
        elif key in self.state.skills:
            self._forget(key)
        self.state.folders[key] = Folder(hash(times(info)), self._is_fresh(info), set())
        self._add_links(key, entries.links)
        for name in entries.folders:
            self._enter_child(fd, key, name, depth)

    def _enter_child(self, fd: int, key: str, name: str, depth: int) -> None:
        child = f"{key}/{name}" if key else name
        if name in SKIPPED_FOLDERS or self._ignore.covers(child):
            return
        if depth >= MAX_DEPTH:
            self._note(child, "warning", "too-deep", f"folders nested deeper than {MAX_DEPTH} are not looked at")
            return
        if len(self.state.folders) + len(self.state.skills) >= self.max_folders:
            self._note(
                _EVERYWHERE,
                "warning",
                "too-many-folders",
                f"only the first {self.max_folders} folders were looked at",
                f"name the folders to leave out in {IGNORE_FILE}",
            )
            return
        try:
            inner = open_folder(name, fd)
            try:
                info = os.fstat(inner)
                if info.st_dev == self._device:
                    self.state.folders[key].children.add(name)
                    self._enter(inner, info, child, depth + 1)
                else:
                    self._note(child, "warning", "other-mount", "the folder lies on another mount and is not entered")
            finally:
                os.close(inner)
        except Shut as error:
            self._leave_out(child, error)

    def _take(self, fd: int, info: os.stat_result, key: str, entries: Entries, file: str, told: bool) -> None:
        self.reads += 1
        reader = FolderReader(fd, self.path(key), self.source, self._device, self._now)
        skill, text = reader.read(entries, info, file)
        before = self.state.skills.get(key)
        changed = self.last_good.settle(before, skill, text)
        self.state.skills[key] = skill
        if changed or told:
            self._changes[key] = skill.found

    # -- looking again ------------------------------------------------------------------------------------------------

    def _sweep(self, root: int) -> None:
        """Stat what is known; look again only at what differs."""
        folders, skills = self.state.folders, self.state.skills
        stale_folders = [key for key, folder in folders.items() if folder.fresh or _stamp(root, key) != folder.stamp]
        stale_skills = [
            key for key, skill in skills.items() if skill.fresh or stamp_of(root, key, skill) != skill.stamp
        ]
        for key in stale_folders:
            if key in folders:
                self._look_again(root, key)
        for key in stale_skills:
            if key in skills:
                self._visit_folder(root, key)

    def _visit(self, root: int, path: str) -> None:
        """Look at the one place that a changed path belongs to."""
        parts = self._parts_below(path)
        if parts is None:
            return
        for depth in range(len(parts) + 1):
            key = "/".join(parts[:depth])
            if key in self.state.skills:
                told = depth < len(parts) and parts[depth:] != [self.state.skills[key].file]
                self._visit_folder(root, key, told)
                return
            if key not in self.state.folders:
                break
        if parts and parts[-1] in SKILL_FILES and "/".join(parts[:-1]) in self.state.folders:
            self._look_again(root, "/".join(parts[:-1]))
        elif key in self.state.folders:
            self._look_again(root, key)
        else:
            self._visit_folder(root, key)

    def _parts_below(self, path: str) -> list[str] | None:
        """The path's components below the root; None for a path elsewhere."""
        real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        if real == self.root:
            return []
        return real[len(self.root) + 1 :].split("/") if real.startswith(self.root + "/") else None

    def _visit_folder(self, root: int, key: str, told: bool = False) -> None:
        """Read one folder anew: a skill that changed, a folder that is new, or one that is gone."""
        parent, _, name = key.rpartition("/")
        try:
            with _opened(root, key) as fd:
                known = key in self.state.skills
                if not known and (name in SKIPPED_FOLDERS or self._ignore.covers(key)):
                    return
                if key and parent in self.state.folders:
                    self.state.folders[parent].children.add(name)
                self._enter(fd, os.fstat(fd), key, key.count("/") + bool(key), told)
        except Shut:
            self._forget(key)
            if parent in self.state.folders:
                self.state.folders[parent].children.discard(name)

    def _look_again(self, root: int, key: str) -> None:
        """A folder whose entries changed: enter what is new in it, forget what is gone, leave the rest alone."""
        try:
            with _opened(root, key) as fd:
                self._compare(fd, key)
        except Shut:
            self._forget(key)

    def _compare(self, fd: int, key: str) -> None:
        info, entries = os.fstat(fd), Entries(fd)
        folder, depth = self.state.folders[key], key.count("/") + bool(key)
        if entries.skill_file() and key not in self.state.skills:
            self._forget(key)
            self._enter(fd, info, key, depth)
            return
        folder.stamp, folder.fresh = hash(times(info)), self._is_fresh(info)
        prefix = f"{key}/" if key else ""
        for name in folder.children.difference(entries.folders):
            self._forget(prefix + name)
            folder.children.discard(name)
        for link in [link for link in self.state.links if link.rpartition("/")[0] == key]:
            if link[len(prefix) :] not in entries.links:
                self._drop_link(link)
        self._add_links(key, entries.links)
        for name in entries.folders:
            if name not in folder.children and (key not in self.state.skills or name[0] == "."):
                self._enter_child(fd, key, name, depth)

    # -- links and ignore rules ---------------------------------------------------------------------------------------

    def _add_links(self, key: str, names: Iterable[str]) -> None:
        for name in names:
            link = f"{key}/{name}" if key else name
            if not self._ignore.covers(link):
                self.state.links.setdefault(link, None)

    def _drop_link(self, link: str) -> None:
        del self.state.links[link]
        if self.state.notes.pop(link, None):
            self._changes[link] = None

    def _follow_links(self, root: int) -> None:
        """A link to a folder inside the root adds that folder under its real path; reading never passes a link."""
        for link, before in list(self.state.links.items()):
            try:
                info = os.stat(self.path(link))
                target = (info.st_dev, info.st_ino)
            except OSError:
                target = (0, 0)
            if target == before:
                continue
            self.state.links[link] = target
            if self.state.notes.pop(link, None):
                self._changes[link] = None
            if target == (0, 0):
                self._note(link, "warning", "link-broken", "the symlink leads nowhere", "remove it or mend its target")
            elif os.path.isdir(self.path(link)):
                self._follow(root, link)

    def _follow(self, root: int, link: str) -> None:
        key = self._below(os.path.realpath(self.path(link)))
        if key is None:
            self._note(
                link,
                "warning",
                "link-outside",
                "the symlink leads out of the folder and is not followed",
                "copy the skill here, or open its folder as a source of its own",
            )
        elif not self._is_known(key):
            self._visit_linked(root, key)

    def _visit_linked(self, root: int, key: str) -> None:
        try:
            with _opened(root, key) as fd:
                self._enter(fd, os.fstat(fd), key, key.count("/") + 1)
        except Shut as error:
            self._leave_out(key, error)

    def _below(self, real: str) -> str | None:
        if real == self.root:
            return ""
        return real[len(self.root) + 1 :] if real.startswith(self.root + "/") else None

    def _is_known(self, key: str) -> bool:
        """Whether the walk has been at this folder, or it is part of a skill."""
        if key in self.state.folders:
            return True
        while key:
            if key in self.state.skills:
                return True
            key = key.rpartition("/")[0]
        return False

    def _ignore_changed(self, root: int) -> bool:
        known = self.state.ignore_stamp
        self.state.ignore_stamp = self._ignore.update(root, known)
        if self._ignore.fault:
            message = f"the ignore file cannot be read whole: {self._ignore.fault}"
            self._note(IGNORE_FILE, "warning", "ignore-unreadable", message, "make it a short, plain text file")
        return self.state.ignore_stamp != known

    # -- forgetting ---------------------------------------------------------------------------------------------------

    def _note(self, key: str, severity: Severity, code: str, message: str, fix: str = "") -> None:
        path = self.root if key == _EVERYWHERE else self.path(key)
        found = Found(None, (Diagnostic(severity, code, message, path, fix=fix),))
        known = self.state.notes.get(key)
        if known is None or not known.says_the_same(found):
            self.state.notes[key] = self._changes[key] = found

    def _leave_out(self, key: str, error: Exception) -> None:
        reason = (error.strerror or "it cannot be opened") if isinstance(error, OSError) else str(error)
        self._note(key, "warning", "folder-unreadable", f"the folder is left out: {reason}", "check its permissions")

    def _forget(self, key: str) -> None:
        """A folder that is gone, with all that was known below it."""
        skill = self.state.skills.pop(key, None)
        if skill:
            self.last_good.drop(skill)
        if self.state.notes.pop(key, None) or skill:
            self._changes[key] = None
        folder = self.state.folders.pop(key, None)
        for name in folder.children if folder else ():
            self._forget(f"{key}/{name}" if key else name)

    def _forget_all(self) -> None:
        for key in (*self.state.skills, *self.state.notes):
            self._changes[key] = None
        self.state = State(ignore_stamp=self.state.ignore_stamp)
        self.last_good = LastGood()

    def _lose_root(self, error: Exception) -> None:
        self._forget_all()
        if isinstance(error, FileNotFoundError):
            self._note("", "info", "root-missing", "the folder does not exist", "create it to keep skills there")
        else:
            self._note(
                "",
                "error",
                "root-unreadable",
                "the folder cannot be opened, or is a symlink now",
                "check what lies there",
            )

    def _is_fresh(self, info: os.stat_result) -> bool:
        return info.st_ctime_ns > self._now - FRESH_NS


@contextmanager
def _opened(root: int, key: str) -> Iterator[int]:
    """The folder at a key, opened link by link from the root."""
    fd = os.dup(root)
    try:
        for part in key.split("/") if key else ():
            inner = open_folder(part, fd)
            os.close(fd)
            fd = inner
        yield fd
    finally:
        os.close(fd)


def _stamp(root: int, key: str) -> int:
    try:
        return hash(times(os.stat(key or ".", dir_fd=root, follow_symlinks=False)))
    except OSError:
        return MISSING
