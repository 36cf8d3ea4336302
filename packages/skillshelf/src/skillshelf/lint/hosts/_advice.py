"""What to change so that every host sees every skill, from the map and the records."""

import os
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from skillshelf.files import is_inside
from skillshelf.lint.hosts._conditions import CONDITIONS
from skillshelf.lint.hosts._map import MappedSkill, find_position, find_read_folders
from skillshelf.lint.hosts._verdicts import AS_WRITTEN, HostRecord, load_records
from skillshelf.sources.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Advice:
    """One change that helps some hosts to see some skills."""

    change: str
    hosts: tuple[str, ...]
    skills: tuple[str, ...]
    """Names, in the order of the map."""
    command: str = ""
    """A shell command that makes the change, for the root of the workspace; empty if there is none."""


def advise(skills: Sequence[MappedSkill], workspace: Workspace, records: Sequence[HostRecord]) -> list[Advice]:
    """Return the changes after which the hosts see the skills as written, those of places first."""
    programs = [record for record in records if record.kind == "program"]
    links = _find_folder_links(skills, workspace, programs)
    advice = [_advise_link(link, workspace) for link in links]
    linked = {(link.folder, host) for link in links for host in link.hosts}

    transfers: list[_Transfer] = []
    out_of_reach: dict[tuple[str, ...], list[MappedSkill]] = {}
    for skill in skills:
        unread = [
            record
            for record, sighting in zip(records, skill.sightings, strict=True)
            if sighting.state == "unread" and (os.path.dirname(skill.folder), record.host) not in linked
        ]
        if not unread:
            continue
        if _is_out_of_reach(skill, workspace):
            out_of_reach.setdefault(_names(unread), []).append(skill)
        else:
            transfers.extend(_place_skill(skill, unread, workspace))
    advice.extend(_advise_start(hosts, group, workspace) for hosts, group in out_of_reach.items())
    return [*advice, *_merge_transfers(transfers, workspace), *_mend_files(skills)]


def _mend_files(skills: Sequence[MappedSkill]) -> Iterator[Advice]:
    """Yield the fix of each condition, with the hosts that it helps."""
    affected: dict[str, _Affected] = {}
    for skill in skills:
        for sighting in skill.sightings:
            for code in sighting.because:
                group = affected.setdefault(code, _Affected())
                group.hosts[sighting.host] = None
                group.skills[skill.name] = None
    for code, group in affected.items():
        condition = CONDITIONS[code]
        yield Advice(f"{condition.says}: {condition.fix}", tuple(group.hosts), tuple(group.skills))


@dataclass(frozen=True, slots=True)
class _Affected:
    """The hosts and skills that a condition concerns, in the order in which they were found."""

    hosts: dict[str, None] = field(default_factory=dict)
    skills: dict[str, None] = field(default_factory=dict)


def _names(records: Sequence[HostRecord]) -> tuple[str, ...]:
    return tuple(record.host for record in records)


# -- the place of one skill --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Transfer:
    """A skill that is to be moved, linked or copied into another folder of skills."""

    kind: Literal["move", "link", "copy", "clash"]
    skill: str
    source: str
    """The skill's folder."""
    target: str
    """The folder of skills. A `clash` means that it has another skill of that name."""
    hosts: tuple[str, ...]


def _place_skill(skill: MappedSkill, unread: Sequence[HostRecord], workspace: Workspace) -> Iterator[_Transfer]:
    """Yield the transfers after which these programs find a skill that they do not read now.

    A skill that some program reads stays where it is and gets links; any other skill is moved first.
    """
    source = skill.folder
    parent = find_parent(source, workspace)
    if not _is_read(skill, workspace):
        if find_position(parent, workspace) in ("below", "beside"):
            parent = workspace.root
        target = os.path.join(parent, choose_folders(unread, parent, workspace)[0])
        readers = [record for record in unread if _reads(record, target, parent, workspace)]
        moved = os.path.join(target, os.path.basename(source))
        if os.path.lexists(moved):
            yield _Transfer("clash", skill.name, source, target, _names(unread))
            return
        yield _Transfer("move", skill.name, source, target, _names(readers))
        unread = [record for record in unread if record not in readers]
        source = moved

    for skills_folder in choose_folders(unread, parent, workspace):
        target = os.path.join(parent, skills_folder)
        readers = [record for record in unread if _reads(record, target, parent, workspace)]
        kind: Literal["link", "copy", "clash"] = "copy"
        if os.path.lexists(os.path.join(target, os.path.basename(source))):
            kind = "clash"
        elif all(record.makes["folder-linked"] in AS_WRITTEN for record in readers):
            kind = "link"
        yield _Transfer(kind, skill.name, source, target, _names(readers))


def _is_read(skill: MappedSkill, workspace: Workspace) -> bool:
    """Return True if some program reads the skill where it is, even one that the map leaves out."""
    for record in load_records().values():
        for path in skill.paths:
            if any(find_read_folders(path.folder, workspace, record)):
                return True
    return False


def _advise_start(hosts: tuple[str, ...], skills: Sequence[MappedSkill], workspace: Workspace) -> Advice:
    folders = list(dict.fromkeys(_shown(find_parent(skill.folder, workspace), workspace) for skill in skills))
    names = tuple(skill.name for skill in skills)
    if len(folders) == 1:
        return Advice(f"start the agent in {folders[0]}, or move the skills up", hosts, names)
    change = f"start the agent in the folder with the skill, such as {folders[0]}, or move the skills up"
    return Advice(change, hosts, names)


def _is_out_of_reach(skill: MappedSkill, workspace: Workspace) -> bool:
    """Return True if programs would read the skill if they started in its part of the repository."""
    parent = find_parent(skill.folder, workspace)
    if find_position(parent, workspace) not in ("below", "beside"):
        return False
    return not _is_read(skill, workspace) and _is_read(skill, Workspace.exactly(parent))


def choose_folders(records: Sequence[HostRecord], parent: str, workspace: Workspace) -> list[str]:
    """Return the fewest folders of skills that these programs read in `parent`, the most widely read first."""
    readers: dict[str, set[str]] = {}
    for record in records:
        for skills_folder, positions in record.folders.items():
            if find_position(parent, workspace) in positions:
                readers.setdefault(skills_folder, set()).add(record.host)

    left = set(_names(records))
    chosen = []
    while left:
        best = max(sorted(readers), key=lambda skills_folder: len(readers[skills_folder] & left), default="")
        if not best or not readers[best] & left:
            break
        chosen.append(best)
        left -= readers[best]
    return chosen


def _reads(record: HostRecord, target: str, parent: str, workspace: Workspace) -> bool:
    skills_folder = os.path.relpath(target, parent)
    return find_position(parent, workspace) in record.folders.get(skills_folder, ())


def find_parent(folder: str, workspace: Workspace) -> str:
    """Return the folder that a skill belongs to: the one above `.agents/skills`, `skills` and the like.

    A skill in any other folder belongs to the root.
    """
    for outer in workspace.outer:
        if is_inside(folder, outer):
            return os.path.dirname(os.path.dirname(outer))
    parts = os.path.relpath(os.path.dirname(folder), workspace.root).split("/")
    for index, part in enumerate(parts):
        if part == "skills" or (part.startswith(".") and part != "."):
            return os.path.join(workspace.root, *parts[:index])
    return workspace.root


# -- several skills at once --------------------------------------------------------------------------------------------


def _merge_transfers(transfers: Sequence[_Transfer], workspace: Workspace) -> Iterator[Advice]:
    """Yield one advice for all skills that go from one folder to another."""
    groups: dict[tuple[str, str, str, tuple[str, ...]], list[_Transfer]] = {}
    moves_first = sorted(transfers, key=lambda transfer: transfer.kind != "move")
    for transfer in moves_first:
        key = (transfer.kind, os.path.dirname(transfer.source), transfer.target, transfer.hosts)
        groups.setdefault(key, []).append(transfer)
    for group in groups.values():
        names = tuple(transfer.skill for transfer in group)
        yield Advice(_describe(group, workspace), group[0].hosts, names, _make_command(group, workspace))


def _describe(group: Sequence[_Transfer], workspace: Workspace) -> str:
    first = group[0]
    source = _shown(first.source, workspace)
    if len(group) > 1:
        source = f"{len(group):,} skills of {_shown(os.path.dirname(first.source), workspace)}"
    target = _shown(first.target, workspace)
    if first.kind == "clash":
        return f"{target} has another skill in a folder of the same name as {source}: rename one, or keep one"
    if first.kind == "link":
        return f"link {source} in {target}"
    return f"{first.kind} {source} to {target}"


def _make_command(group: Sequence[_Transfer], workspace: Workspace) -> str:
    target = group[0].target
    if group[0].kind == "link":
        sources = [os.path.relpath(transfer.source, target) for transfer in group]
        command = ["ln", "-s"]
    elif group[0].kind == "move":
        sources = [_shown(transfer.source, workspace) for transfer in group]
        command = ["mv"]
    else:
        return ""
    words = [*command, *map(_operand, sources), _operand(f"{_shown(target, workspace)}/")]
    return _in_folder(target, words, workspace)


def _in_folder(folder: str, words: Sequence[str], workspace: Workspace) -> str:
    """Return a command for a folder that is made first if it does not exist."""
    command = shlex.join(words)
    if os.path.isdir(folder):
        return command
    return f"{shlex.join(['mkdir', '-p', _operand(_shown(folder, workspace))])} && {command}"


def _operand(path: str) -> str:
    """Return a path as a command takes it: a name such as `-t` is an option, and zsh replaces `=make`."""
    is_plain = path[:1].isalnum() or path[:1] in "._/"
    return path if is_plain else f"./{path}"


def _shown(path: str, workspace: Workspace) -> str:
    return os.path.relpath(path, workspace.root)


# -- whole folders -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _FolderLink:
    """A folder of skills that is to be found under another name, too."""

    link: str
    folder: str
    hosts: tuple[str, ...]
    skills: tuple[str, ...]


def _find_folder_links(
    skills: Sequence[MappedSkill], workspace: Workspace, programs: Sequence[HostRecord]
) -> list[_FolderLink]:
    """Return links of whole folders of skills, which serve skills that are added later, too.

    That works if the same programs read none of a folder's skills, and the place of the link is free and wanted by no
    other folder.
    """
    groups: dict[str, list[MappedSkill]] = {}
    for skill in skills:
        groups.setdefault(os.path.dirname(skill.folder), []).append(skill)

    links = []
    for folder, group in groups.items():
        if len(group) < 2 or not all(_is_read(skill, workspace) for skill in group):
            continue
        if any(is_inside(other, folder) for other in groups):
            continue
        unread = [
            record
            for record in programs
            if record.follows_linked_folders and all(_is_unread(skill, record.host) for skill in group)
        ]
        parent = find_parent(group[0].folder, workspace)
        for skills_folder in choose_folders(unread, parent, workspace):
            link = os.path.join(parent, skills_folder)
            readers = [record for record in unread if _reads(record, link, parent, workspace)]
            if not os.path.lexists(link):
                links.append(_FolderLink(link, folder, _names(readers), tuple(skill.name for skill in group)))
    counts = Counter(link.link for link in links)
    return [link for link in links if counts[link.link] == 1]


def _advise_link(link: _FolderLink, workspace: Workspace) -> Advice:
    above = os.path.dirname(link.link)
    words = ["ln", "-s", _operand(os.path.relpath(link.folder, above)), _operand(_shown(link.link, workspace))]
    change = f"make {_shown(link.link, workspace)} a link to {_shown(link.folder, workspace)}"
    return Advice(change, link.hosts, link.skills, _in_folder(above, words, workspace))


def _is_unread(skill: MappedSkill, host: str) -> bool:
    return any(sighting.host == host and sighting.state == "unread" for sighting in skill.sightings)
