"""Finding skills below a root: one scan of all folders, after which only what changed is read again.

Every folder is opened relative to the one above it and never through a link, so nothing outside the root is listed or
read, whatever another process swaps in meanwhile. A link that stays inside the root adds its target under the target's
real path; a link that leaves the root is reported and not followed.

`TreeState` is what is known of the folders, `SkillFolderReader` reads the folder of one skill, and `SkillTree` compares
the two. `files.walk` is not used here: it yields whole trees, while a scan ends at each skill and later reads only the
folders that changed.
"""

import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache

from skillshelf.files import (
    FRESH_NS,
    NotPlainFile,
    file_stamp,
    is_fresh,
    mounts_below,
    open_below,
    open_folder,
    open_plain,
    read_at,
    split_below,
    system,
)
from skillshelf.skillmd import MAX_FILE, SkillText, Unreadable, decode, read
from skillshelf.skills import Diagnostic, Found, Severity, SkillDescriptor
from skillshelf.sources._ignore import IGNORE_FILE, MISSING, IgnoreFile
from skillshelf.sources._limits import MAX_DEPTH, MAX_LINK_ROUNDS, MAX_SKILL_BYTES, MAX_SKILL_FILES
from skillshelf.sources._names import (
    REFERENCE_FOLDERS,
    SKIPPED_FOLDERS,
    SKIPPED_UNLESS_SKILL,
    explain_refused_path,
    find_named,
    is_case_file,
    judge_name,
)

SKILL_FILES = ("SKILL.md", "skill.md")
_TOO_DEEP = f"folders nested deeper than {MAX_DEPTH} are not looked at"
_TOO_DEEP_FIX = "move what is wanted further up"
_MAX_LISTED_FAULTS = 20

EVERYWHERE = "/"
"""The key of notes about the root as a whole; no folder can have it."""
# Instructions stay out of memory, except for these: they let a small shelf answer while an editor saves a file.
_MAX_HELD_CHARACTERS = 2 * 1024 * 1024
_HALF_WRITTEN = "frontmatter-unclosed"
_NOWHERE = (0, 0)

_CANNOT_OPEN = (OSError, NotPlainFile)
_GONE = (FileNotFoundError, NotADirectoryError, NotPlainFile)


# -- what is known -----------------------------------------------------------------------------------------------------


class NoteKey(str):
    """The key of a diagnostic about a place. It is not the place's own key: a place can be a skill and have a note."""

    __slots__ = ()

    def __new__(cls, place: str) -> "NoteKey":
        return super().__new__(cls, f"/{place}")

    @property
    def place(self) -> str:
        """The key of the place."""
        return self.removeprefix("/")


@dataclass(slots=True, repr=False, eq=False)
class SkillFolder:
    """A folder that is a skill."""

    found: Found
    file: str
    """The name of its SKILL.md."""
    folders: tuple[str, ...]
    """The folders below it whose times are part of the stamp."""
    stamp: int
    is_fresh: bool
    """True if it changed so recently that its stamp may miss a further change."""
    is_cached: bool = False
    """True if it comes from the scan cache and has not been read since."""
    last_good_text: str | None = None
    """The instructions of the last version that could be read; None if there was no room for them."""


@dataclass(slots=True, repr=False, eq=False)
class PlainFolder:
    """A folder on the way to skills."""

    stamp: int = MISSING
    is_fresh: bool = True
    children: set[str] = field(default_factory=set)
    """The names of the folders in it that were entered."""
    links: set[str] = field(default_factory=set)
    """The names of the symlinks in it that count."""


@dataclass(slots=True, repr=False, eq=False)
class Link:
    """A symlink in a plain folder."""

    target: tuple[int, int] | None = None
    """The device and inode it leads to; None if it has not been followed yet."""
    key: str | None = None
    """The folder inside the root that it leads to; None if it leads elsewhere."""
    is_only_way: bool = False
    """True if that folder was entered only because of this link."""


class TreeState:
    """Everything known about a root. Each change that the shelf must hear of is collected in `changes`.

    Keys are paths below the root, and the root itself has the empty key. Notes about a place have a `NoteKey`.
    """

    def __init__(self, root: str) -> None:
        self.root = root
        self.skills: dict[str, SkillFolder] = {}
        self.folders: dict[str, PlainFolder] = {}
        self.links: dict[str, Link] = {}
        self.notes: dict[NoteKey, Found] = {}
        """Diagnostics about places that are not skills."""
        self.ignore_stamp = MISSING
        self.changes: dict[str, Found | None] = {}
        """What changed since the last scan began, by key. None for a skill or note that is gone."""
        self._held_characters = 0

    @property
    def folder_count(self) -> int:
        """The number of folders that are known, whether they are skills or not."""
        return len(self.folders) + len(self.skills)

    def path(self, key: str) -> str:
        """Return the absolute path of a place."""
        if not key or key == EVERYWHERE:
            return self.root
        return f"{self.root}/{key}"

    def put_skill(self, key: str, skill: SkillFolder, text: SkillText | None, *, has_changed: bool = False) -> None:
        """Record a skill as it was just read.

        If it is broken now, its last good version stays in use. `has_changed`: report it even if it reads the same.
        """
        before = self.skills.get(key)
        if before:
            self._held_characters -= len(before.last_good_text or "")
        # If a file broke while no process was looking, there is no last good version: the cache has no instructions.
        if before and not before.is_cached and before.found.name and _is_broken(skill.found):
            skill.found = _stand_in(before.found, skill.found)
            skill.last_good_text = before.last_good_text
        elif text and self._held_characters + len(text.text) <= _MAX_HELD_CHARACTERS:
            skill.last_good_text = text.instructions

        self._held_characters += len(skill.last_good_text or "")
        self.skills[key] = skill
        if has_changed or before is None or _differ(before, skill):
            self.changes[key] = skill.found

    def add_note(self, key: str, severity: Severity, code: str, message: str, fix: str) -> None:
        """Record a diagnostic about a place. It replaces the one before."""
        note = Found(None, (Diagnostic(severity, code, message, self.path(key), fix=fix),))
        note_key = NoteKey(key)
        known = self.notes.get(note_key)
        if known is None or not known.says_the_same(note):
            self.notes[note_key] = note
            self.changes[note_key] = note

    def remove_note(self, key: str) -> None:
        """Forget the diagnostic about a place, if there is one."""
        note_key = NoteKey(key)
        if self.notes.pop(note_key, None):
            self.changes[note_key] = None

    def noted_places(self, *codes: str) -> list[str]:
        """Return the places with a diagnostic of one of these codes."""
        return [key.place for key, note in self.notes.items() if note.diagnostics[0].code in codes]

    def drop(self, key: str) -> None:
        """Forget a folder and everything at and below it."""
        if key in self.folders:
            prefix = f"{key}/" if key else ""
            for link in [link for link in self.links if link.startswith(prefix)]:
                del self.links[link]
            for note in [note for note in self.notes if note.place.startswith(prefix)]:
                self.remove_note(note.place)
        self._drop_folder(key)

    def _drop_folder(self, key: str) -> None:
        skill = self.skills.pop(key, None)
        if skill:
            self._held_characters -= len(skill.last_good_text or "")
            self.changes[key] = None
        self.remove_note(key)
        folder = self.folders.pop(key, None)
        if folder:
            for name in folder.children:
                self._drop_folder(join_key(key, name))

    def drop_all(self) -> None:
        """Forget everything except the ignore file's stamp."""
        for key in (*self.skills, *self.notes):
            self.changes[key] = None
        self.skills.clear()
        self.folders.clear()
        self.links.clear()
        self.notes.clear()
        self._held_characters = 0


def join_key(key: str, name: str) -> str:
    """Return the key of an entry in the folder at `key`."""
    return f"{key}/{name}" if key else name


def is_half_written(text: SkillText) -> bool:
    """Return True if the file ends inside its frontmatter, as it does while an editor is writing it."""
    return any(note.code == _HALF_WRITTEN for note in text.diagnostics)


def _is_broken(found: Found) -> bool:
    return not found.name or any(note.code == _HALF_WRITTEN for note in found.diagnostics)


def _stand_in(good: Found, broken: Found) -> Found:
    """Return the last good version with the faults of the broken one."""
    faults = tuple(note for note in broken.diagnostics if note.severity == "error" or note.code == _HALF_WRITTEN)
    kept = Diagnostic(
        "warning",
        "kept-last-good",
        "the file is broken; its last good version stays in use",
        faults[0].path if faults else "",
        fix="correct the file; it is read again by itself",
    )
    return good.as_last_good((*faults, kept))


def _differ(before: SkillFolder, now: SkillFolder) -> bool:
    """Return True if a skill has changed. Without digests of both versions, new times mean a new text."""
    old = before.found
    new = now.found
    if old.digest and new.digest:
        is_same_text = old.digest == new.digest
    else:
        is_same_text = before.stamp == now.stamp
    return not is_same_text or not old.says_the_same(new)


# -- links to folders --------------------------------------------------------------------------------------------------


def set_links(state: TreeState, key: str, folder: PlainFolder, names: Collection[str]) -> None:
    """Record the links that a folder has now. Folders that only a removed link led to are dropped."""
    for name in folder.links.difference(names):
        link = join_key(key, name)
        _release_target(state, link)
        del state.links[link]
    folder.links = set(names)
    for name in names:
        state.links.setdefault(join_key(key, name), Link())


def follow_links(state: TreeState, read_folder: Callable[[str], None]) -> None:
    """Check where each link leads now. `read_folder` reads the folder at a key."""
    for _ in range(MAX_LINK_ROUNDS):
        any_moved = False
        for path, link in list(state.links.items()):
            target = _target(state.path(path))
            if target != link.target and path in state.links:
                any_moved = True
                _release_target(state, path)
                _follow(state, path, link, target, read_folder)
        if not any_moved:
            return


def _follow(
    state: TreeState, path: str, link: Link, target: tuple[int, int], read_folder: Callable[[str], None]
) -> None:
    link.target = target
    link.key = None
    if target == _NOWHERE:
        state.add_note(path, "warning", "link-broken", "the symlink leads nowhere", "remove it, or restore its target")
        return
    try:
        if not os.path.isdir(state.path(path)):
            return
        real = os.path.realpath(state.path(path))
    except OSError:  # it was swapped meanwhile; the next scan follows it again
        link.target = None
        return

    if real != state.root and not real.startswith(f"{state.root}/"):
        message = "the symlink leads out of the folder and is not followed"
        fix = "copy the skill here, or open its folder as a source of its own"
        state.add_note(path, "warning", "link-outside", message, fix)
        return
    link.key = real[len(state.root) + 1 :]
    if not _is_known(state, link.key):
        read_folder(link.key)
        link.is_only_way = True


def _release_target(state: TreeState, path: str) -> None:
    """Drop the folder that only this link led to. If another link leads there as well, that one will bring it back."""
    state.remove_note(path)
    link = state.links[path]
    if not link.is_only_way or link.key is None:
        return
    link.is_only_way = False
    state.drop(link.key)
    for other in state.links.values():
        if other.key is not None and f"{other.key}/".startswith(f"{link.key}/"):
            other.target = None


def _target(path: str) -> tuple[int, int]:
    try:
        info = system.stat(path)
    except OSError:
        return _NOWHERE
    return info.st_dev, info.st_ino


def _is_known(state: TreeState, key: str) -> bool:
    """Return True if the scan has read this folder, or if it is part of a skill."""
    if key in state.folders:
        return True
    while key and key not in state.skills:
        key = key.rpartition("/")[0]
    return key in state.skills


# -- the folder of one skill -------------------------------------------------------------------------------------------


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
        descriptor = self._describe(text, location, len(data)) if text else None
        if len(self._notes) > _MAX_LISTED_FAULTS:
            self._shorten_notes()
        notes: tuple[Diagnostic, ...] = ()
        if self._notes:
            notes = tuple(note if note.path else replace(note, path=location) for note in self._notes)
        digest = _digest(data) if self._is_fresh and data else b""
        stamp = hash(tuple(self._stamps))
        found = Found(descriptor, notes, digest, 0 if self._is_fresh else stamp)
        return SkillFolder(found, file, _share(tuple(self._folders)), stamp, self._is_fresh), text

    def _begin(self, fd: int, path: str) -> None:
        self._fd = fd
        self._path = path
        self._is_fresh = False
        self._stamps: list[int] = []
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
            self._note("warning", "too-deep", _TOO_DEEP, path, _TOO_DEEP_FIX)
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
        files_before = len(files)
        rest = []
        for entry in system.scandir(fd):
            name = entry.name
            if entry.is_file(follow_symlinks=False) and judge_name(name) == "" and name not in SKILL_FILES:
                files.append(below + name)
            else:
                rest.append(entry)
        if not rest:
            return

        listing = FolderListing(rest)
        nested = listing.skill_file()
        if nested:
            del files[files_before:]
            message = "a SKILL.md inside another skill's folder is not a second skill, and its folder is not offered"
            self._note("info", "nested-skill", message, below + nested, "move its folder out to make it one")
        else:
            self._sort_names(fd, below, listing, depth, files)

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

    def _describe(self, text: SkillText, location: str, size: int) -> SkillDescriptor:
        listed = text.optional.listed_references
        more = 0
        if listed is not None:
            references = tuple(self._check_listed(listed))
        else:
            references, more = self._choose_references(text, MAX_SKILL_BYTES - size)
        return text.describe(references=references, source=self._source, location=location, more_references=more)

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

    def _choose_references(self, text: SkillText, room: int) -> tuple[tuple[str, ...], int]:
        """Return the files that can be loaded, the main ones first, and the number of the others.

        `room` is how many bytes they may have together.
        """
        main = self._references
        others: list[str] = []
        if len(self._other_files) > 1:  # more than the SKILL.md itself
            others = [path for path in self._other_files if path.lower() != "skill.md"]
            named = find_named(others, text.instructions)
            main += named
            others = [path for path in others if path not in named and not is_case_file(path)]
        main.sort()
        others.sort()

        files = (*main, *others)
        if len(files) >= MAX_SKILL_FILES or self._measure(files) > room:
            kept = self._keep_within_limits(files, text.instructions, room)
            others = [path for path in others if path in kept]
            files = tuple(path for path in files if path in kept)
        return _share(files), len(others)

    def _keep_within_limits(self, files: Sequence[str], instructions: str, room: int) -> set[str]:
        """Return the files that the limits leave, those first that the instructions name. Report the others."""
        named = find_named(files, instructions)
        kept: set[str] = set()
        for path in sorted(files, key=lambda path: path not in named):
            if len(kept) == MAX_SKILL_FILES - 1:  # with the SKILL.md
                break
            size = self._measure([path])
            if size <= room:
                room -= size
                kept.add(path)

        message = (
            f"{len(files) - len(kept):,} of its {len(files):,} files are not offered: "
            f"a skill has at most {MAX_SKILL_FILES} files and {MAX_SKILL_BYTES >> 20} MiB"
        )
        fix = "list the files to offer under `references:`, or move the others out of the folder"
        self._notes.append(Diagnostic("warning", "too-many-files", message, fix=fix))
        return kept

    def _measure(self, files: Iterable[str]) -> int:
        """Return the bytes of these files together."""
        size = 0
        with suppress(OSError):  # a file is gone again, or its folder cannot be searched
            for path in files:
                size += system.stat(path, dir_fd=self._fd, follow_symlinks=False).st_size
        return size


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


def _skill_stamp(root: int, key: str, skill: SkillFolder) -> int:
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


# -- all folders -------------------------------------------------------------------------------------------------------


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
        except _CANNOT_OPEN as error:
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
            self.state.add_note(child, "warning", "too-deep", _TOO_DEEP, _TOO_DEEP_FIX)
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
        except _CANNOT_OPEN as error:
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
        stale_folders = [
            key for key, folder in folders.items() if folder.is_fresh or _folder_stamp(root, key) != folder.stamp
        ]
        stale_skills = [
            key for key, skill in skills.items() if skill.is_fresh or _skill_stamp(root, key, skill) != skill.stamp
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
        except _CANNOT_OPEN as error:
            self._drop_unreadable(key, error)
            if key not in state.skills and parent in state.folders:
                state.folders[parent].children.discard(name)

    def _rescan_folder(self, root: int, key: str) -> None:
        """Compare a plain folder with what is known of it: read the new folders in it, drop those that are gone."""
        try:
            with open_below(root, _split(key)) as fd:
                self._compare_folder(fd, key)
        except _CANNOT_OPEN as error:
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


def _folder_stamp(root: int, key: str) -> int:
    try:
        return hash(file_stamp(system.stat(key or ".", dir_fd=root, follow_symlinks=False)))
    except OSError:
        return MISSING


def _split(key: str) -> list[str]:
    return key.split("/") if key else []
