"""What a directory source knows about the folders below its root, and what changed since the last scan."""

from dataclasses import dataclass, field

from skillshelf.descriptor import Diagnostic, Found, Severity
from skillshelf.skillmd import SkillText

MISSING = -1
"""The stamp of something that does not exist; no hash is -1."""
EVERYWHERE = "/"
"""The key of notes about the root as a whole; no folder can have it."""
# Instructions stay out of memory, except for these: they let a small shelf answer while an editor saves a file.
_MAX_HELD_CHARACTERS = 2 * 1024 * 1024
_HALF_WRITTEN = "frontmatter-unclosed"


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
