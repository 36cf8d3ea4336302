"""The scan cache: the state of a directory source after its last scan, so that the next start only has to stat.

There is one file for each root, outside the workspace, replaced atomically. It is trusted no further than its checksum
and the stamps in it: a damaged file is set aside, one of a newer version is left alone, and whatever changed on disk
since is read again. Losing the file costs time, nothing else.
"""

import hashlib
import json
import os
import zlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import astuple
from typing import Any

from skillshelf._version import __version__
from skillshelf.errors import InvalidSkillError
from skillshelf.files import (
    NotPlainFile,
    NotPrivate,
    make_private_folders,
    read_private,
    replace_file,
    system,
)
from skillshelf.skills import Diagnostic, Found, ReadOnlyDict, SkillDescriptor
from skillshelf.sources._tree import Link, NoteKey, PlainFolder, SkillFolder, TreeState

VERSION = 4
_READ_AGAIN = 0
"""A stamp that no file has, so that it is read again at the next start."""
_FIELDS = tuple(SkillDescriptor.__dataclass_fields__)
_SHARED_FIELDS = _FIELDS[_FIELDS.index("license") :]
"""The fields of a descriptor that the skills of one collection mostly have in common: the last ones."""


def load_state(caches: str, root: str, source: str, max_folders: int) -> TreeState | None:
    """Return the saved state of a root, if this version of the library saved it with the same limit."""
    path = _path(caches, root)
    try:
        header, _, payload = read_private(path).partition(b"\n")
    except (OSError, NotPlainFile, NotPrivate):
        return None

    try:
        version, _, checksum = header.partition(b" ")  # the header of a newer version may have more in it
        if int(version) > VERSION:
            return None
        if int(version) == VERSION and int(checksum) == zlib.crc32(payload):
            plain = json.loads(payload)
            if plain["made_by"] != [__version__, max_folders]:
                return None
            return _restore(plain, root, source)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError, InvalidSkillError):
        pass

    # Set aside rather than deleted, so that the user can find out what happened to it.
    with suppress(OSError):
        system.replace(path, f"{path}.bad")
    return None


def save_state(caches: str, state: TreeState, max_folders: int) -> Diagnostic | None:
    """Save the state of a root. Return a note if that was not possible."""
    path = _path(caches, state.root)
    plain = {"made_by": [__version__, max_folders], **_plain(state)}
    payload = json.dumps(plain, separators=(",", ":")).encode()
    try:
        make_private_folders(os.path.dirname(path))
        if not _is_newer(path):
            replace_file(path, b"%d %d\n" % (VERSION, zlib.crc32(payload)) + payload)
    except NotPrivate as error:
        return _unusable(str(error), f"run `chmod go-w {error.path}`, or delete it")
    except OSError as error:
        return _unusable(f"it cannot be written: {error.strerror}", "set XDG_CACHE_HOME to a folder you can write to")
    return None


def _unusable(reason: str, fix: str) -> Diagnostic:
    return Diagnostic("info", "index-unwritable", f"the scan cache is not used: {reason}", fix=fix)


def _path(caches: str, root: str) -> str:
    name = hashlib.sha256(os.fsencode(root)).hexdigest()[:32]
    return os.path.join(caches, f"{name}.json")


def _is_newer(path: str) -> bool:
    """Return True if a newer version of the library wrote the file. Raises NotPrivate."""
    try:
        header = read_private(path, limit=64).partition(b"\n")[0]
        return int(header.split()[0]) > VERSION
    except (OSError, NotPlainFile, ValueError, IndexError):
        return False


# -- writing ----------------------------------------------------------------------------------------------------------


class _InternedValues:
    """Values that many skills have in common, written once and referred to by number."""

    def __init__(self) -> None:
        self.rows: list[Sequence[Any]] = []
        self._numbers: dict[str, int] = {}

    def number(self, row: Sequence[Any]) -> int:
        number = self._numbers.setdefault(repr(row), len(self.rows))
        if number == len(self.rows):
            self.rows.append(row)
        return number


def _plain(state: TreeState) -> dict[str, Any]:
    paths = _InternedValues()
    fields = _InternedValues()
    skills = [_skill_row(key, skill, paths, fields) for key, skill in state.skills.items()]
    return {
        "skills": skills,
        "paths": paths.rows,
        "fields": fields.rows,
        "folders": [[key, _READ_AGAIN if folder.is_fresh else folder.stamp] for key, folder in state.folders.items()],
        "links": [[key, link.target, link.key, link.is_only_way] for key, link in state.links.items()],
        "notes": [[key.place, _note_rows(note.diagnostics)] for key, note in state.notes.items()],
        "ignore": state.ignore_stamp,
    }


def _skill_row(key: str, skill: SkillFolder, paths: _InternedValues, fields: _InternedValues) -> list[Any]:
    found = skill.found
    stamp = _READ_AGAIN if skill.is_fresh or found.is_last_good else skill.stamp
    row: list[Any] = [key, skill.file, stamp, paths.number(skill.folders), _note_rows(found.diagnostics)]
    card = found.descriptor
    if card:
        shared = [getattr(card, name) for name in _SHARED_FIELDS]
        row += card.name, card.description, paths.number(card.references), card.size, fields.number(shared)
    return row


def _note_rows(notes: Iterable[Diagnostic]) -> list[list[Any]] | int:
    return [list(astuple(note)) for note in notes] or 0


# -- reading ----------------------------------------------------------------------------------------------------------


def _restore(plain: dict[str, Any], root: str, source: str) -> TreeState:
    state = TreeState(root)
    state.ignore_stamp = plain["ignore"]
    _restore_skills(state, plain, source)
    for key, stamp in plain["folders"]:
        state.folders[key] = PlainFolder(stamp, is_fresh=False)
    for key in (*state.skills, *state.folders):
        parent, _, child = key.rpartition("/")
        if key and parent in state.folders:
            state.folders[parent].children.add(child)
    for key, target, linked_key, is_only_way in plain["links"]:
        state.links[key] = Link(tuple(target) if target else None, linked_key, is_only_way)
        parent, _, name = key.rpartition("/")
        state.folders[parent].links.add(name)
    for key, notes in plain["notes"]:
        state.notes[NoteKey(key)] = Found(None, _notes(notes))
    return state


def _restore_skills(state: TreeState, plain: dict[str, Any], source: str) -> None:
    paths = [tuple(row) for row in plain["paths"]]
    fields = [_shared_fields(row) for row in plain["fields"]]
    for key, file, stamp, folders, notes, *card in plain["skills"]:
        descriptor = None
        if card:
            name, description, references, size, shared = card
            location = f"{state.root}/{key}/{file}" if key else f"{state.root}/{file}"
            # By position: with keywords, it takes 4 µs instead of 2.
            descriptor = SkillDescriptor(
                name, description, "standard", (), paths[references], source, location, size, *fields[shared]
            )
        found = Found(descriptor, _notes(notes) if notes else (), b"", stamp)
        state.skills[key] = SkillFolder(found, file, paths[folders], stamp, False, True)


def _shared_fields(row: list[Any]) -> tuple[Any, ...]:
    """Return the shared fields of a descriptor in their order: JSON has lists and dicts."""
    if len(row) != len(_SHARED_FIELDS):
        raise ValueError("a row has other fields than a descriptor")
    for name in ("metadata", "fields"):
        if not isinstance(row[_SHARED_FIELDS.index(name)], dict):
            raise TypeError(f"{name} is no mapping")
    return tuple(_shared_value(value) for value in row)


def _shared_value(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    if isinstance(value, dict):
        return ReadOnlyDict.make(value)
    return value


def _notes(rows: list[list[Any]]) -> tuple[Diagnostic, ...]:
    return tuple(Diagnostic(*row) for row in rows)
