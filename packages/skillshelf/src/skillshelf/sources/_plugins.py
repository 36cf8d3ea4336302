"""Plugins of a repository: which skills belong to which, as marketplace.json and plugin.json say.

Claude Code, Codex and Agent Plugins 1.0 are read. Skills only: hooks, commands and servers are named, and never run.
"""

import json
import os
import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

from skillshelf.files import NotPlainFile, open_below, read_file, system
from skillshelf.sources._names import explain_refused_path
from skillshelf.sources._tree import SKILL_FILES
from skillshelf.text import clean_line, truncate

MARKETPLACES = (".claude-plugin/marketplace.json", ".agents/plugins/marketplace.json")
AGENT_PLUGIN = "plugin.json"
_MANIFESTS = (AGENT_PLUGIN, ".claude-plugin/plugin.json", ".codex-plugin/plugin.json")
_SCHEMAS = "https://agent-plugins.org/"
_SCHEMA = "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json"
_NAME = re.compile(r"(?!.*(?:--|\.\.))[A-Za-z0-9](?:[\w.-]{0,62}[A-Za-z0-9])?", re.ASCII)
_MAX_MANIFEST = 1024 * 1024
_NOT_RUN = {
    "hooks": ("hooks",),
    "commands": ("commands",),
    "agents": ("agents",),
    "MCP servers": ("mcpServers", ".mcp.json", "mcp.json"),
    "LSP servers": ("lspServers", ".lsp.json"),
}
"""What a plugin can have beside skills, by the fields of its manifest and the files at its root."""


class Opener(Protocol):
    """The files of a repository, on disk or in a commit. Paths are relative, and `""` is the repository itself."""

    def read(self, path: str) -> bytes | None:
        """Return the bytes of a file, or None if it is not there or cannot be read."""

    def list_names(self, folder: str) -> Collection[str]:
        """Return the names of the files and folders in a folder; none if it is not there."""


class FolderOpener:
    """The files below a folder on disk. Links are not followed."""

    def __init__(self, root: str) -> None:
        self._root = root

    def read(self, path: str) -> bytes | None:
        if not os.path.lexists(f"{self._root}/{path}"):  # most are not there, and the gate takes 40 µs to say so
            return None
        try:
            return read_file(self._root, path.split("/"), 0, _MAX_MANIFEST).data
        except (OSError, NotPlainFile):
            return None

    def list_names(self, folder: str) -> Collection[str]:
        try:
            with open_below(self._root, folder.split("/") if folder else []) as fd:
                return system.listdir(fd)
        except (OSError, NotPlainFile):
            return ()


class ListedFiles:
    """Files whose paths are known, such as those of a commit. `read` returns the bytes of one."""

    def __init__(self, paths: Iterable[str], read: Callable[[str], bytes | None]) -> None:
        self._names: dict[str, set[str]] = {}
        self._paths = set(paths)
        self._read = read
        for path in self._paths:
            while path:
                folder, name = posixpath.split(path)
                self._names.setdefault(folder, set()).add(name)
                path = folder

    def read(self, path: str) -> bytes | None:
        return self._read(path) if path in self._paths else None

    def list_names(self, folder: str) -> Collection[str]:
        return self._names.get(folder, ())


class PluginOrigin(NamedTuple):
    """Where a plugin is that is not in the repository of its marketplace."""

    kind: str
    """`git`, or one of those that are not fetched: `npm`, `archive`, `command` and whatever comes."""
    address: str
    """`owner/repo`, or the URL of a Git repository."""
    path: str = ""
    ref: str = ""
    sha: str = ""
    """The commit; it counts before `ref`."""


class Plugin(NamedTuple):
    """A plugin and its skills."""

    name: str
    description: str = ""
    skills: tuple[str, ...] = ()
    """The folders of its skills, in the repository."""
    origin: PluginOrigin | None = None
    """Where it is, if it is not in this repository."""
    not_run: tuple[str, ...] = ()
    """What it has beside skills, such as `hooks`: nothing of it is used."""
    problem: str = ""
    """Why nothing of it can be used; empty if it can."""


def read_plugins(files: Opener) -> list[Plugin]:
    """Return the plugins of a repository: those of its marketplaces, or the one that the repository is."""
    plugins: dict[str, Plugin] = {}
    for path in MARKETPLACES:
        marketplace = _read_object(files, path)
        entries = marketplace.get("plugins")
        folder = _join("", _text(_mapping(marketplace.get("metadata")).get("pluginRoot"))) or ""
        for entry in entries if isinstance(entries, list) else ():
            plugin = _read_entry(files, _mapping(entry), folder)
            plugins.setdefault(plugin.name, plugin)
    if plugins:
        return list(plugins.values())
    own = read_plugin(files)
    return [own] if own else []


def find_plugins(root: str, skills: Collection[str]) -> list[Plugin]:
    """Return the plugins on disk that these skills belong to, given by their folders below the root."""
    files = FolderOpener(root)
    found = {plugin.name: plugin for plugin in read_plugins(files) if plugin.origin is None}
    grouped = {folder for plugin in found.values() for folder in plugin.skills}
    parents = [posixpath.split(posixpath.dirname(folder)) for folder in skills if folder not in grouped]
    for folder in sorted({parent for parent, name in parents if name == "skills"}):
        plugin = read_plugin(files, folder)
        if plugin:
            found.setdefault(plugin.name, plugin)
    return [plugin for plugin in found.values() if plugin.problem or not set(skills).isdisjoint(plugin.skills)]


def read_plugin(files: Opener, folder: str = "", entry: Mapping[str, Any] | None = None) -> Plugin | None:
    """Return the plugin in a folder; None without a manifest. `entry` is that of a marketplace, and counts as one."""
    is_strict = entry is None or bool(entry.get("strict", True))
    manifest = _read_manifest(files, folder) if is_strict else {}
    if not manifest and entry is None:
        return None
    schema = _text(manifest.get("$schema"))
    is_agent_plugin = schema.startswith(_SCHEMAS)
    problem = ""
    if is_agent_plugin and schema != _SCHEMA:
        problem = "it follows another version of Agent Plugins than 1.0.0"

    fields = {**manifest, **(entry or {})}
    name = _text(fields.get("name"))
    if not _NAME.fullmatch(name):
        problem = f"{truncate(clean_line(name), 80)!r} cannot be the name of a plugin"
    skills: list[str] = []
    if not problem:
        paths = _paths(entry or {})
        if is_strict or not paths:
            paths.append("skills")
        if not is_agent_plugin:
            paths += _paths(manifest)
        skills = list(_find_skills(files, folder, paths))
    return Plugin(
        name=truncate(clean_line(name), 80),
        description=clean_line(_text(fields.get("description"))),
        skills=tuple(dict.fromkeys(skills)),
        not_run=tuple(_find_not_run(files, folder, fields)),
        problem=problem,
    )


def _read_manifest(files: Opener, folder: str) -> Mapping[str, Any]:
    for path in _MANIFESTS:
        manifest = _read_object(files, posixpath.join(folder, path))
        # Other programs have files named plugin.json.
        is_other = path == AGENT_PLUGIN and not _text(manifest.get("$schema")).startswith(_SCHEMAS)
        if manifest and not is_other:
            return manifest
    return {}


def _read_entry(files: Opener, entry: Mapping[str, Any], plugin_root: str) -> Plugin:
    """Return the plugin of an entry in a marketplace."""
    source = entry.get("source")
    described = _mapping(source)
    path = source if isinstance(source, str) else None
    if described.get("source") == "local":
        path = _text(described.get("path"))
    name = truncate(clean_line(_text(entry.get("name"))), 80)
    if path is None:
        return Plugin(name, clean_line(_text(entry.get("description"))), origin=_read_origin(described))
    folder = _join(plugin_root, path)
    if folder is None:
        return Plugin(name, problem=f"{truncate(clean_line(path), 80)!r} is not a path in the repository")
    plugin = read_plugin(files, folder, entry)
    assert plugin
    return plugin


def _read_origin(source: Mapping[str, Any]) -> PluginOrigin:
    kind = _text(source.get("source"))
    address = _text(source.get("repo") or source.get("url") or source.get("package") or source.get("command"))
    if kind in ("github", "url", "git", "git-subdir"):
        kind = "git"
    place = (_join("", _text(source.get("path"))) or "", _text(source.get("ref")), _text(source.get("sha")))
    return PluginOrigin(kind, clean_line(address), *map(clean_line, place))


def _paths(fields: Mapping[str, Any]) -> list[str]:
    skills = fields.get("skills")
    return [path for path in (skills if isinstance(skills, list) else [skills]) if isinstance(path, str)]


def _find_skills(files: Opener, folder: str, paths: Sequence[str]) -> Iterator[str]:
    """Yield the folders of skills: each path is a skill, or a folder of skills."""
    for path in paths:
        place = _join(folder, path)
        if place is None:
            continue
        names = files.list_names(place)
        if any(name in names for name in SKILL_FILES):
            yield place
            continue
        for name in sorted(names):
            inner = posixpath.join(place, name)
            if any(file in SKILL_FILES for file in files.list_names(inner)):
                yield inner


def _find_not_run(files: Opener, folder: str, fields: Mapping[str, Any]) -> Iterator[str]:
    names = files.list_names(folder)
    for what, signs in _NOT_RUN.items():
        if any(fields.get(sign) or sign in names for sign in signs):
            yield what


def _join(folder: str, path: str) -> str | None:
    """Return a path that a manifest has, from the root of the repository on; None if it cannot be one in it."""
    joined = posixpath.normpath(posixpath.join(folder, path))
    if joined == ".":
        return ""
    return None if explain_refused_path(joined) else joined


def _read_object(files: Opener, path: str) -> Mapping[str, Any]:
    with suppress(ValueError, RecursionError):
        return _mapping(json.loads(files.read(path) or b"{}"))
    return {}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
