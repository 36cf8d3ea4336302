"""What a source has: its files in one version, the skills among them, and the bytes of one skill."""

import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any, NamedTuple, Protocol

from skillshelf.errors import RegistryError
from skillshelf.files import NotPlainFile, hash_content, read_file, system
from skillshelf.registry._installation import Installation
from skillshelf.registry._lock import Origin, Pin, is_installable, is_safe_path
from skillshelf.skillmd import SkillText, Unreadable, decode, read
from skillshelf.sources import SKILL_FILES, SKIPPED_FOLDERS, ListedFiles, Plugin, read_plugin, read_plugins
from skillshelf.text import count_noun, list_names, truncate
from skillshelf.trust import MAX_BYTES, MAX_FILES, Snapshot, SnapshotEntry, take_snapshot

MAX_PACKAGE_FILES = 500_000
"""In one version of a source: the Linux kernel has 90,000."""
_MAX_MANIFEST = 1024 * 1024
"""Bytes of a marketplace.json or plugin.json."""
_MAX_LINKS = 8
_MAX_LISTED = 10


class PackageFile(NamedTuple):
    """A file or link of a package."""

    path: str
    executable: bool = False
    target: str | None = None
    """The target written in a link; None for a file."""
    handle: Any = None
    """What the package finds the bytes by."""


class Package(Protocol):
    """The files of a source in one version."""

    @property
    def pin(self) -> Pin: ...

    @property
    def files(self) -> Mapping[str, PackageFile]:
        """The files and links by path, without folders."""

    def read(self, files: Iterable[PackageFile], limit: int) -> Iterator[bytes]:
        """Yield the bytes of each file. Raises RegistryError if one has more than `limit`."""


class SourceKind(Protocol):
    """A way to get skills from somewhere, such as Git."""

    name: str

    def parse(self, text: str, asked: str, place: str) -> Origin | None:
        """Return what the user means by SOURCE, or None if it is of another kind.

        `asked` is the version given beside it. Addresses on this machine become relative to the folder `place`.
        """

    def open(self, origin: Origin, pin: Pin, place: str) -> AbstractContextManager[Package]:
        """Fetch a source: exactly the pinned version, or the one that was asked for if `pin` is empty."""


class OfferedSkill(NamedTuple):
    """A skill in a package."""

    name: str
    path: str
    """Its folder in the package; empty if the package itself is the skill."""
    text: SkillText | None
    problem: str = ""
    """Why it cannot be installed; empty if it can."""

    @property
    def description(self) -> str:
        return self.text.description if self.text else ""


class SkillContent(NamedTuple):
    """A skill to install: its files, and the snapshot that is pinned and approved."""

    snapshot: Snapshot
    files: Mapping[str, bytes]

    @property
    def name(self) -> str:
        return self.snapshot.name


def find_offered(package: Package, origin: Origin) -> list[OfferedSkill]:
    """Return the skills at and below the origin's path, the shallowest first. Raises RegistryError without any.

    A folder with a SKILL.md is a skill, and everything below it belongs to it.
    """
    found = sorted(_find_skill_files(package, origin.path), key=lambda place: (place.count("/"), place))
    if not found:
        where = f"{origin.address}/{origin.path}".rstrip("/")
        raise RegistryError(f"There is no SKILL.md in {where}.")
    usual_name = origin.address.rstrip("/").rpartition("/")[2].partition(".")[0]
    resolve = _resolver(package)
    readable: dict[str, PackageFile] = {}
    offered = []
    for path in found:
        try:
            readable[path] = resolve(package.files[path])
        except RegistryError as error:
            folder = posixpath.dirname(path)
            problem = str(error).rstrip(".")
            offered.append(OfferedSkill(posixpath.basename(folder) or usual_name, folder, None, problem))
    for path, data in zip(readable, package.read(readable.values(), MAX_BYTES), strict=True):
        folder = posixpath.dirname(path)
        offered.append(_read_offered(folder, posixpath.basename(folder) or usual_name, data))
    return offered


def find_offered_plugins(package: Package, origin: Origin, name: str = "") -> list[Plugin]:
    """Return the plugins of the repository or folder that a package is, with the folders of their skills.

    `name` is that of the plugin if it is one without a manifest of its own.
    """
    prefix = f"{origin.path}/" if origin.path else ""
    files = {path.removeprefix(prefix): file for path, file in package.files.items() if path.startswith(prefix)}
    resolve = _resolver(package)

    def load(path: str) -> bytes | None:
        with suppress(RegistryError):
            [data] = package.read([resolve(files[path])], _MAX_MANIFEST)
            return data
        return None

    listed = ListedFiles(files, load)
    plugins = read_plugins(listed)
    if not plugins and name:
        plugins = [plugin for plugin in [read_plugin(listed, entry={"name": name})] if plugin]
    return [plugin._replace(skills=tuple(f"{prefix}{folder}" for folder in plugin.skills)) for plugin in plugins]


def choose_plugin(plugins: Sequence[Plugin], name: str) -> Plugin:
    """Return the plugin of this name. Raises RegistryError if there is none, or nothing of it can be used."""
    for plugin in plugins:
        if plugin.name == name and not plugin.problem:
            return plugin
        if plugin.name == name:
            raise RegistryError(f"The plugin {name!r} cannot be used: {plugin.problem}.")
    known = list_names(sorted(plugin.name for plugin in plugins), _MAX_LISTED)
    raise RegistryError(f"There is no plugin {truncate(name, 80)!r} there, but {known or 'none at all'}.")


def _find_skill_files(package: Package, below: str) -> list[str]:
    folders: dict[str, str] = {}
    for path in package.files:
        folder, name = posixpath.split(path)
        is_below = not below or folder == below or folder.startswith(f"{below}/")
        # A folder with both has its SKILL.md read.
        if is_below and name in SKILL_FILES and folders.get(folder, path) >= path:
            folders[folder] = path
    return [path for folder, path in folders.items() if not _is_inside_another(folder, below, folders)]


def _is_inside_another(folder: str, below: str, folders: Mapping[str, str]) -> bool:
    parts = folder.split("/")
    if not SKIPPED_FOLDERS.isdisjoint(folder.removeprefix(below).split("/")):
        return True
    if "" in folders and not below and folder and not parts[0].startswith("."):
        return True  # the package is itself a skill: other skills are in its dot-folders only
    return any("/".join(parts[:depth]) in folders for depth in range(1, len(parts)))


def _read_offered(folder: str, usual_name: str, data: bytes) -> OfferedSkill:
    try:
        text = read(decode(data), usual_name)
    except Unreadable as error:
        return OfferedSkill(usual_name, folder, None, error.diagnostic.message)
    problem = ""
    if not is_installable(text.name):
        problem = f"{text.name!r:.80} cannot be the name of a folder"
    elif folder and not is_safe_path(folder):
        problem = f"{folder!r:.200} cannot be a path in skills.lock"
    return OfferedSkill(text.name, folder, text, problem)


def choose_offered(offered: Sequence[OfferedSkill], names: Sequence[str]) -> list[OfferedSkill]:
    """Return the skills of these names or paths. Raises RegistryError for one that is missing or ambiguous.

    Of several with one name, the shallowest is meant if they are all alike.
    """
    chosen: dict[str, OfferedSkill] = {}
    for name in names:
        wanted = name.strip("/")
        matches = [skill for skill in offered if skill.path == wanted]
        matches = matches or [skill for skill in offered if skill.name == wanted]
        if not matches:
            known = list_names(sorted({skill.name for skill in offered}), _MAX_LISTED)
            raise RegistryError(f"There is no skill {truncate(name, 80)!r} there, but {known}.")
        if len({skill.text.text if skill.text else "" for skill in matches}) > 1:
            places = list_names([skill.path for skill in matches], _MAX_LISTED)
            raise RegistryError(f"Several skills there are named {name!r}. Give the path of one: {places}.")
        skill = matches[0]
        if skill.problem:
            raise RegistryError(f"{name!r} cannot be installed: {skill.problem}.")
        chosen[skill.name] = skill
    return list(chosen.values())


def read_content(package: Package, name: str, folder: str) -> SkillContent:
    """Read all files of the skill in a folder of a package. Raises RegistryError if it cannot be installed as it is."""
    resolve = _resolver(package)
    prefix = f"{folder}/" if folder else ""
    files: dict[str, PackageFile] = {}
    for path, file in package.files.items():
        inner = path.removeprefix(prefix)
        if not path.startswith(prefix) or (not folder and _belongs_to_others(inner)):
            continue
        if not is_safe_path(inner):
            raise RegistryError(f"{name!r} cannot be installed: {inner!r:.200} cannot be the path of a file.")
        files[inner] = resolve(file)
    if len(files) > MAX_FILES:
        raise RegistryError(f"{name!r} cannot be installed: it has {count_noun(len(files), 'file')}, over {MAX_FILES}.")

    room = MAX_BYTES
    contents = {}
    entries = []
    for path, data in zip(files, package.read(files.values(), MAX_BYTES), strict=True):
        room -= len(data)
        if room < 0:
            raise RegistryError(f"{name!r} cannot be installed: its files have more than {MAX_BYTES >> 20} MiB.")
        contents[path] = data
        entries.append(SnapshotEntry(path, len(data), hash_content(data), files[path].executable))
    return SkillContent(Snapshot(name, tuple(sorted(entries))), contents)


def read_installed(installation: Installation, name: str) -> SkillContent:
    """Return a skill as it is on disk. Raises RegistryError if that changes meanwhile, or FileNotFoundError."""
    snapshot = take_snapshot(installation.folder, name).snapshot
    if snapshot.fault:
        system.stat(f"{installation.folder}/{name}", follow_symlinks=False)
        raise RegistryError(f"{name!r} cannot be read: {snapshot.fault}.")
    files = {}
    for entry in snapshot.entries:
        if entry.target is not None:
            raise RegistryError(f"{name!r} cannot be updated: {entry.path!r:.200} is a link. Put a file in its place.")
        try:
            data = read_file(installation.folder, [name, *entry.path.split("/")], 0, entry.size + 1).data
        except (OSError, NotPlainFile):
            data = None
        if data is None or hash_content(data) != entry.sha256:
            raise RegistryError(f"{name!r} is being changed by another program. Try again.")
        files[entry.path] = data
    return SkillContent(snapshot, files)


def _belongs_to_others(path: str) -> bool:
    """Return True for a file beside the one skill of a package: its dot-folders and dependencies."""
    top, slash, _ = path.partition("/")
    return bool(slash) and (top.startswith(".") or top in SKIPPED_FOLDERS)


def _resolver(package: Package) -> "_Resolver":
    return _Resolver(package.files)


class _Resolver:
    """Finds the file that a link leads to: a plain file of the same package, of which the skill gets a copy."""

    def __init__(self, files: Mapping[str, PackageFile]) -> None:
        self._files = files

    def __call__(self, file: PackageFile) -> PackageFile:
        found: PackageFile | None = file
        for _ in range(_MAX_LINKS):
            if found is None or found.target is None:
                break
            target = posixpath.normpath(posixpath.join(posixpath.dirname(found.path), found.target))
            found = self._files.get(target)
        if found is None or found.target is not None:
            raise RegistryError(f"{file.path!r:.200} is a link that leads to no file of the same source.")
        return found
