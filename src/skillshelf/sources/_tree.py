"""Finding skills below a root: one scan of all folders, after which only what changed is read again.

Every folder is opened relative to the one above it and never through a link, so nothing outside the root is listed or
read, whatever another process swaps in meanwhile. `files.walk` is not used here: it yields whole trees, while a scan
ends at each skill and later reads only the folders that changed.
"""

import os
import time
from collections.abc import Collection, Mapping

from skillshelf.descriptor import Found
from skillshelf.files import (
    NotPlainFile,
    file_stamp,
    is_fresh,
    mounts_below,
    open_below,
    open_folder,
    split_below,
    system,
)
from skillshelf.sources._ignore import IGNORE_FILE, IgnoreFile
from skillshelf.sources._links import follow_links, set_links
from skillshelf.sources._names import SKIPPED_FOLDERS, SKIPPED_UNLESS_SKILL
from skillshelf.sources._skill_folder import (
    MAX_DEPTH,
    SKILL_FILES,
    TOO_DEEP,
    TOO_DEEP_FIX,
    FolderListing,
    SkillFolderReader,
    current_stamp,
)
from skillshelf.sources._state import EVERYWHERE, MISSING, PlainFolder, SkillFolder, TreeState, join_key

CANNOT_OPEN = (OSError, NotPlainFile)
_GONE = (FileNotFoundError, NotADirectoryError, NotPlainFile)


class SkillTree:
    """The folders and skills below a root, kept up to date."""

    def __init__(self, root: str, source: str, max_folders: int) -> None:
        self.root = root
        self.source = source
        self.max_folders = max_folders
        self.state = TreeState(root)
        self.reads = 0
        """The number of skill folders that the last scan read."""
        self._ignore = IgnoreFile(root)
        self._mounts: frozenset[str] = frozenset()
        self._device = 0
        self._now = 0
        self._reader = SkillFolderReader(source, device=0, mounts=frozenset(), now=0)

    def scan(self, changed: Collection[str] | None = None) -> Mapping[str, Found | None]:
        """Bring the state up to date and return what differs from the last scan.

        The first scan reads everything, a later one only what changed by its times. With `changed`, only these paths
        are looked at.
        """
        self._now = time.time_ns()
        self.reads = 0
        self.state.changes = {}
        try:
            root = open_folder(self.root)
        except CANNOT_OPEN as error:
            self._drop_root(error)
            return self.state.changes

        try:
            self.state.remove_note("")
            self._device = system.fstat(root).st_dev
            self._scan_open(root, changed)
        except OSError as error:  # out of descriptors, for example: what is known stays in use
            self._drop_root(error)
        finally:
            system.close(root)
        return self.state.changes

    def _scan_open(self, root: int, changed: Collection[str] | None) -> None:
        state = self.state
        is_first = state.folder_count == 0
        if changed is None or not state.folders:
            self._mounts = mounts_below(self.root)
        self._reader = SkillFolderReader(self.source, self._device, self._mounts, self._now)

        ignore_stamp = self._ignore.update(root)
        has_new_rules = ignore_stamp != state.ignore_stamp
        state.ignore_stamp = ignore_stamp
        if is_first or has_new_rules:
            self._scan_all(root)
        elif changed is None:
            self._rescan_stale(root)
            if state.noted_places("too-many-folders") and state.folder_count < self.max_folders:
                self._scan_all(root)
        else:
            for path in changed:
                self._rescan_path(root, path)
        follow_links(state, lambda key: self._rescan_skill(root, key, is_linked=True))

        if self._ignore.fault:
            message = f"the ignore file cannot be read whole: {self._ignore.fault}"
            state.add_note(IGNORE_FILE, "warning", "ignore-unreadable", message, "make it a short, plain text file")

    # -- reading folders ----------------------------------------------------------------------------------------------

    def _scan_all(self, root: int) -> None:
        self.state.drop_all()
        self._read_folder(root, system.fstat(root), "")

    def _read_folder(self, fd: int, info: os.stat_result, key: str, *, has_changed: bool = False) -> None:
        """Read an open folder: a skill, or a folder that may hold some.

        `has_changed`: a file of the skill is known to have changed, even if the skill reads the same.
        """
        state = self.state
        listing = FolderListing(system.scandir(fd))
        if state.notes:
            state.remove_note(key)

        file = listing.skill_file()
        if file:
            self.reads += 1
            skill, text = self._reader.read(fd, state.path(key), listing, info, file)
            state.put_skill(key, skill, text, has_changed=has_changed)
            if key:
                return
            # A workspace that is itself a skill may have others in its dot-folders.
            listing.folders = [name for name in listing.folders if name.startswith(".")]
        else:
            if key in state.skills:
                state.drop(key)
            self._note_wrong_case(key, listing.files)

        folder = state.folders.setdefault(key, PlainFolder())
        self._update_folder(key, folder, info, listing)
        for name in listing.folders:
            self._read_child(fd, key, name, folder)

    def _read_child(self, fd: int, key: str, name: str, folder: PlainFolder) -> None:
        """Read a folder in an open one, if no rule leaves it out."""
        child = join_key(key, name)
        if name in SKIPPED_FOLDERS and not (name in SKIPPED_UNLESS_SKILL and _holds_skill(fd, f"{name}/")):
            return
        if self._ignore.rules and self._ignore.covers(child):
            return
        if child.count("/") >= MAX_DEPTH:
            self.state.add_note(child, "warning", "too-deep", TOO_DEEP, TOO_DEEP_FIX)
            return
        if self.state.folder_count >= self.max_folders:
            message = f"only the first {self.max_folders} folders were looked at"
            fix = f"name the folders to leave out in {IGNORE_FILE}"
            self.state.add_note(EVERYWHERE, "warning", "too-many-folders", message, fix)
            return
        try:
            inner = open_folder(name, fd)
            try:
                info = system.fstat(inner)
                if (info.st_dev != self._device or self._mounts) and self._drop_if_mounted(child, info):
                    return
                folder.children.add(name)
                self._read_folder(inner, info, child)
            finally:
                system.close(inner)
        except CANNOT_OPEN as error:
            self._note_unreadable(child, error)

    def _update_folder(self, key: str, folder: PlainFolder, info: os.stat_result, listing: FolderListing) -> None:
        """Record the stamp and the links of a plain folder."""
        folder.stamp = hash(file_stamp(info))
        folder.is_fresh = is_fresh(info, self._now)
        if listing.links or folder.links:
            links = {name for name in listing.links if not self._ignore.covers(join_key(key, name))}
            set_links(self.state, key, folder, links)

    def _note_wrong_case(self, key: str, files: list[str]) -> None:
        """Tell authors that a file called `Skill.md` does not make a skill."""
        places = {join_key(key, name) for name in files if len(name) == 8 and name.lower() == "skill.md"}
        for place in self.state.noted_places("skill-file-case") if self.state.notes else ():
            if os.path.dirname(place) == key and place not in places:
                self.state.remove_note(place)
        for place in places:
            message = "only SKILL.md and skill.md make a folder a skill"
            self.state.add_note(place, "warning", "skill-file-case", message, "rename the file SKILL.md")

    # -- reading again ------------------------------------------------------------------------------------------------

    def _rescan_stale(self, root: int) -> None:
        """Read again the folders and skills whose times have changed."""
        folders = self.state.folders
        skills = self.state.skills
        stale_folders = [key for key, folder in folders.items() if folder.is_fresh or _stamp(root, key) != folder.stamp]
        stale_skills = [
            key for key, skill in skills.items() if skill.is_fresh or current_stamp(root, key, skill) != skill.stamp
        ]
        for key in stale_folders:
            if key in folders:
                self._rescan_folder(root, key)
        for key in stale_skills:
            if key in skills:  # and not part of a new skill above it
                self._rescan_skill(root, key)
        for key in self.state.noted_places("folder-unreadable", "other-mount"):
            self._rescan_skill(root, key)

    def _rescan_path(self, root: int, path: str) -> None:
        """Read again the skill or folder that a changed path belongs to."""
        parts = split_below(self.root, path)
        if parts is None:
            return
        state = self.state
        key = ""
        for depth in range(len(parts) + 1):
            key = "/".join(parts[:depth])
            if key in state.skills:
                in_skill = "/".join(parts[depth:])
                self._rescan_skill(root, key, has_changed=_is_reference(state.skills[key], in_skill))
                return
            if key not in state.folders:
                break

        parent = "/".join(parts[:-1])
        if parts and parts[-1] in SKILL_FILES and parent in state.folders:
            self._rescan_folder(root, parent)
        elif key in state.folders:
            self._rescan_folder(root, key)
        else:
            self._rescan_skill(root, key)

    def _rescan_skill(self, root: int, key: str, *, has_changed: bool = False, is_linked: bool = False) -> None:
        """Read a folder as if for the first time: a skill that changed, a new folder, or one that is gone.

        `is_linked`: a link leads to it, so that it counts even if the scan would not enter it.
        """
        state = self.state
        parent, _, name = key.rpartition("/")
        try:
            with open_below(root, _split(key)) as fd:
                if key not in state.skills and not is_linked and self._is_left_out(fd, key, name):
                    return
                info = system.fstat(fd)
                if self._drop_if_mounted(key, info):
                    return
                if key and parent in state.folders:
                    state.folders[parent].children.add(name)
                self._read_folder(fd, info, key, has_changed=has_changed)
        except CANNOT_OPEN as error:
            self._drop_unreadable(key, error)
            if key not in state.skills and parent in state.folders:
                state.folders[parent].children.discard(name)

    def _rescan_folder(self, root: int, key: str) -> None:
        """Compare a plain folder with what is known of it: read the new folders in it, drop those that are gone."""
        try:
            with open_below(root, _split(key)) as fd:
                self._compare_folder(fd, key)
        except CANNOT_OPEN as error:
            self._drop_unreadable(key, error)

    def _compare_folder(self, fd: int, key: str) -> None:
        state = self.state
        info = system.fstat(fd)
        listing = FolderListing(system.scandir(fd))
        if self._drop_if_mounted(key, info):
            return
        is_skill = key in state.skills
        if listing.skill_file() and not is_skill:
            state.drop(key)
            self._read_folder(fd, info, key)
            return

        folder = state.folders[key]
        for name in folder.children.difference(listing.folders):
            state.drop(join_key(key, name))
            folder.children.discard(name)
        self._update_folder(key, folder, info, listing)
        if not is_skill:
            self._note_wrong_case(key, listing.files)
        for name in listing.folders:
            if name not in folder.children and (not is_skill or name.startswith(".")):
                self._read_child(fd, key, name, folder)

    def _is_left_out(self, fd: int, key: str, name: str) -> bool:
        if name in SKIPPED_FOLDERS and not (name in SKIPPED_UNLESS_SKILL and _holds_skill(fd, "")):
            return True
        return self._ignore.covers(key)

    # -- dropping -----------------------------------------------------------------------------------------------------

    def _drop_if_mounted(self, key: str, info: os.stat_result) -> bool:
        """Drop a folder if it is on another mount, and return True if so."""
        if info.st_dev == self._device and not (self._mounts and self.state.path(key) in self._mounts):
            return False
        self.state.drop(key)
        message = "the folder is on another mount and is not entered"
        self.state.add_note(key, "warning", "other-mount", message, "open it as a source of its own")
        return True

    def _drop_unreadable(self, key: str, error: Exception) -> None:
        """Drop a known folder that is gone or forbidden. After any other fault, it is tried again."""
        if isinstance(error, _GONE):
            self.state.drop(key)
        elif isinstance(error, PermissionError):
            self.state.drop(key)
            self._note_unreadable(key, error)
        elif key in self.state.folders:
            self.state.folders[key].is_fresh = True

    def _drop_root(self, error: Exception) -> None:
        if isinstance(error, FileNotFoundError):
            self.state.drop_all()
            message = "the folder does not exist"
            self.state.add_note("", "info", "root-missing", message, "create it to keep skills there")
            return
        if isinstance(error, (*_GONE, PermissionError)):
            self.state.drop_all()
        message = "the folder cannot be opened, or is a symlink now"
        self.state.add_note("", "error", "root-unreadable", message, "check what lies there")

    def _note_unreadable(self, key: str, error: Exception) -> None:
        reason = str(error)
        if isinstance(error, OSError):
            reason = error.strerror or "it cannot be opened"
        message = f"the folder is left out: {reason}"
        self.state.add_note(key, "warning", "folder-unreadable", message, "check its permissions")


def _is_reference(skill: SkillFolder, path: str) -> bool:
    """Return True for a reference, or a folder of some: their text can change while the skill reads the same."""
    descriptor = skill.found.descriptor
    if not path or not descriptor:
        return False
    return any(reference == path or reference.startswith(f"{path}/") for reference in descriptor.references)


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


def _split(key: str) -> list[str]:
    return key.split("/") if key else []
