"""What is done with installed skills: install new ones, bring the folders in line with the lock, remove."""

import os
import posixpath
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from skillshelf.errors import RegistryError
from skillshelf.registry._installation import Installation
from skillshelf.registry._kept import keep, recall
from skillshelf.registry._lock import LockedSkill, Origin, Pin, SkillsLock, read_lock
from skillshelf.registry._package import SkillContent, read_content
from skillshelf.registry._sources import open_source
from skillshelf.registry._status import Known, SkillStatus, compare, load_known
from skillshelf.registry._transaction import Transaction, change_installation
from skillshelf.sources import SKILL_FILES
from skillshelf.text import list_names
from skillshelf.trust import Pending, Snapshot, SnapshotEntry, Trust, take_snapshot

_MAX_LISTED = 10


class NewSkill(NamedTuple):
    """A skill that was fetched and can be installed."""

    locked: LockedSkill
    content: SkillContent

    @property
    def name(self) -> str:
        return self.content.name


def describe_new(origin: Origin, path: str, pin: Pin, content: SkillContent) -> NewSkill:
    """Return a fetched skill with its entry for the lock. `path` is its folder in the source."""
    return NewSkill(LockedSkill(origin._replace(path=path), pin, content.snapshot), content)


@dataclass(frozen=True, slots=True)
class FetchedSkill(Pending):
    """A skill to review before any file of it is on disk. Once it is installed, it can be approved like any other."""

    contents: Mapping[str, bytes] = field(default_factory=dict, repr=False, compare=False)

    before: SkillContent | None = field(default=None, repr=False, compare=False)
    """What it replaces, where nothing needs approval."""

    @property
    def approved(self) -> Snapshot | None:
        if self.before:
            return self.before.snapshot
        return self.copy.snapshot if self.copy else None

    def read(self, entry: SnapshotEntry) -> bytes:
        return self.contents[entry.path]

    def read_approved(self, entry: SnapshotEntry) -> bytes:
        if self.before:
            return self.before.files[entry.path]
        return Pending.read_approved(self, entry)


def describe_review(
    installation: Installation, root: str, new: NewSkill, trust: Trust | None, before: SkillContent | None = None
) -> FetchedSkill:
    """Return a fetched skill as pending, with the version that it replaces if the user approved that.

    Without trust, that is `before`: the user's own skills are approved as they are.
    """
    path = f"{installation.folder}/{new.name}"
    file = next(name for name in SKILL_FILES if name in new.content.files)
    locked = read_lock(installation.lock_path).skills.get(new.name)
    trees = [take_snapshot(installation.folder, new.name).tree, locked.tree if locked else ""]
    return FetchedSkill(
        root=root,
        key=os.path.relpath(path, root),
        name=new.name,
        snapshot=new.content.snapshot,
        location=f"{path}/{file}",
        copy=next(filter(None, map(trust.copy, filter(None, trees))), None) if trust else None,
        before=None if trust else before,
        contents=new.content.files,
    )


def refuse_taken(installation: Installation, lock: SkillsLock, new: NewSkill) -> None:
    """Raise RegistryError if a skill may not be installed over the one that has its name."""
    tree = take_snapshot(installation.folder, new.name).tree
    is_there = os.path.lexists(f"{installation.folder}/{new.name}")
    locked = lock.skills.get(new.name)
    if locked and not _is_same_source(locked.origin, new.locked.origin):
        raise RegistryError(
            f"{new.name!r} is installed from {show_origin(locked.origin)}. `skillshelf remove {new.name}` makes room "
            f"for another one."
        )
    if not is_there or tree == new.content.snapshot.tree:
        return
    if locked is None:
        raise RegistryError(f"There is a skill {new.name!r} in {installation.folder} already, which nobody installed.")
    if locked.upstream or (tree != locked.tree and tree not in load_known(installation).trees):
        raise RegistryError(
            f"{new.name!r} was edited since it was installed. `skillshelf update {new.name}` merges the edits with the "
            f"newer version; `skillshelf remove --yes {new.name}` gives them up."
        )


def _is_same_source(one: Origin, other: Origin) -> bool:
    # A folder may have been given itself, or one above it.
    places = {(origin.kind, posixpath.normpath(f"{origin.address}/{origin.path}")) for origin in (one, other)}
    return len(places) == 1


def show_origin(origin: Origin) -> str:
    """Return a source as a user gives it."""
    text = f"pypi:{origin.address}" if origin.kind == "pypi" else origin.address
    if origin.path:
        text += f"/{origin.path}"
    if origin.asked:
        text += f"@{origin.asked}"
    return text


def install(installation: Installation, new: Sequence[NewSkill]) -> None:
    """Install skills and pin them: all or, with a RegistryError, none."""
    with change_installation(installation) as transaction:
        for skill in new:
            refuse_taken(installation, transaction.lock, skill)
        lock = transaction.lock.with_skills(*(skill.locked for skill in new))
        transaction.commit(lock, [skill.content for skill in new])
        for skill in new:
            with suppress(OSError):  # only a merge of later edits misses it
                keep(skill.content)
        compare(installation, lock)


def remove(installation: Installation, names: Collection[str], *, discard_edits: bool) -> None:
    """Remove installed skills, from the disk and the lock. Raises RegistryError for one that is edited or unknown."""
    with change_installation(installation) as transaction:
        lock = transaction.lock
        unknown = [name for name in names if name not in lock.skills]
        if unknown:
            known = list_names(list(lock.skills), _MAX_LISTED) or "no skills"
            raise RegistryError(f"{unknown[0]!r:.80} is not in {installation.lock_path}, which has: {known}.")
        edited = [status.name for status in find_edited(installation, lock, names)]
        edited += [name for name in names if lock.skills[name].upstream and name not in edited]
        if edited and not discard_edits:
            raise RegistryError(f"{list_names(edited, _MAX_LISTED)}: edited since it was installed. --yes removes it.")
        transaction.commit(lock.without(*names), remove=names)


def find_edited(installation: Installation, lock: SkillsLock, names: Collection[str]) -> list[SkillStatus]:
    """Return those of the skills that have edits: their folder is not as any version that was installed here."""
    return _only_edited([status for status in compare(installation, lock) if status.name in names], installation)


def _only_edited(statuses: Iterable[SkillStatus], installation: Installation) -> list[SkillStatus]:
    trees = load_known(installation).trees
    return [status for status in statuses if status.state == "edited" and status.tree not in trees]


class SyncReport(NamedTuple):
    """What a sync did."""

    installed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    edited: tuple[SkillStatus, ...] = ()
    """Skills that stay as they are, because they have edits."""


def sync(installation: Installation, *, discard_edits: bool = False) -> SyncReport:
    """Bring the folders in line with the lock. Raises RegistryError if a skill cannot be had as the lock pins it.

    Skills with edits stay as they are unless `discard_edits`. So does everything that was not installed.
    """
    with change_installation(installation) as transaction:
        known = load_known(installation)
        lock = transaction.lock
        statuses = compare(installation, lock)
        edited = [] if discard_edits else _only_edited(statuses, installation)
        kept = {status.name for status in edited}
        wanted = [status.skill for status in statuses if status.state != "same" and status.name not in kept]
        gone = list(_find_gone(installation, lock, known))
        if wanted or gone:
            _carry_out(transaction, wanted, gone)
    return SyncReport(tuple(skill.name for skill in wanted), tuple(gone), tuple(edited))


def _carry_out(transaction: Transaction, wanted: Sequence[LockedSkill], gone: Sequence[str]) -> None:
    contents = list(fetch_locked(transaction.installation, wanted))
    transaction.commit(transaction.lock, contents, gone)
    compare(transaction.installation, transaction.lock)


def _find_gone(installation: Installation, lock: SkillsLock, known: Known) -> Iterator[str]:
    """Yield the skills that were installed here, have no edits, and are no longer in the lock."""
    for name in (known.skills.keys() | known.left) - lock.skills.keys():
        if take_snapshot(installation.folder, name).tree in known.trees:
            yield name


def fetch_locked(installation: Installation, skills: Iterable[LockedSkill]) -> Iterator[SkillContent]:
    """Fetch skills exactly as the lock pins them. Raises RegistryError for any that is not."""
    by_source: dict[tuple[Origin, Pin], list[LockedSkill]] = {}
    for skill in skills:
        source = skill.origin._replace(path="")
        by_source.setdefault((source, skill.pin), []).append(skill)
    for (source, pin), group in by_source.items():
        with open_source(source, pin, installation.place, anywhere=installation.is_user) as package:
            for skill in group:
                content = read_content(package, skill.name, skill.origin.path)
                if skill.upstream and content.snapshot.tree == skill.upstream:
                    content = _recall_edited(skill)
                elif content.snapshot.tree != skill.tree:
                    raise RegistryError(
                        f"{skill.name!r} from {show_origin(skill.origin)} is not what the lock pins. "
                        f"`skillshelf add` shows what is there now."
                    )
                yield content


def _recall_edited(skill: LockedSkill) -> SkillContent:
    """Return a skill with the edits that are pinned. Its source does not have them."""
    content = recall(skill.name, skill.tree)
    if content is None:
        raise RegistryError(
            f"{skill.name!r} is pinned with edits, which only your version control has. Restore its folder from there, "
            f"or `skillshelf remove --yes {skill.name}` and add it again without them."
        )
    return content
