"""`skills.lock`: where each installed skill came from, its version, and every file of it by hash.

The file is TOML, is committed with the skills, and is the same on every machine: it has no times and no paths of a
machine. Fields that this version does not know are kept.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from skillshelf.errors import SkillsLockError
from skillshelf.files import NotPlainFile, read_file
from skillshelf.text.toml import parse_toml
from skillshelf.trust import Snapshot, SnapshotEntry

VERSION = 1
MAX_LOCK = 16 * 1024 * 1024
"""Bytes; a skill of five files takes about 800."""

_HEADER = (
    "# The skills that `skillshelf add` installed. Commit this file; `skillshelf verify` compares it with the skills.\n"
)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_CONFLICT = re.compile(rb"^(<{7}|={7}|>{7})( |\r?$)", re.M)


class Origin(NamedTuple):
    """Where a skill comes from."""

    kind: str
    """The kind of source, such as `git`: the name of a SourceKind."""
    address: str
    """The repository, folder or archive. A folder or archive on this machine is relative to the lock."""
    path: str = ""
    """The folder in it: of the skill, or to look for skills in."""
    asked: str = ""
    """The branch, tag or version that the user asked for; empty for the default."""

    @property
    def is_local(self) -> bool:
        """True for a folder or archive on this machine."""
        return self.kind in ("folder", "archive")


class Pin(NamedTuple):
    """Exactly one version of a source. A folder has none: the files themselves are pinned."""

    version: str = ""
    commit: str = ""
    digest: str = ""
    """The hash of an archive, as in `sha256:…`."""

    @property
    def text(self) -> str:
        """The version in one word; empty for a folder."""
        return self.version or self.commit or self.digest

    def __str__(self) -> str:
        return self.version or self.commit[:12] or self.digest[:19]


@dataclass(frozen=True, slots=True)
class LockedSkill:
    """An installed skill as the lock has it."""

    origin: Origin
    pin: Pin
    snapshot: Snapshot
    table: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """The skill's table as it was read, with the fields that this version does not know."""
    upstream: str = ""
    """If the files have the user's edits: the tree that the source has in this version."""
    tree: str = field(init=False)
    """The hash over all files: the one that the user approves."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "tree", self.snapshot.tree)

    @property
    def name(self) -> str:
        return self.snapshot.name

    @property
    def upstream_tree(self) -> str:
        """The tree that the source has in this version."""
        return self.upstream or self.tree


@dataclass(frozen=True, slots=True)
class SkillsLock:
    """The content of a skills.lock. One that does not exist is empty."""

    skills: Mapping[str, LockedSkill] = field(default_factory=dict)
    table: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def with_skills(self, *skills: LockedSkill) -> "SkillsLock":
        """Return the lock with these skills added, or in the place of those of the same name."""
        return replace(self, skills={**self.skills, **{skill.name: skill for skill in skills}})

    def without(self, *names: str) -> "SkillsLock":
        """Return the lock without these skills."""
        return replace(self, skills={name: skill for name, skill in self.skills.items() if name not in names})


# -- reading -----------------------------------------------------------------------------------------------------------


def read_lock(path: str) -> SkillsLock:
    """Read a lock. Raises SkillsLockError if it cannot be used."""
    return parse_lock(read_lock_bytes(path), path)


def read_lock_bytes(path: str) -> bytes:
    """Return the bytes of a lock; none if it does not exist. Raises SkillsLockError if it cannot be read."""
    folder, name = os.path.split(path)
    try:
        page = read_file(folder, [name], 0, MAX_LOCK + 1)
    except FileNotFoundError:
        return b""
    except NotPlainFile as error:
        raise SkillsLockError(f"{path} cannot be read: {error.reason}.") from None
    except OSError as error:
        raise SkillsLockError(f"{path} cannot be read: {error.strerror or error}.") from None
    if len(page.data) > MAX_LOCK:
        raise SkillsLockError(f"{path} has more than {MAX_LOCK >> 20} MiB.")
    return page.data


def parse_lock(data: bytes, path: str = "skills.lock") -> SkillsLock:
    """Read the text of a lock. Raises SkillsLockError, with the path in its message."""
    if not data.strip():
        return SkillsLock()
    conflict = _CONFLICT.search(data)
    if conflict:
        line = data.count(b"\n", 0, conflict.start()) + 1
        raise SkillsLockError(
            f"{path}, line {line}: a merge left conflict markers. Keep the tables of the skills you want, delete the "
            f"lines with markers, and run `skillshelf verify`."
        )
    try:
        table = parse_toml(data)
    except ValueError as error:
        raise SkillsLockError(f"{path} is damaged: {error}. {_RESTORE}") from None

    version = table.get("version")
    if type(version) is int and version > VERSION:
        raise SkillsLockError(f"{path} was written by a newer skillshelf. Update skillshelf to use it.")
    try:
        if type(version) is not int or version != VERSION:
            raise _Damaged(f"the version is {version!r:.40}, not {VERSION}")
        skills = _typed(table.get("skills", {}), dict, "skills")
        return SkillsLock({name: _parse_skill(name, skill) for name, skill in sorted(skills.items())}, table)
    except _Damaged as error:
        raise SkillsLockError(f"{path} is damaged: {error}. {_RESTORE}") from None


_RESTORE = "Restore it from version control, or delete it and add the skills again."


class _Damaged(Exception):
    """The lock is not one that skillshelf wrote."""


def _parse_skill(name: str, table: Any) -> LockedSkill:
    if not is_installable(name):
        raise _Damaged(f"{name!r:.80} is not the name of a skill")
    place = f"skills.{name}"
    table = _typed(table, dict, place)
    source = _typed(table.get("source"), dict, f"{place}.source")
    origin = Origin(
        kind=_text(source, "kind", place),
        address=_text(source, "address", place),
        path=_text(source, "path", place),
        asked=_text(table, "asked", place),
    )
    if not origin.kind or not origin.address:
        raise _Damaged(f"{place}.source has no kind or no address")
    pin = Pin(*(_text(table, part, place) for part in Pin._fields))
    files = _typed(table.get("files"), dict, f"{place}.files")
    entries = tuple(_parse_file(path, row, place) for path, row in sorted(files.items()))
    skill = LockedSkill(origin, pin, Snapshot(name, entries), table, _text(table, "upstream", place))
    if skill.tree != table.get("tree"):
        raise _Damaged(f"{place}.tree does not match the list of files")
    return skill


def _parse_file(path: str, row: Any, place: str) -> SnapshotEntry:
    place = f"{place}.files.{path!r:.80}"
    row = _typed(row, dict, place)
    sha256 = _text(row, "sha256", place)
    size = _typed(row.get("size"), int, f"{place}.size")
    executable = _typed(row.get("executable", False), bool, f"{place}.executable")
    if not is_safe_path(path) or not _SHA256.fullmatch(sha256) or size < 0:
        raise _Damaged(f"{place} is not a file of a skill")
    return SnapshotEntry(path, size, sha256, executable)


def _typed(value: Any, kind: type, place: str) -> Any:
    if type(value) is not kind:
        raise _Damaged(f"{place} is missing or not a {kind.__name__}")
    return value


def _text(table: Mapping[str, Any], key: str, place: str) -> str:
    text: str = _typed(table.get(key, ""), str, f"{place}.{key}")
    if not text.isprintable():
        raise _Damaged(f"{place}.{key} has control characters")
    return text


def is_installable(name: str) -> bool:
    """Return True for a name that a folder of a skill may have."""
    # A folder named SKILL.md would make the folder around it look like a skill, and hide all the others.
    return _NAME.fullmatch(name) is not None and name.lower() != "skill.md"


def is_safe_path(path: str) -> bool:
    """Return True for the path of a file that stays in its folder, on every system, and is not Git's own."""
    if not path or "\\" in path or "\0" in path or not path.isprintable():
        return False
    return all(part.lower() not in ("", ".", "..", ".git", "git~1") for part in path.split("/"))


# -- writing -----------------------------------------------------------------------------------------------------------


def dump_lock(lock: SkillsLock) -> bytes:
    """Return the text of a lock: skills and files in order of their names."""
    lines = [_HEADER, f"version = {VERSION}\n"]
    lines += _dump_unknown(lock.table, ("version", "skills"))
    for name, skill in sorted(lock.skills.items()):
        lines += ["\n", f"[skills.{_key(name)}]\n", *_dump_skill(skill)]
        lines += ["\n", f"[skills.{_key(name)}.files]\n"]
        known = skill.table.get("files", {})
        for entry in sorted(skill.snapshot.entries):
            row = {"sha256": entry.sha256, "size": entry.size}
            if entry.executable:
                row["executable"] = True
            unknown = {key: value for key, value in known.get(entry.path, {}).items() if key not in _FILE_FIELDS}
            lines.append(f"{_key(entry.path)} = {_value({**row, **unknown})}\n")
    return "".join(lines).encode()


_FILE_FIELDS = ("sha256", "size", "executable")
_SKILL_FIELDS = ("source", "asked", *Pin._fields, "tree", "upstream", "files")


def _dump_skill(skill: LockedSkill) -> Iterator[str]:
    origin = skill.origin
    source = {"kind": origin.kind, "address": origin.address}
    if origin.path:
        source["path"] = origin.path
    yield f"source = {_value({**skill.table.get('source', {}), **source})}\n"
    facts = {"asked": origin.asked, **skill.pin._asdict(), "tree": skill.tree, "upstream": skill.upstream}
    for key, text in facts.items():
        if text:
            yield f"{key} = {_value(text)}\n"
    yield from _dump_unknown(skill.table, _SKILL_FIELDS)


def _dump_unknown(table: Mapping[str, Any], known: tuple[str, ...]) -> Iterator[str]:
    for key, value in sorted(table.items()):
        if key not in known:
            yield f"{_key(key)} = {_value(value)}\n"


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _value(name)


def _value(value: Any) -> str:
    """Return a value that tomllib read as TOML, on one line."""
    if isinstance(value, str):
        # TOML's quoted strings are JSON's, but for a character that JSON does not escape.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{_key(key)} = {_value(part)}' for key, part in value.items())} }}"
    text: str = value.isoformat()  # a date or a time
    return text
