"""The map of a workspace: which hosts show their model which of its skills."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from skillshelf.files import is_at_or_inside, is_inside
from skillshelf.lint.hosts._detect import find_conditions
from skillshelf.lint.hosts._verdicts import (
    HostOutcome,
    HostRecord,
    Position,
    SkillFile,
    find_skill_files,
    is_nested,
    judge_for_host,
)
from skillshelf.skillmd import Unreadable, decode, read
from skillshelf.sources import find_skill_places
from skillshelf.sources.workspace import Workspace

SightingState = Literal["seen", "exposed", "cut", "altered", "refused", "unread"]
"""From the best to the worst. `unread` means that the host does not read the folder that the skill is in."""
STATES: tuple[SightingState, ...] = get_args(SightingState)

_STATE_OF_OUTCOME: Mapping[HostOutcome, SightingState] = {
    "loads": "seen",
    "warns": "seen",
    "exposes": "exposed",
    "truncates": "cut",
    "corrupts": "altered",
    "drops": "refused",
    "drops-silently": "refused",
    "crashes": "refused",
}


@dataclass(frozen=True, slots=True)
class Sighting:
    """How one host sees one skill."""

    host: str
    state: SightingState
    because: tuple[str, ...] = ()
    """The conditions that cause any other state than `seen` and `unread`."""


@dataclass(frozen=True, slots=True)
class SkillPath:
    """A path at which a host can find a skill: its own, or one that leads through a symlink."""

    folder: str
    """Absolute, with its links."""
    is_linked: bool = False
    """The skill's own folder is a symlink."""
    is_in_linked_folder: bool = False
    """A folder above it is a symlink, such as `.claude/skills`."""


@dataclass(frozen=True, slots=True)
class MappedSkill:
    """A skill of the workspace, and how each host sees it."""

    name: str
    folder: str
    """The absolute path of its folder, or of a link to one that is outside the workspace."""
    description_length: int
    paths: tuple[SkillPath, ...]
    """All paths that lead to it."""
    sightings: tuple[Sighting, ...]

    @property
    def is_seen_by_all(self) -> bool:
        return all(sighting.state == "seen" for sighting in self.sightings)


@dataclass(frozen=True, slots=True)
class ReadFolder:
    """A skill's path as a program reads it: in one of its folders of skills, around the folder that it starts in."""

    parent: str
    """The absolute path of the folder that has the folder of skills."""
    skills_folder: str
    """Such as `.agents/skills`."""
    below: str
    """The rest of the path: the skill's own folder, with those above it if it is nested."""


def find_position(parent: str, workspace: Workspace) -> Position:
    """Return where a folder is, seen from a program that starts in the user's folder."""
    start = workspace.folder
    if parent == start:
        return "here"
    if is_inside(parent, start):
        return "below"
    if not is_inside(start, parent):
        return "beside"
    if parent == workspace.root:
        return "root"
    if is_inside(parent, workspace.root):
        return "between"
    return "outside"


def map_skills(workspace: Workspace, records: Sequence[HostRecord]) -> list[MappedSkill]:
    """Return every skill of a workspace with the sightings of these hosts, folder by folder."""
    skills = []
    for base in workspace.folders:
        for real, located in _locate_skills(base).items():
            texts = _read_texts(located.file)
            sightings = tuple(_sight(located, workspace, records))
            folder = located.file.folder
            if is_inside(real, base):
                folder = real
            skills.append(MappedSkill(texts.name, folder, len(texts.description), tuple(located.paths), sightings))
    return sorted(skills, key=lambda skill: (os.path.dirname(skill.folder), skill.folder))


@dataclass(frozen=True, slots=True)
class _LocatedSkill:
    """A skill, and the paths that lead to it."""

    file: SkillFile
    """Read at its own path, or at the first link to it."""
    is_nested: bool
    paths: list[SkillPath]


def _locate_skills(base: str) -> dict[str, _LocatedSkill]:
    """Return the skills below a folder, by their real folder."""
    skills: dict[str, _LocatedSkill] = {}
    for key, file in sorted(find_skill_files(base), key=lambda item: item[1].is_linked):
        real = os.path.realpath(file.folder)
        if real not in skills:
            skills[real] = _LocatedSkill(file, is_nested(base, key), [])
        skills[real].paths.append(SkillPath(file.folder, is_linked=file.is_linked))

    for link, target in _find_linked_folders(base):
        for real, skill in skills.items():
            if is_inside(real, target):
                folder = os.path.join(link, os.path.relpath(real, target))
                skill.paths.append(SkillPath(folder, is_in_linked_folder=True))
    return skills


def _find_linked_folders(base: str) -> Iterator[tuple[str, str]]:
    """Yield the symlinks to folders in the workspace, each with the folder it leads to."""
    for key in find_skill_places(base):
        link = os.path.join(base, key)
        if not os.path.islink(link) or not os.path.isdir(link):
            continue
        target = os.path.realpath(link)
        if is_inside(target, base):
            yield link, target


class _Texts(NamedTuple):
    name: str
    description: str


def _read_texts(file: SkillFile) -> _Texts:
    """Return the name and the description, as far as they can be read."""
    folder = os.path.basename(file.folder)
    try:
        skill = read(decode(file.data), folder)
    except Unreadable:
        return _Texts(folder, "")
    name = skill.values.get("name")
    if not isinstance(name, str) or not name:
        name = folder
    return _Texts(name, skill.description)


# -- one host ----------------------------------------------------------------------------------------------------------


class _Judge:
    """Judges one skill for each host. Its conditions are found once for each kind of path."""

    def __init__(self, file: SkillFile) -> None:
        self._file = file
        self._conditions: dict[tuple[str, bool, bool], list[str]] = {}

    def judge(self, path: SkillPath, nested: bool, record: HostRecord) -> Sighting:
        verdict = judge_for_host(self._find_conditions(path, nested), record)
        state = _STATE_OF_OUTCOME[verdict.makes]
        if state == "seen":
            return Sighting(record.host, state)
        return Sighting(record.host, state, verdict.because)

    def _find_conditions(self, path: SkillPath, nested: bool) -> list[str]:
        name = os.path.basename(path.folder)
        key = (name, nested, path.is_linked)
        if key not in self._conditions:
            file = self._file
            self._conditions[key] = find_conditions(
                file.data, name, file=file.name, nested=nested, linked=path.is_linked
            )
        return self._conditions[key]


def _sight(skill: _LocatedSkill, workspace: Workspace, records: Sequence[HostRecord]) -> Iterator[Sighting]:
    """Yield how each host sees a skill: a program at the best of its paths, a library wherever it is."""
    judge = _Judge(skill.file)
    for record in records:
        if record.kind == "library":
            # Its caller names the folder, so the path does not matter.
            own_path = SkillPath(skill.file.folder, skill.file.is_linked)
            yield judge.judge(own_path, skill.is_nested, record)
            continue
        best = Sighting(record.host, "unread")
        for path in skill.paths:
            if path.is_in_linked_folder and not record.follows_linked_folders:
                continue
            for read_folder in find_read_folders(path.folder, workspace, record):
                sighting = judge.judge(path, "/" in read_folder.below, record)
                best = min(best, sighting, key=lambda each: STATES.index(each.state))
        yield best


def find_read_folders(folder: str, workspace: Workspace, record: HostRecord) -> Iterator[ReadFolder]:
    """Yield the ways in which a program that starts in the workspace reads a skill's folder; none if it does not."""
    for skills_folder, positions in record.folders.items():
        for read_folder in split_at(folder, skills_folder):
            is_in_workspace = is_at_or_inside(read_folder.parent, workspace.root)
            is_in_parent = any(is_inside(folder, outer) for outer in workspace.outer)
            if (is_in_workspace or is_in_parent) and find_position(read_folder.parent, workspace) in positions:
                yield read_folder


def split_at(folder: str, skills_folder: str) -> Iterator[ReadFolder]:
    """Split the path of a skill at each occurrence of a folder of skills in it."""
    parts = folder.split("/")
    wanted = skills_folder.split("/")
    for index in range(1, len(parts) - len(wanted)):
        after = index + len(wanted)
        if parts[index:after] == wanted:
            parent = "/".join(parts[:index]) or "/"
            yield ReadFolder(parent, skills_folder, "/".join(parts[after:]))
