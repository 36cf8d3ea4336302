"""The map of a workspace: which hosts show their model which of its skills."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from skillshelf.lint.hosts._detect import find_conditions
from skillshelf.lint.hosts._records import HostOutcome, HostRecord, Position
from skillshelf.lint.hosts._verdicts import SkillFile, find_skill_files, is_nested, judge_for_host
from skillshelf.skillmd import Unreadable, decode, read
from skillshelf.sources import find_skill_places
from skillshelf.workspace import Workspace

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
class Place:
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
    places: tuple[Place, ...]
    sightings: tuple[Sighting, ...]

    @property
    def is_seen_by_all(self) -> bool:
        return all(sighting.state == "seen" for sighting in self.sightings)


@dataclass(frozen=True, slots=True)
class ReadFolder:
    """A place as a program reads it: in one of its folders of skills, somewhere workspace its starting folder."""

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
    return "between" if is_inside(parent, workspace.root) else "outside"


def map_skills(workspace: Workspace, records: Sequence[HostRecord]) -> list[MappedSkill]:
    """Return every skill of a workspace with the sightings of these hosts, folder by folder."""
    skills = []
    for base in workspace.folders:
        files = dict(find_skill_files(base))
        for (real, key), places in _find_places(base, files).items():
            file = files[key]
            name, description = _read_texts(file)
            sightings = tuple(_sight(file, is_nested(base, key), places, workspace, records))
            folder = real if is_inside(real, base) else file.folder
            skills.append(MappedSkill(name, folder, len(description), tuple(places), sightings))
    return sorted(skills, key=lambda skill: (os.path.dirname(skill.folder), skill.folder))


def _find_places(base: str, files: Mapping[str, SkillFile]) -> dict[tuple[str, str], list[Place]]:
    """Return the places of each skill, by its real folder and by the key under which it was read first."""
    keys: dict[str, str] = {}
    places: dict[str, list[Place]] = {}
    for key, file in sorted(files.items(), key=lambda item: item[1].is_linked):
        real = os.path.realpath(file.folder)
        keys.setdefault(real, key)
        places.setdefault(real, []).append(Place(file.folder, is_linked=file.is_linked))

    for link, target in _find_linked_folders(base):
        for real in list(places):
            if is_inside(real, target):
                folder = os.path.join(link, os.path.relpath(real, target))
                places[real].append(Place(folder, is_in_linked_folder=True))
    return {(real, keys[real]): found for real, found in places.items()}


def _find_linked_folders(base: str) -> Iterator[tuple[str, str]]:
    """Yield the symlinks to folders in the workspace, each with the folder it leads to."""
    for key in find_skill_places(base):
        link = os.path.join(base, key)
        if not os.path.islink(link) or not os.path.isdir(link):
            continue
        target = os.path.realpath(link)
        if is_inside(target, base):
            yield link, target


def _read_texts(file: SkillFile) -> tuple[str, str]:
    """Return the name and the description, as far as they can be read."""
    folder = os.path.basename(file.folder)
    try:
        skill = read(decode(file.data), folder)
    except Unreadable:
        return folder, ""
    name = skill.values.get("name")
    if not isinstance(name, str) or not name:
        name = folder
    return name, skill.description


# -- one host ----------------------------------------------------------------------------------------------------------


class _Judge:
    """Judges one skill for each host. Its conditions are found once for each kind of place."""

    def __init__(self, file: SkillFile) -> None:
        self._file = file
        self._conditions: dict[tuple[str, bool, bool], list[str]] = {}

    def judge(self, place: Place, nested: bool, record: HostRecord) -> Sighting:
        verdict = judge_for_host(self._find_conditions(place, nested), record)
        state = _STATE_OF_OUTCOME[verdict.makes]
        return Sighting(record.host, state, verdict.because if state != "seen" else ())

    def _find_conditions(self, place: Place, nested: bool) -> list[str]:
        name = os.path.basename(place.folder)
        key = (name, nested, place.is_linked)
        if key not in self._conditions:
            file = self._file
            self._conditions[key] = find_conditions(
                file.data, name, file=file.name, nested=nested, linked=place.is_linked
            )
        return self._conditions[key]


def _sight(
    file: SkillFile, is_nested: bool, places: Sequence[Place], workspace: Workspace, records: Sequence[HostRecord]
) -> Iterator[Sighting]:
    """Yield how each host sees a skill: a program at the best of its places, a library wherever it is."""
    judge = _Judge(file)
    for record in records:
        if record.kind == "library":
            # Its caller names the folder, so the place does not matter.
            yield judge.judge(Place(file.folder, file.is_linked), is_nested, record)
            continue
        best = Sighting(record.host, "unread")
        for place in places:
            if place.is_in_linked_folder and not record.follows_linked_folders:
                continue
            for read_folder in find_read_folders(place.folder, workspace, record):
                sighting = judge.judge(place, "/" in read_folder.below, record)
                best = min(best, sighting, key=lambda each: STATES.index(each.state))
        yield best


def find_read_folders(folder: str, workspace: Workspace, record: HostRecord) -> Iterator[ReadFolder]:
    """Yield the ways in which a program that starts in the workspace reads a skill's folder; none if it does not."""
    for skills_folder, positions in record.folders.items():
        for read_folder in split_at(folder, skills_folder):
            is_in_workspace = read_folder.parent == workspace.root or is_inside(read_folder.parent, workspace.root)
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


def is_inside(path: str, folder: str) -> bool:
    """Return True if a path lies below a folder."""
    return path.startswith(folder.rstrip("/") + "/")
