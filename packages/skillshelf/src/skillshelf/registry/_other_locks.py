"""The locks of other tools: vercel's `skills-lock.json` is kept up to date, and all say where skills are from."""

import hashlib
import json
import os
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from skillshelf.errors import RegistryError
from skillshelf.files import NotPlainFile, read_file, replace_file, system
from skillshelf.registry._installation import Installation
from skillshelf.registry._lock import MAX_LOCK, LockedSkill, SkillsLock
from skillshelf.registry._package import SkillContent, read_installed
from skillshelf.skillmd import MAX_FILE, Unreadable, decode, read
from skillshelf.sources import SKILL_FILES

VERCEL_LOCK = "skills-lock.json"
_APM_LOCK = "apm.lock.yaml"
_ORDER = " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789abcdefghijklmnopqrstuvwxyz"
"""The characters of ASCII as ICU sorts them, without case."""
_RANK = {character: rank for rank, character in enumerate(_ORDER)}
_MAX_APM_NODES = 200_000
_LEFT_OUT = frozenset({".git", "node_modules"})


def compute_hash(files: Mapping[str, bytes]) -> str:
    """Return the `computedHash` of vercel's lock; empty if names beyond ASCII make the order unknown.

    It is SHA-256 over path and bytes of each file, in the order of JavaScript's `localeCompare`.
    """
    if not all(path.isascii() and path.isprintable() for path in files):
        return ""
    hashed = hashlib.sha256()
    for path in sorted(files, key=_collation_key):
        if _LEFT_OUT.isdisjoint(path.split("/")):
            hashed.update(path.encode())
            hashed.update(files[path])
    return hashed.hexdigest()


def _collation_key(path: str) -> tuple[list[int], list[bool]]:
    return [_RANK[character] for character in path.lower()], [character.isupper() for character in path]


def update_vercel_lock(
    installation: Installation, lock: SkillsLock, put: Iterable[SkillContent], removed: Collection[str]
) -> None:
    """Bring the workspace's skills-lock.json in line, if there is one and it is not damaged."""
    path = f"{installation.place}/{VERCEL_LOCK}"
    table = None if installation.is_user else _read_json(installation.place, VERCEL_LOCK)
    if table is None or table.get("version") != 1 or not isinstance(table.get("skills"), dict):
        return
    skills: dict[str, Any] = {name: row for name, row in table["skills"].items() if name not in removed}
    for content in put:
        computed = compute_hash(content.files)
        if computed:
            skills[content.name] = _describe(lock.skills[content.name], computed, skills.get(content.name))
    table["skills"] = dict(sorted(skills.items()))
    text = json.dumps(table, indent=2, ensure_ascii=False) + "\n"
    with suppress(OSError):
        replace_file(path, text.encode())


def _describe(skill: LockedSkill, computed: str, known: Any) -> dict[str, Any]:
    """Return the row of a skill. Fields that we do not know are kept, as long as they are about the same source."""
    origin = skill.origin
    kind = {"folder": "local", "archive": "local", "web": "well-known"}.get(origin.kind, origin.kind)
    source = origin.address
    for prefix in ("https://github.com/", "git@github.com:"):
        source = source.removeprefix(prefix)
    if origin.kind == "git" and ":" not in source:
        kind = "github"
        source = source.removesuffix(".git")
    row = dict(known) if isinstance(known, dict) and known.get("source") == source else {}
    row |= {"source": source, "sourceType": kind, "computedHash": computed}
    row.pop("ref", None)
    return {**row, "ref": origin.asked} if origin.asked else row


class OtherOrigin(NamedTuple):
    """Where a skill comes from, as the tool that installed it wrote down."""

    name: str
    tool: str
    source: str
    version: str = ""
    state: str = "not pinned"
    """`same`, `edited` or `cannot be checked` where there is a hash."""


def find_other_origins(installation: Installation, lock: SkillsLock) -> list[OtherOrigin]:
    """Return the skills in the folder that are not in the lock, and that another tool says where they are from."""
    try:
        names = sorted(set(system.listdir(installation.folder)) - lock.skills.keys())
    except OSError:
        return []
    readers = (_find_vercel, _find_gh, _find_apm)
    found: dict[str, OtherOrigin] = {}
    for name in names:
        for reader in readers:
            origin = reader(installation, name)
            if origin:
                found.setdefault(name, origin)
    return list(found.values())


def _find_vercel(installation: Installation, name: str) -> OtherOrigin | None:
    if installation.is_user:
        table = _read_json(os.path.dirname(installation.folder), ".skill-lock.json")
    else:
        table = _read_json(installation.place, VERCEL_LOCK)
    skills = table.get("skills") if table else None
    row = skills.get(name) if isinstance(skills, dict) else None
    if not isinstance(row, dict):
        return None
    state = "not pinned"
    if "computedHash" in row:
        state = _check_vercel(installation, name, row["computedHash"])
    return OtherOrigin(name, "skills", _text(row, "source"), _text(row, "ref") or _text(row, "pinnedRef"), state)


def _check_vercel(installation: Installation, name: str, expected: Any) -> str:
    try:
        computed = compute_hash(read_installed(installation, name).files)
    except (RegistryError, FileNotFoundError):
        return "cannot be checked"
    if not computed:
        return "cannot be checked"
    # Some installers leave files out, so a difference proves nothing.
    return "same" if computed == expected else "cannot be checked"


def _find_gh(installation: Installation, name: str) -> OtherOrigin | None:
    for file in SKILL_FILES:
        with suppress(OSError, NotPlainFile, Unreadable):
            data = read_file(installation.folder, [name, file], 0, MAX_FILE).data
            metadata = read(decode(data), name).describe(references=(), source="", location="").metadata
            source = _text(metadata, "github-repo") or _text(metadata, "local-path")
            if source:
                path = _text(metadata, "github-path")
                return OtherOrigin(name, "gh skill", f"{source}/{path}".rstrip("/"), _text(metadata, "github-ref"))
    return None


def _find_apm(installation: Installation, name: str) -> OtherOrigin | None:
    folder = os.path.relpath(f"{installation.folder}/{name}", installation.place)
    for row in _read_apm(installation):
        deployed = row.get("deployed_files") if isinstance(row, dict) else None
        paths = [f"{path}/" for path in deployed] if isinstance(deployed, list) else []
        if any(path.startswith(f"{folder}/") for path in paths):
            version = _text(row, "resolved_commit")[:12] or _text(row, "version")
            return OtherOrigin(name, "apm", _text(row, "repo_url"), version)
    return None


def _read_apm(installation: Installation) -> list[Any]:
    from skillshelf.skillmd.bounded_yaml import Budget, ValueBuilder, YamlFault, compose, typed_scalar

    data = _read(installation.place, _APM_LOCK)
    with suppress(YamlFault, ValueError):
        root = compose(data.decode(), Budget(_MAX_APM_NODES, MAX_LOCK)).root
        table = ValueBuilder(typed_scalar).build(root) if root else {}
        rows = table.get("dependencies") if isinstance(table, dict) else None
        return rows if isinstance(rows, list) else []
    return []


def _read_json(folder: str, name: str) -> dict[str, Any] | None:
    """Return the object in a file; None if there is none."""
    with suppress(ValueError, RecursionError):
        table = json.loads(_read(folder, name))
        return table if isinstance(table, dict) else None
    return None


def _read(folder: str, name: str) -> bytes:
    with suppress(OSError, NotPlainFile):
        return read_file(folder, [name], 0, MAX_LOCK).data
    return b""


def _text(table: Mapping[str, Any], key: str) -> str:
    value = table.get(key)
    return value if isinstance(value, str) else ""
