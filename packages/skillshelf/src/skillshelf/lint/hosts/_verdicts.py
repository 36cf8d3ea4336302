"""What was measured of each host, and a verdict for each host on each skill below a folder.

`hosts.json` is written by the scripts in `benchmarks`, never by hand.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Literal, get_args

from skillshelf.files import NotPlainFile, read_file
from skillshelf.lint.hosts._detect import find_conditions
from skillshelf.skillmd import MAX_FILE
from skillshelf.sources import SKILL_FILES, find_skill_places

HostOutcome = Literal["loads", "warns", "exposes", "truncates", "corrupts", "drops", "drops-silently", "crashes"]
OUTCOMES: tuple[HostOutcome, ...] = get_args(HostOutcome)
"""From the best to the worst."""
AS_WRITTEN: tuple[HostOutcome, ...] = ("loads", "warns")
"""The outcomes of a skill that reaches the model as its author wrote it."""

HostKind = Literal["program", "library"]
"""A program decides which folders it reads. A library reads the folder that its caller names."""

Position = Literal["here", "between", "root", "below", "beside", "outside", "home"]
"""Where a folder with skills is, seen from the folder that a program starts in.

`here` is that folder itself. In a repository, `root` is its root and `between` any folder on the way there. Outside a
repository, `outside` is a parent. `below` is a subfolder, `beside` any other folder, and `home` the user's home.
"""


@dataclass(frozen=True, slots=True)
class Space:
    """How much of the descriptions a program shows its model."""

    longest: int | None
    """The length to which it cuts a single description; None if it showed all of a very long one."""
    total: int | None
    """How many characters of descriptions it showed when there were many; None if it showed all of them."""


@dataclass(frozen=True, slots=True)
class HostRecord:
    """One host, as it was measured."""

    host: str
    kind: HostKind
    version: str
    package: str
    """The name in its registry: npm for programs, PyPI for libraries."""
    measured: str
    """The day, as YYYY-MM-DD."""
    how: str
    """How it was run; empty for a library, whose loader was called."""
    makes: Mapping[str, HostOutcome]
    """The outcome of each condition."""
    folders: Mapping[str, tuple[Position, ...]] = field(default_factory=dict)
    """The folders of skills that a program reads, each with the positions in which it reads it."""
    follows_linked_folders: bool = True
    """Whether it reads a folder of skills that is a symlink."""
    space: Space = Space(None, None)


@cache
def load_records() -> dict[str, HostRecord]:
    """Return the record of each host by its name: first the programs, then the libraries."""
    text = files("skillshelf.lint.hosts").joinpath("hosts.json").read_text(encoding="utf-8")
    records = [_make_record(host, values) for host, values in json.loads(text).items()]
    records.sort(key=lambda record: (record.kind == "library", record.host))
    return {record.host: record for record in records}


def _make_record(host: str, values: Mapping[str, Any]) -> HostRecord:
    common = {key: values[key] for key in ("kind", "version", "package", "measured", "makes")}
    if values["kind"] == "library":
        return HostRecord(host, how="", **common)
    folders = {folder: tuple(positions) for folder, positions in values["folders"].items()}
    return HostRecord(
        host,
        how=values["how"],
        folders=folders,
        follows_linked_folders=values["folder_linked"] in AS_WRITTEN,
        space=_make_space(values["space"]),
        **common,
    )


def _make_space(values: Mapping[str, Mapping[str, int]]) -> Space:
    one = values["one"]
    many = values["many"]
    written = many["skills"] * many["written"]
    return Space(
        longest=one["shown"] if one["shown"] < one["written"] else None,
        total=many["shown"] if many["shown"] < written else None,
    )


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
