"""Newer versions of installed skills, merged with the user's edits, and the way back."""

import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import NamedTuple

from skillshelf.errors import RegistryError
from skillshelf.files import (
    NotPlainFile,
    NotPrivate,
    hash_content,
    read_private,
    replace_file,
    write_new,
)
from skillshelf.registry._git import git_environment
from skillshelf.registry._installation import Installation
from skillshelf.registry._kept import keep, recall
from skillshelf.registry._lock import MAX_LOCK, LockedSkill, Origin, Pin, SkillsLock, dump_lock, parse_lock
from skillshelf.registry._operations import NewSkill, show_origin
from skillshelf.registry._package import Package, SkillContent, read_content, read_installed
from skillshelf.registry._sources import open_source
from skillshelf.registry._status import compare
from skillshelf.registry._transaction import change_installation
from skillshelf.sources import SKILL_FILES
from skillshelf.text import count_noun, decode_text
from skillshelf.trust import Snapshot, SnapshotEntry, take_snapshot

_UNDO = "undo.json"
_MERGE_SECONDS = 60.0


class Newest(NamedTuple):
    """What the source of an installed skill has now."""

    skill: LockedSkill
    pin: Pin = Pin()
    content: SkillContent | None = None
    problem: str = ""
    """Why it cannot be had; empty if it can."""

    @property
    def is_newer(self) -> bool:
        return self.content is not None and self.content.snapshot.tree != self.skill.upstream_tree


def find_newest(installation: Installation, skills: Iterable[LockedSkill]) -> list[Newest]:
    """Fetch what the sources of installed skills have now. A source that cannot be read does not hide the others."""
    by_source: dict[Origin, list[LockedSkill]] = {}
    for skill in skills:
        by_source.setdefault(skill.origin._replace(path=""), []).append(skill)
    found = []
    for source, group in by_source.items():
        try:
            with open_source(source, Pin(), installation.place, anywhere=installation.is_user) as package:
                found += [_read_newest(package, skill) for skill in group]
        except RegistryError as error:
            found += [Newest(skill, problem=str(error)) for skill in group]
    return sorted(found, key=lambda newest: newest.skill.name)


def _read_newest(package: Package, skill: LockedSkill) -> Newest:
    folder = f"{skill.origin.path}/".lstrip("/")
    if not any(f"{folder}{name}" in package.files for name in SKILL_FILES):
        return Newest(skill, package.pin, problem=f"It is no longer in {show_origin(skill.origin)}.")
    try:
        return Newest(skill, package.pin, read_content(package, skill.name, skill.origin.path))
    except RegistryError as error:
        return Newest(skill, package.pin, problem=str(error))


# -- merging -----------------------------------------------------------------------------------------------------------


class Update(NamedTuple):
    """A newer version of an installed skill, with the user's edits in it."""

    new: NewSkill
    before: SkillContent | None = None
    """What is on disk now; None if the skill is missing."""
    conflicts: tuple[str, ...] = ()
    """In words, by file. The files have the markers of Git."""

    @property
    def name(self) -> str:
        return self.new.name


def merge_newest(installation: Installation, newest: Newest) -> Update:
    """Return what is installed if a skill is updated. Raises RegistryError if that cannot be told."""
    skill, theirs = newest.skill, newest.content
    assert theirs is not None
    locked = replace(skill, pin=newest.pin, snapshot=theirs.snapshot, upstream="")
    try:
        mine = read_installed(installation, skill.name)
    except FileNotFoundError:
        return Update(NewSkill(locked, theirs))
    upstream_tree = skill.upstream_tree
    if mine.snapshot.tree == upstream_tree:
        return Update(NewSkill(locked, theirs), mine)

    merged, conflicts = _merge(_find_base(installation, skill), mine, theirs)
    if merged.snapshot.tree != theirs.snapshot.tree:
        locked = replace(locked, snapshot=merged.snapshot, upstream=theirs.snapshot.tree)
        with suppress(OSError):  # the base of the next merge, which the source may not have then
            keep(theirs)
    return Update(NewSkill(locked, merged), mine, tuple(conflicts))


def _find_base(installation: Installation, skill: LockedSkill) -> SkillContent:
    """Return what upstream had when the skill was installed."""
    base = recall(skill.name, skill.upstream_tree)
    if base is None:
        origin = skill.origin._replace(path="")
        with (
            suppress(RegistryError),
            open_source(origin, skill.pin, installation.place, anywhere=installation.is_user) as package,
        ):
            base = read_content(package, skill.name, skill.origin.path)
    if base and base.snapshot.tree == skill.upstream_tree:
        return base
    raise RegistryError(
        f"{skill.name!r} has edits, and the version that they were made on is no longer to be had, so they cannot be "
        f"merged. Save them elsewhere, `skillshelf remove --yes {skill.name}`, and add the skill again."
    )


class _File(NamedTuple):
    data: bytes
    executable: bool


def _merge(base: SkillContent, mine: SkillContent, theirs: SkillContent) -> tuple[SkillContent, list[str]]:
    versions = [_files_of(content) for content in (base, mine, theirs)]
    files = {}
    conflicts = []
    for path in sorted(set().union(*versions)):
        file, conflict = _merge_file(*(files.get(path) for files in versions))
        if file is not None:
            files[path] = file
        if conflict:
            conflicts.append(f"{path}: {conflict}")
    entries = [
        SnapshotEntry(path, len(file.data), hash_content(file.data), file.executable) for path, file in files.items()
    ]
    snapshot = Snapshot(mine.name, tuple(entries))
    return SkillContent(snapshot, {path: file.data for path, file in files.items()}), conflicts


def _files_of(content: SkillContent) -> dict[str, _File]:
    return {entry.path: _File(content.files[entry.path], entry.executable) for entry in content.snapshot.entries}


def _merge_file(base: _File | None, mine: _File | None, theirs: _File | None) -> tuple[_File | None, str]:
    """Return the merged file, None if there is none, and what is to be settled by hand."""
    if mine == theirs or theirs == base:
        return mine, ""
    if mine == base:
        return theirs, ""
    if mine is None:
        return theirs, "you removed it and upstream changed it, so it is back"
    if theirs is None:
        return mine, "upstream removed it and you changed it, so it stays"

    is_mode_mine = base is not None and mine.executable != base.executable
    executable = mine.executable if is_mode_mine else theirs.executable
    if mine.data == theirs.data:
        return _File(mine.data, executable), ""
    before = base.data if base else b""
    if any(decode_text(data) is None for data in (before, mine.data, theirs.data)):
        return _File(mine.data, executable), "both changed it and it is not text, so yours stays"
    data, count = _merge_text(before, mine.data, theirs.data)
    return _File(data, executable), f"{count_noun(count, 'conflict')} between <<<<<<< and >>>>>>>" if count else ""


def _merge_text(base: bytes, mine: bytes, theirs: bytes) -> tuple[bytes, int]:
    """Return the merged text and the number of conflicts in it."""
    with TemporaryDirectory(prefix="skillshelf-") as folder:
        for name, data in (("base", base), ("mine", mine), ("theirs", theirs)):
            write_new(f"{folder}/{name}", data, 0o600)
        labels = ["-L", "yours", "-L", "before", "-L", "upstream"]
        try:
            merged = subprocess.run(
                ["git", "merge-file", "-p", *labels, "mine", "base", "theirs"],
                cwd=folder,
                env=git_environment(folder),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_MERGE_SECONDS,
                check=False,
            )
        except FileNotFoundError:
            raise RegistryError("git is not installed. It merges your edits with the newer version.") from None
        except subprocess.TimeoutExpired:
            raise RegistryError("git merge-file took too long.") from None
    if merged.returncode > 127:  # otherwise, it is the number of conflicts
        raise RegistryError("git merge-file failed.")
    return merged.stdout, merged.returncode


# -- installing, and the way back --------------------------------------------------------------------------------------


def install_updates(installation: Installation, updates: Sequence[Update]) -> None:
    """Install updates and pin them: all or, with a RegistryError, none. `undo_update` brings back what was there."""
    with change_installation(installation) as transaction:
        for update in updates:
            tree = take_snapshot(installation.folder, update.name).tree
            if tree != (update.before.snapshot.tree if update.before else ""):
                raise RegistryError(f"{update.name!r} changed since it was shown. Try again.")
        before = transaction.lock
        _record(installation, before, [update.before for update in updates if update.before])
        lock = before.with_skills(*(update.new.locked for update in updates))
        transaction.commit(lock, [update.new.content for update in updates])
        compare(installation, lock)


def undo_update(installation: Installation, names: Sequence[str] = ()) -> list[str]:
    """Bring back what the last update replaced, and return the names. Undoing twice brings the update back.

    Raises RegistryError if there is nothing to bring back, or it is no longer in the cache.
    """
    with change_installation(installation) as transaction:
        before, trees = _read_record(installation)
        unknown = [name for name in names if name not in trees]
        if not trees or unknown:
            what = f"No update of {unknown[0]!r:.80}" if unknown else "No update"
            raise RegistryError(f"{what} is recorded on this machine, so there is nothing to undo.")
        chosen = list(names or trees)
        contents = []
        for name in chosen:
            content = recall(name, trees[name])
            if content is None:
                raise RegistryError(f"The version of {name!r} before the update is no longer in the cache.")
            contents.append(content)
        current = [read_installed(installation, name) for name in chosen if name in transaction.lock.skills]
        lock = transaction.lock.with_skills(*(before.skills[name] for name in chosen))
        _record(installation, transaction.lock, current)
        transaction.commit(lock, contents)
        compare(installation, lock)
    return chosen


def _record(installation: Installation, lock: SkillsLock, contents: Sequence[SkillContent]) -> None:
    """Remember skills as they are before a change. Without that, there is no change."""
    trees = {content.name: content.snapshot.tree for content in contents}
    skills = SkillsLock({name: lock.skills[name] for name in trees})
    try:
        for content in contents:
            keep(content)
        record = {"lock": dump_lock(skills).decode(), "trees": trees}
        replace_file(f"{installation.state}/{_UNDO}", json.dumps(record).encode())
    except OSError as error:
        raise RegistryError(f"Nothing was changed: {error.strerror or error}.") from None


def _read_record(installation: Installation) -> tuple[SkillsLock, Mapping[str, str]]:
    try:
        record = json.loads(read_private(f"{installation.state}/{_UNDO}", 2 * MAX_LOCK))
        trees: dict[str, str] = record["trees"]
        lock = parse_lock(record["lock"].encode())
    except (OSError, NotPlainFile, NotPrivate, ValueError, TypeError, KeyError):
        return SkillsLock(), {}
    return lock, trees
