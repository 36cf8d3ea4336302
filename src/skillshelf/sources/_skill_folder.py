"""Reading the folder of one skill through an open descriptor: its SKILL.md, its references, and its stamp."""

import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache

from skillshelf.descriptor import Diagnostic, Found, Severity, SkillDescriptor
from skillshelf.files import (
    FRESH_NS,
    NotPlainFile,
    file_stamp,
    open_below,
    open_folder,
    open_plain,
    read_at,
    system,
)
from skillshelf.skillmd import MAX_FILE, SkillText, Unreadable, decode, read
from skillshelf.sources._names import REFERENCE_FOLDERS, SKIPPED_FOLDERS, explain_refused_path, judge_name
from skillshelf.sources._state import MISSING, SkillFolder

SKILL_FILES = ("SKILL.md", "skill.md")
MAX_DEPTH = 32
TOO_DEEP = f"folders nested deeper than {MAX_DEPTH} are not looked at"
TOO_DEEP_FIX = "move what is wanted further up"
_MAX_LISTED_FAULTS = 20
_FILE_IN_TEXT = re.compile(r"(?<![^\s`'\"()<>\[\]{}|*])[^\s`'\"()<>\[\]{}|*]+\.\w+")


class FolderListing:
    """The names in a folder, by kind."""

    __slots__ = ("files", "folders", "links", "others")

    def __init__(self, entries: Iterable["os.DirEntry[str]"]) -> None:
        """Take entries from `os.scandir`, which closes itself when it is exhausted."""
        self.files: list[str] = []
        self.folders: list[str] = []
        self.links: list[str] = []
        self.others: list[str] = []
        files = self.files
        for entry in entries:
            if entry.is_file(follow_symlinks=False):
                files.append(entry.name)
            elif entry.is_dir(follow_symlinks=False):
                self.folders.append(entry.name)
            elif entry.is_symlink():
                self.links.append(entry.name)
            else:
                self.others.append(entry.name)

    def skill_file(self) -> str:
        """Return the name that makes this folder a skill, whatever kind of file has it; empty if there is none."""
        if "SKILL.md" in self.files:  # nearly always
            return "SKILL.md"
        for name in SKILL_FILES:
            if name in self.files or name in self.links or name in self.others or name in self.folders:
                return name
        return ""


class SkillFolderReader:
    """Reads the folders of skills, one after the other.

    A scan uses one reader for all its skills, because to make ten thousand of them takes time. `_begin` resets it.
    """

    __slots__ = (
        "_device",
        "_fd",
        "_folders",
        "_horizon",
        "_is_fresh",
        "_mounts",
        "_notes",
        "_other_files",
        "_path",
        "_references",
        "_source",
        "_stamps",
    )

    def __init__(self, source: str, device: int, mounts: frozenset[str], now: int) -> None:
        self._source = source
        self._device = device
        self._mounts = mounts
        self._horizon = now - FRESH_NS
        self._begin(-1, "")

    def read(
        self, fd: int, path: str, listing: FolderListing, info: os.stat_result, file: str
    ) -> tuple[SkillFolder, SkillText | None]:
        """Read the open folder `fd`, which its users find at `path`. Return no text if the file cannot be read."""
        self._begin(fd, path)
        self._add_stamp(info)
        data, text = self._read_skill_file(file)
        self._sort_names(fd, "", listing, 1, self._other_files)
        if len(listing.files) > 1:
            self._note_twins(listing.files)

        location = f"{path}/{file}"
        descriptor = self._describe(text, location) if text else None
        if len(self._notes) > _MAX_LISTED_FAULTS:
            self._shorten_notes()
        notes: tuple[Diagnostic, ...] = ()
        if self._notes:
            notes = tuple(note if note.path else replace(note, path=location) for note in self._notes)
        digest = _digest(data) if self._is_fresh and data else b""
        stamp = hash(self._stamps)
        found = Found(descriptor, notes, digest, 0 if self._is_fresh else stamp)
        return SkillFolder(found, file, _share(tuple(self._folders)), stamp, self._is_fresh), text

    def _begin(self, fd: int, path: str) -> None:
        self._fd = fd
        self._path = path
        self._is_fresh = False
        self._stamps: tuple[int, ...] = ()
        self._notes: list[Diagnostic] = []
        self._folders: list[str] = []
        self._references: list[str] = []
        self._other_files: list[str] = []

    def _read_skill_file(self, file: str) -> tuple[bytes, SkillText | None]:
        data = b""
        try:
            fd, info = open_plain(file, self._fd, self._device)
            try:
                data = read_at(fd, 0, MAX_FILE + 1, info.st_size)
            finally:
                system.close(fd)
            self._add_stamp(info)
            if info.st_nlink > 1:
                self._note("info", "hard-link", "the file has other hard links: it can change from elsewhere", file)
            text = read(decode(data), self._path)
            self._notes += text.diagnostics
            return data, text
        except Unreadable as fault:
            self._notes.append(fault.diagnostic)
            return data, None
        except NotPlainFile as fault:
            reason = fault.reason
            fix = "put a plain file there"
        except OSError as error:
            self._is_fresh = True  # try again: the fault may pass without changing the file's times
            reason = error.strerror or "it cannot be opened"
            fix = "check its permissions"

        self._note("error", "skill-file-unreadable", f"{file} is not read: {reason}", file, fix)
        with suppress(OSError):
            self._add_stamp(system.stat(file, dir_fd=self._fd, follow_symlinks=False))
        return data, None

    def _add_stamp(self, info: os.stat_result) -> None:
        self._stamps += file_stamp(info)
        # As `is_fresh`, but with the horizon worked out once for the whole scan.
        if info.st_ctime_ns > self._horizon:
            self._is_fresh = True

    def _note(self, severity: Severity, code: str, message: str, name: str, fix: str = "") -> None:
        self._notes.append(Diagnostic(severity, code, message, f"{self._path}/{name}", fix=fix))

    # -- the files beside the SKILL.md --------------------------------------------------------------------------------

    def _sort_names(self, fd: int, below: str, listing: FolderListing, depth: int, files: list[str]) -> None:
        """Add the files of an open folder that can be loaded to `files`, enter its folders, and note the rest."""
        for name in listing.files:
            refusal = judge_name(name)
            if refusal == "":
                files.append(below + name)
            elif refusal:
                message = f"the file is not offered: {refusal}"
                self._note("warning", "filename-refused", message, below + name, "rename it")
        if below:
            self._note_nested_skill(below, listing)
        for name in listing.links + listing.others:
            is_skill_file = not below and name in SKILL_FILES
            if not is_skill_file and judge_name(name) is not None:
                message = "a symlink or special file is not offered"
                self._note("warning", "reference-refused", message, below + name, "put a copy of the file there")
        for name in listing.folders:
            if not below and name in REFERENCE_FOLDERS:
                self._enter(fd, name, name, depth, self._references)
                continue
            if name in SKIPPED_FOLDERS:
                continue
            refusal = judge_name(name)
            if refusal == "":
                self._enter(fd, below + name, name, depth, files)
            elif refusal:
                message = f"the folder is not offered: {refusal}"
                self._note("warning", "filename-refused", message, below + name, "rename it")

    def _enter(self, fd: int, path: str, name: str, depth: int, files: list[str]) -> None:
        if depth >= MAX_DEPTH:
            self._note("warning", "too-deep", TOO_DEEP, path, TOO_DEEP_FIX)
            return
        try:
            inner = open_folder(name, fd)
            try:
                info = system.fstat(inner)
                if info.st_dev == self._device and not (self._mounts and f"{self._path}/{path}" in self._mounts):
                    self._add_stamp(info)
                    self._folders.append(path)
                    self._list_inner(inner, f"{path}/", depth + 1, files)
                else:
                    message = "the folder is on another mount and is not entered"
                    self._note("warning", "other-mount", message, path, "put a copy of the files there")
            finally:
                system.close(inner)
        except (OSError, NotPlainFile) as error:
            self._is_fresh = True  # try again: nothing else may show that it can be opened now
            reason = str(error)
            if isinstance(error, OSError):
                reason = error.strerror or "it cannot be opened"
            message = f"the folder is left out: {reason}"
            self._note("warning", "folder-unreadable", message, path, "check its permissions")

    def _list_inner(self, fd: int, below: str, depth: int, files: list[str]) -> None:
        """Fast path: most entries are files that can be loaded; `_sort_names` handles the rest."""
        rest = []
        for entry in system.scandir(fd):
            name = entry.name
            if entry.is_file(follow_symlinks=False) and judge_name(name) == "" and name not in SKILL_FILES:
                files.append(below + name)
            else:
                rest.append(entry)
        if rest:
            self._sort_names(fd, below, FolderListing(rest), depth, files)

    def _note_nested_skill(self, below: str, listing: FolderListing) -> None:
        nested = listing.skill_file()
        if nested:
            message = "a SKILL.md inside another skill's folder is not a second skill"
            self._note("info", "nested-skill", message, below + nested, "move its folder out to make it one")

    def _note_twins(self, files: list[str]) -> None:
        for name in files:
            is_twin = name != "SKILL.md" and name.lower() == "skill.md"
            if is_twin and ("SKILL.md" in files or name != "skill.md"):
                self._note("info", "skill-file-twin", "only SKILL.md is read here", name, "remove one of the two")

    def _shorten_notes(self) -> None:
        """Keep the worst faults: a folder of ten thousand bad names should say so once."""
        left = len(self._notes) - _MAX_LISTED_FAULTS
        self._notes.sort(key=lambda note: ("error", "warning", "info").index(note.severity))
        del self._notes[_MAX_LISTED_FAULTS:]
        message = f"{left} more faults in this folder are not listed"
        self._note("warning", "more-faults", message, "", "correct these first")

    # -- the descriptor -----------------------------------------------------------------------------------------------

    def _describe(self, text: SkillText, location: str) -> SkillDescriptor:
        listed = text.optional.listed_references
        if listed is not None:
            references = tuple(self._check_listed(listed))
        else:
            if len(self._other_files) > 1:  # more than the SKILL.md itself
                self._references += self._files_named_in(text.instructions)
            self._references.sort()
            references = _share(tuple(self._references))
        return text.describe(references=references, source=self._source, location=location)

    def _check_listed(self, paths: Iterable[str]) -> Iterator[str]:
        """Yield the references that the author lists, except for paths that can never be a file of this folder."""
        for path in paths:
            refusal = explain_refused_path(path)
            if not refusal:
                yield path
                continue
            message = f"the listed reference {path[:100]!r} is refused: {refusal}"
            fix = "list files of the skill's own folder"
            self._notes.append(Diagnostic("error", "reference-refused", message, fix=fix))

    def _files_named_in(self, instructions: str) -> list[str]:
        """Return the files outside the reference folders that the instructions name or link to."""
        from urllib.parse import unquote  # only skills with such files need it

        named = set()
        for word in _FILE_IN_TEXT.findall(instructions):
            path = unquote(word.split("#", 1)[0]).removeprefix("./").lstrip("/")
            named.add(path.rstrip(".,;:!"))
        return [path for path in self._other_files if path in named and path not in SKILL_FILES]


def read_skill_folder(folder: str, path: str, source: str) -> Found:
    """Read a folder as a skill that its users find at `path`. Raises OSError or NotPlainFile if it cannot be opened."""
    with open_below(folder, ()) as fd:
        listing = FolderListing(system.scandir(fd))
        file = listing.skill_file()
        if not file:
            return Found(None)
        info = system.fstat(fd)
        reader = SkillFolderReader(source, info.st_dev, frozenset(), time.time_ns())
        skill, _ = reader.read(fd, path, listing, info, file)
        return skill.found


def current_stamp(root: int, key: str, skill: SkillFolder) -> int:
    """Return the stamp that a skill's folder has now; MISSING if a part of it is gone."""
    prefix = f"{key}/" if key else ""
    try:
        stamps = file_stamp(system.stat(key or ".", dir_fd=root, follow_symlinks=False))
        stamps += file_stamp(system.stat(prefix + skill.file, dir_fd=root, follow_symlinks=False))
        for folder in skill.folders:
            stamps += file_stamp(system.stat(prefix + folder, dir_fd=root, follow_symlinks=False))
    except OSError:
        return MISSING
    return hash(stamps)


@lru_cache(4096)
def _share(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return one tuple for equal tuples: the skills of a collection mostly have the same few file names."""
    return names


def _digest(data: bytes) -> bytes:
    import hashlib  # only a file that was just written needs it

    return hashlib.sha256(data).digest()
