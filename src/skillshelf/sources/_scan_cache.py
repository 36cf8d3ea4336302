"""The scan cache: what a directory source knew when it last looked, so that the next start only has to stat.

One file for each root, outside the workspace, replaced atomically. It is never trusted further than its checksum and
the stamps in it: a file that is cut short or garbled is set aside, one of a newer version is left alone, and what
changed on disk since is read again. Losing it costs time, nothing else.
"""

import hashlib
import json
import os
import zlib
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import astuple
from typing import Any

from skillshelf._version import __version__
from skillshelf.descriptor import Diagnostic, FrozenMap, SkillDescriptor, freeze, thaw
from skillshelf.files import (
    NotPlainFile,
    NotPrivate,
    cache_home,
    make_private_folders,
    read_private,
    replace_file,
    system,
)
from skillshelf.found import Found
from skillshelf.sources._state import Folder, Link, Skill, State

VERSION = 1
# Below this many folders a walk takes a few milliseconds, and a file to keep is not worth it.
LEAST_FOLDERS = 500
_OPTIONAL_FIELDS = (
    "license",
    "compatibility",
    "allowed_tools",
    "metadata",
    "disclosure",
    "user_invocable",
    "arguments",
    "argument_hint",
    "fields",
)
"""The fields of a descriptor that skills of one collection mostly have in common."""


def load(root: str, source: str, limit: int) -> State | None:
    """Return what was known of this root, if this version of the library saved it with the same limit."""
    path = _path(root)
    if path is None:
        return None
    try:
        header, _, payload = read_private(path).partition(b"\n")
    except (OSError, NotPlainFile, NotPrivate):
        return None
    try:
        version, _, checksum = header.partition(b" ")  # a newer version's header may go on as it likes
        if int(version) > VERSION:
            return None
        if int(version) == VERSION and int(checksum) == zlib.crc32(payload):
            plain = json.loads(payload)
            return _state(plain, root, source) if plain["made_by"] == [__version__, limit] else None
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
        pass
    # Set aside rather than deleted, so that the user can find out what happened to it.
    with suppress(OSError):
        system.replace(path, path + ".bad")
    return None


def save(root: str, state: State, limit: int) -> Diagnostic | None:
    """Save what is known of a root. Return a note if that was not possible."""
    path = _path(root)
    if path is None or len(state.folders) + len(state.skills) < LEAST_FOLDERS:
        return None
    payload = json.dumps({"made_by": [__version__, limit], **_plain(state)}, separators=(",", ":")).encode()
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


def _path(root: str) -> str | None:
    home = cache_home()
    name = hashlib.sha256(os.fsencode(root)).hexdigest()[:32]
    return os.path.join(home, "index", name + ".json") if home else None


def _is_newer(path: str) -> bool:
    """Return True if a newer version of the library wrote the file. Raises NotPrivate."""
    try:
        header = read_private(path, limit=64).partition(b"\n")[0]
        return int(header.split()[0]) > VERSION
    except (OSError, NotPlainFile, ValueError, IndexError):
        return False


class _Shared:
    """Values that many skills have in common, written once and referred to by number."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self._numbers: dict[Any, int] = {}

    def number(self, value: Any) -> int:
        number = self._numbers.setdefault(value, len(self.rows))
        if number == len(self.rows):
            self.rows.append(thaw(value))
        return number


def _plain(state: State) -> dict[str, Any]:
    paths = _Shared()
    optional = _Shared()
    skills = [_skill_row(key, skill, paths, optional) for key, skill in state.skills.items()]
    return {
        "skills": skills,
        "paths": paths.rows,
        "optional": optional.rows,
        "folders": [[key, 0 if folder.fresh else folder.stamp] for key, folder in state.folders.items()],
        "links": [[key, link.target, link.key, link.brought] for key, link in state.links.items()],
        "notes": [[key, _note_rows(found.diagnostics)] for key, found in state.notes.items()],
        "ignore": state.ignore_stamp,
    }


def _skill_row(key: str, skill: Skill, paths: _Shared, optional: _Shared) -> list[Any]:
    found = skill.found
    stamp = skill.stamp
    if skill.fresh or found.is_last_good:
        stamp = 0  # which no file has: it is read again at the next start
    row: list[Any] = [key, skill.file, stamp, paths.number(skill.folders), _note_rows(found.diagnostics)]
    card = found.descriptor
    if card:
        fields = FrozenMap({name: getattr(card, name) for name in _OPTIONAL_FIELDS})
        row += card.name, card.description, paths.number(card.references), card.size, optional.number(fields)
    return row


def _note_rows(notes: Iterable[Diagnostic]) -> list[list[Any]] | int:
    return [list(astuple(note)) for note in notes] or 0


def _state(plain: dict[str, Any], root: str, source: str) -> State:
    paths = [tuple(row) for row in plain["paths"]]
    optional = [_optional_fields(row) for row in plain["optional"]]
    skills: dict[str, Skill] = {}
    for key, file, stamp, folders, notes, *card in plain["skills"]:
        descriptor = None
        if card:
            name, description, references, size, fields = card
            descriptor = SkillDescriptor(
                name=name,
                description=description,
                references=paths[references],
                source=source,
                location=f"{root}/{key}/{file}" if key else f"{root}/{file}",
                size=size,
                **optional[fields],
            )
        found = Found(descriptor, _notes(notes) if notes else ())
        skills[key] = Skill(found, file, paths[folders], stamp, fresh=False, cached=True)
    folders_known = {key: Folder(stamp, False) for key, stamp in plain["folders"]}
    for key in (*skills, *folders_known):
        parent, _, child = key.rpartition("/")
        if key and parent in folders_known:
            folders_known[parent].children.add(child)
    links = {key: Link(target and tuple(target), to, brought) for key, target, to, brought in plain["links"]}
    for link in links:
        parent, _, name = link.rpartition("/")
        folders_known[parent].links.add(name)
    known = {key: Found(None, _notes(notes)) for key, notes in plain["notes"]}
    return State(skills, folders_known, links, known, plain["ignore"])


def _optional_fields(row: dict[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments of a SkillDescriptor: JSON has lists and dicts, a descriptor only frozen values."""
    return {name: freeze(row[name]) for name in _OPTIONAL_FIELDS}


def _notes(rows: list[list[Any]]) -> tuple[Diagnostic, ...]:
    return tuple(Diagnostic(*row) for row in rows)
