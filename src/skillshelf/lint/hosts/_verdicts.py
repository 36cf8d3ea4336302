"""A verdict for each host on each skill below a folder, from the records."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from skillshelf.files import NotPlainFile, read_file
from skillshelf.lint.hosts._detect import find_conditions
from skillshelf.lint.hosts._records import AS_WRITTEN, OUTCOMES, HostOutcome, HostRecord, load_records
from skillshelf.skillmd import MAX_FILE
from skillshelf.sources import SKILL_FILES, find_skill_places


@dataclass(frozen=True, slots=True)
class HostVerdict:
    """How one host loads a skill."""

    host: str
    version: str
    makes: HostOutcome
    because: tuple[str, ...] = ()
    """The conditions that cause the outcome; empty if the host loads the skill."""

    @property
    def is_as_written(self) -> bool:
        return self.makes in AS_WRITTEN


@dataclass(frozen=True, slots=True)
class SkillFile:
    """A SKILL.md on disk, and the folder that makes it a skill."""

    folder: str
    """The absolute path of the folder. It may be a symlink."""
    name: str
    """The name of the file: SKILL.md or skill.md."""
    data: bytes
    is_linked: bool


def judge_conditions(conditions: Sequence[str], hosts: Sequence[str] | None = None) -> list[HostVerdict]:
    """Return a verdict for each of these hosts, or for all. The worst condition for a host counts."""
    records = load_records()
    return [judge_for_host(conditions, records[host]) for host in hosts or records]


def judge_for_host(conditions: Sequence[str], record: HostRecord) -> HostVerdict:
    """Return the verdict of one host."""
    best = OUTCOMES[0]
    outcomes = {code: record.makes[code] for code in conditions}
    worst = max(outcomes.values(), key=OUTCOMES.index, default=best)
    because: tuple[str, ...] = ()
    if worst != best:
        because = tuple(code for code in conditions if outcomes[code] == worst)
    return HostVerdict(record.host, record.version, worst, because)


def find_skill_files(root: str) -> Iterator[tuple[str, SkillFile]]:
    """Yield every skill below a folder with its path below it. Files that cannot be read are left out.

    A skill whose folder is a symlink comes at the link, because that is where a host finds it, even if its target is
    outside the folder.
    """
    for key in find_skill_places(root):
        file = read_skill_file(root, key)
        if file is not None:
            yield key, file


def read_skill_file(root: str, key: str) -> SkillFile | None:
    """Read the skill at a path below a folder. Return None if there is none or it cannot be read."""
    folder = os.path.join(root, key).rstrip("/")
    is_linked = os.path.islink(folder)
    try:
        # Take the name from the folder's list: on some disks, SKILL.md also opens skill.md.
        names = os.listdir(folder)
    except OSError:
        return None
    name = next((name for name in SKILL_FILES if name in names), "")
    if not name:
        return None

    # The shelf reads a skill where it really is, and only inside the folder; a host sees the link itself.
    real_root = os.path.realpath(folder if is_linked else root)
    parts = f"{'' if is_linked else key}/{name}".lstrip("/").split("/")
    try:
        data = read_file(real_root, parts, 0, MAX_FILE + 1).data
    except (NotPlainFile, OSError):
        return None
    return SkillFile(folder, name, data, is_linked)


def find_file_conditions(file: SkillFile, *, nested: bool) -> list[str]:
    """Return the conditions of a skill on disk."""
    folder = os.path.basename(file.folder)
    return find_conditions(file.data, folder, file=file.name, nested=nested, linked=file.is_linked)


def is_nested(root: str, key: str) -> bool:
    """Return True if a skill is below a folder called `skills`, which hosts scan, but not directly in it.

    Only the root and the folders below it count: the folders above say nothing about where a host will look.
    """
    folders = [os.path.basename(root), *key.split("/")][:-1]
    return "skills" in folders and folders[-1] != "skills"
