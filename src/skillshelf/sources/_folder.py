"""One skill's folder, read through an open descriptor: its SKILL.md, its references, the stamp that tells a change."""

import os
import re
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache

from skillshelf.descriptor import Diagnostic, Severity, SkillDescriptor
from skillshelf.files import FRESH_NS, NotPlainFile, file_stamp, open_below, open_folder, open_plain, read_at, system
from skillshelf.found import Found
from skillshelf.skillmd import MAX_FILE, SkillText, Unreadable, decode, read
from skillshelf.sources._names import REFERENCE_FOLDERS, SKIPPED_FOLDERS, path_refusal, verdict
from skillshelf.sources._state import MISSING, Skill

SKILL_FILES = ("SKILL.md", "skill.md")
MAX_DEPTH = 32
TOO_DEEP = f"folders nested deeper than {MAX_DEPTH} are not looked at"
TOO_DEEP_FIX = "move what is wanted further up"
_NAMED_FILE = re.compile(r"(?<![^\s`'\"()<>\[\]{}|*])[^\s`'\"()<>\[\]{}|*]+\.\w+")
_SHOWN_FAULTS = 20


class Entries:
    """A folder's names by kind."""

    __slots__ = ("files", "folders", "links", "others")

    def __init__(self, entries: Iterable[os.DirEntry[str]]) -> None:
        """`entries`: as `os.scandir` gives them, which closes itself when it is exhausted."""
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
        """The name that makes this folder a skill, whatever kind of file it is; empty where none does."""
        if "SKILL.md" in self.files:
            return "SKILL.md"
        if not (self.folders or self.links or self.others):
            return "skill.md" if "skill.md" in self.files else ""
        for name in SKILL_FILES:
            if name in self.files or name in self.links or name in self.others or name in self.folders:
                return name
        return ""


class FolderReader:
    """Reads skills' folders, one after the other: one reader for ten thousand of them, because making it takes time."""

    __slots__ = (
        "device",
        "fd",
        "folders",
        "fresh",
        "horizon",
        "mounts",
        "notes",
        "others",
        "path",
        "references",
        "source",
        "stamps",
    )

    def __init__(self, source: str, device: int, mounts: frozenset[str], now: int) -> None:
        self.source, self.device, self.mounts, self.horizon = source, device, mounts, now - FRESH_NS
        self.begin(-1, "")

    def begin(self, fd: int, path: str) -> None:
        """Nothing of the folder before is left."""
        self.fd, self.path, self.fresh = fd, path, False
        self.stamps: tuple[int, ...] = ()
        self.notes: list[Diagnostic] = []
        self.folders: list[str] = []
        self.references: list[str] = []
        self.others: list[str] = []

    def read(
        self, fd: int, path: str, entries: Entries, info: os.stat_result, file: str
    ) -> tuple[Skill, SkillText | None]:
        self.begin(fd, path)
        self.add_times(info)
        location = f"{self.path}/{file}"
        data, text = self.read_file(file)
        self.walk(self.fd, "", entries, 1, self.others)
        if len(entries.files) > 1:
            self.twins(entries.files)
        descriptor = self.describe(text, location) if text else None
        if len(self.notes) > _SHOWN_FAULTS:
            self.shorten_notes()
        digest = _digest(data) if self.fresh and data else b""
        notes = [note if note.path else replace(note, path=location) for note in self.notes] if self.notes else ()
        folders = _shared(tuple(self.folders))
        return Skill(Found(descriptor, tuple(notes), digest), file, folders, hash(self.stamps), self.fresh), text

    def read_file(self, file: str) -> tuple[bytes, SkillText | None]:
        """The file's bytes and what they say; no text where they say nothing."""
        data = b""
        try:
            fd, info = open_plain(file, self.fd, self.device)
            try:
                data = read_at(fd, 0, MAX_FILE + 1, info.st_size)
            finally:
                system.close(fd)
            self.add_times(info)
            if info.st_nlink > 1:
                self.note("info", "hard-link", "the file has other hard links: it can change from elsewhere", file)
            text = read(decode(data), self.path)
            self.notes += text.diagnostics
            return data, text
        except Unreadable as fault:
            self.notes.append(fault.diagnostic)
            return data, None
        except NotPlainFile as fault:
            reason, fix = fault.reason, "put a plain file there"
        except OSError as error:
            self.fresh = True  # to be tried again: the fault may pass without a trace in the file's times
            reason, fix = error.strerror or "it cannot be opened", "check its permissions"
        self.note("error", "skill-file-unreadable", f"{file} is not read: {reason}", file, fix)
        with suppress(OSError):
            self.add_times(system.stat(file, dir_fd=self.fd, follow_symlinks=False))
        return data, None

    def add_times(self, info: os.stat_result) -> None:
        changed = info.st_ctime_ns
        self.stamps += (info.st_ino, info.st_size, info.st_mtime_ns, changed)
        # Nobody can set this time back, as they can the other.
        if changed > self.horizon:
            self.fresh = True

    def note(self, severity: Severity, code: str, message: str, name: str, fix: str = "") -> None:
        self.notes.append(Diagnostic(severity, code, message, f"{self.path}/{name}", fix=fix))

    def walk(self, fd: int, below: str, entries: Entries, depth: int, target: list[str]) -> None:
        """The files below the skill's folder: its references, and what else lies there."""
        for name in entries.files:
            reason = verdict(name)
            if reason == "":
                target.append(below + name)
            elif reason:
                self.note(
                    "warning", "filename-refused", f"the file is not offered: {reason}", below + name, "rename it"
                )
        if below and (nested := entries.skill_file()):
            self.note(
                "info",
                "nested-skill",
                "a SKILL.md inside another skill's folder is not a second skill",
                below + nested,
                "move its folder out to make it one",
            )
        for name in entries.links + entries.others if entries.links or entries.others else ():
            if (below or name not in SKILL_FILES) and verdict(name) is not None:
                self.note(
                    "warning",
                    "reference-refused",
                    "a symlink or special file is not offered",
                    below + name,
                    "put a copy of the file there",
                )
        for name in entries.folders:
            if name in REFERENCE_FOLDERS and not below:
                self.enter(fd, name, name, depth, self.references)
                continue
            reason = None if name in SKIPPED_FOLDERS else verdict(name)
            if reason == "":
                self.enter(fd, below + name, name, depth, target)
            elif reason:
                self.note(
                    "warning", "filename-refused", f"the folder is not offered: {reason}", below + name, "rename it"
                )

    def enter(self, fd: int, key: str, name: str, depth: int, target: list[str]) -> None:
        if depth >= MAX_DEPTH:
            self.note("warning", "too-deep", TOO_DEEP, key, TOO_DEEP_FIX)
            return
        try:
            inner = open_folder(name, fd)
            try:
                info = system.fstat(inner)
                if info.st_dev == self.device and not (self.mounts and f"{self.path}/{key}" in self.mounts):
                    self.add_times(info)
                    self.folders.append(key)
                    self.list_inner(inner, f"{key}/", depth + 1, target)
                else:
                    message = "the folder lies on another mount and is not entered"
                    self.note("warning", "other-mount", message, key, "put a copy of the files there")
            finally:
                system.close(inner)
        except (OSError, NotPlainFile) as error:
            self.fresh = True  # to be tried again: nothing else may tell that it can be opened
            reason = (error.strerror or "it cannot be opened") if isinstance(error, OSError) else str(error)
            self.note("warning", "folder-unreadable", f"the folder is left out: {reason}", key, "check its permissions")

    def list_inner(self, fd: int, below: str, depth: int, target: list[str]) -> None:
        """Files that are offered, as most are, are taken at sight; `walk` sorts out the rest."""
        rest = []
        for entry in system.scandir(fd):
            name = entry.name
            if entry.is_file(follow_symlinks=False) and verdict(name) == "" and name not in SKILL_FILES:
                target.append(below + name)
            else:
                rest.append(entry)
        if rest:
            self.walk(fd, below, Entries(rest), depth, target)

    def twins(self, files: list[str]) -> None:
        for name in files:
            if name != "SKILL.md" and name.lower() == "skill.md" and ("SKILL.md" in files or name != "skill.md"):
                self.note("info", "skill-file-twin", "only SKILL.md is read here", name, "remove one of the two")

    def describe(self, text: SkillText, location: str) -> SkillDescriptor:
        listed = text.optional.listed
        if listed is not None:
            references = self.listed(listed)
        else:
            if len(self.others) > 1:  # more than the SKILL.md itself
                self.references += self.named(text.instructions)
            self.references.sort()
            references = _shared(tuple(self.references))
        return text.describe(references=references, source=self.source, location=location)

    def listed(self, paths: tuple[str, ...]) -> tuple[str, ...]:
        """The author's own list, less what can never be a file of this folder."""
        kept = []
        for path in paths:
            if reason := path_refusal(path):
                self.notes.append(
                    Diagnostic(
                        "error",
                        "reference-refused",
                        f"the listed reference {path[:100]!r} is refused: {reason}",
                        fix="list files of the skill's own folder",
                    )
                )
            else:
                kept.append(path)
        return tuple(kept)

    def named(self, instructions: str) -> list[str]:
        """Files outside the reference folders that the instructions link to or name."""
        from urllib.parse import unquote

        named = set()
        for word in _NAMED_FILE.findall(instructions):
            path = unquote(word.split("#", 1)[0]).removeprefix("./").lstrip("/")
            named.add(path.rstrip(".,;:!"))
        return [path for path in self.others if path in named and path not in SKILL_FILES]

    def shorten_notes(self) -> None:
        """A folder of ten thousand faulty names says so once."""
        left = len(self.notes) - _SHOWN_FAULTS
        self.notes.sort(key=lambda note: ("error", "warning", "info").index(note.severity))
        del self.notes[_SHOWN_FAULTS:]
        self.note("warning", "more-faults", f"{left} more faults in this folder are not listed", "", "mend these first")


@lru_cache(4096)
def _shared(names: tuple[str, ...]) -> tuple[str, ...]:
    """Skills of one collection mostly have the same few file names: held once."""
    return names


def read_skill_folder(folder: str, path: str, source: str) -> Found:
    """Read a folder as a skill that its users find at `path`. Raises OSError or NotPlainFile if it cannot be opened."""
    with open_below(folder, ()) as fd:
        entries = Entries(system.scandir(fd))
        file = entries.skill_file()
        if not file:
            return Found(None)
        info = system.fstat(fd)
        reader = FolderReader(source, info.st_dev, frozenset(), time.time_ns())
        skill, _ = reader.read(fd, path, entries, info, file)
        return skill.found


def stamp_of(root: int, key: str, skill: Skill) -> int:
    """The stamp the folder has now; MISSING when something it was made of is gone."""
    stat, prefix = system.stat, f"{key}/" if key else ""
    try:
        stamps = file_stamp(stat(key or ".", dir_fd=root, follow_symlinks=False))
        stamps += file_stamp(stat(prefix + skill.file, dir_fd=root, follow_symlinks=False))
        for folder in skill.folders:
            stamps += file_stamp(stat(prefix + folder, dir_fd=root, follow_symlinks=False))
    except OSError:
        return MISSING
    return hash(stamps)


def _digest(data: bytes) -> bytes:
    import hashlib  # only a file that was just written needs it

    return hashlib.sha256(data).digest()
