"""Skills that installed Python packages ship: `<package>/.agents/skills/<name>/`, and Agent Plugins.

A package is never imported. Its RECORD names the files and their hashes, and only those files are read.

`skillshelf list` opens this in every Python project, and few have such packages: imports that only those need are late.
"""

import os
import re
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

from skillshelf.errors import (
    ReferenceNotFoundError,
    ReferenceUnreadableError,
    SkillUnreadableError,
    SourceError,
)
from skillshelf.files import NotPlainFile, Page, file_stamp, is_at_or_inside, is_fresh, read_file, system
from skillshelf.skillmd import Unreadable, decode, read
from skillshelf.skills import Diagnostic, Found, SkillDescriptor
from skillshelf.sources._limits import MAX_SKILL_BYTES
from skillshelf.sources._memory import choose_references
from skillshelf.sources._names import explain_refused_path
from skillshelf.sources._source import ENVIRONMENT
from skillshelf.text import clean_line, count_noun, list_names
from skillshelf.text.toml import parse_toml

PROJECT_FILE = "pyproject.toml"
_SKILLS = "/.agents/skills/"
_PLUGIN_MARKER = "agent_plugins.json"
_MAX_PROJECT_FILE = 1024 * 1024
_MAX_RECORD = 64 * 1024 * 1024
_MAX_NAMED = 5
_MAX_EMPTY = 8 * 1024
"""Characters in the RECORD of a distribution that has no files of its own."""
_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][\w.-]*)")
_REQUIRES = re.compile(r"^Requires-Dist:\s*([A-Za-z0-9][\w.-]*)(?!.*;.*\bextra\b)", re.M)


class InstalledSkill(NamedTuple):
    """A skill that a distribution installed."""

    distribution: str
    version: str
    files: Mapping[str, str]
    """The hash of each file as RECORD has it, by path in the skill's folder."""


class _Differs(Exception):
    """A file is not as its distribution installed it."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        super().__init__(reason)


class EnvironmentSource:
    """The skills of the installed packages that a project's pyproject.toml names.

    They are read from the running environment, or from that of another Python. Every file is compared with the hash
    that was recorded when the package was installed.
    """

    name = ENVIRONMENT
    uses_cache = True

    def __init__(self, project: str | os.PathLike[str] = ".", python: str | os.PathLike[str] | None = None) -> None:
        """`project` is the folder of the pyproject.toml. `python` is a Python or the folder of its environment.

        Raises SourceError if `python` is neither.
        """
        self.project = os.path.realpath(os.path.expanduser(project))
        self.root = os.path.realpath(find_site_packages(python))
        """The folder that packages are installed in."""
        self.fault = ""
        """Why no package is read; empty if pyproject.toml says which."""
        self._stamp: object = None
        self._mentioned: list[str] = []
        """The folders with the metadata of distributions that pyproject.toml may name."""
        self._skills: dict[str, InstalledSkill] = {}
        self._stamps: dict[str, object] = {}
        self._editable: list[str] = []
        self._refused: dict[str, Diagnostic] = {}
        """By key, what differs from RECORD."""

    def refresh(self, changed: Collection[str] | None = None) -> Mapping[str, Found | None]:
        changes: dict[str, Found | None] = {}
        stamp = self._take_stamp()
        if stamp is None or stamp != self._stamp:
            known = self._skills
            self._skills = self._find_skills()
            self._stamp = self._take_stamp()
            for key in known:
                if known[key] != self._skills.get(key):
                    self._stamps.pop(key, None)
                    self._refused.pop(key, None)
                    changes[key] = None
        for key, skill in self._skills.items():
            now = _stamp([f"{self.root}/{key}/{path}" for path in skill.files])
            if now is None or now != self._stamps.get(key):
                self._stamps[key] = now
                changes[key] = self._read_skill(key, skill)
        return changes

    def instructions(self, key: str, descriptor: SkillDescriptor) -> str:
        try:
            return read(decode(self._load(key, os.path.basename(descriptor.location)))).instructions
        except (_Differs, Unreadable) as fault:
            raise SkillUnreadableError(descriptor.name, str(fault)) from None

    def reference(self, key: str, descriptor: SkillDescriptor, path: str, offset: int, limit: int) -> Page:
        if key not in self._skills or path not in self._skills[key].files:
            raise ReferenceNotFoundError(descriptor.name, path, descriptor.references)
        try:
            data = self._load(key, path)
        except _Differs as fault:
            raise ReferenceUnreadableError(descriptor.name, path, str(fault)) from None
        return Page(data[offset : offset + limit], offset, len(data))

    def has_file(self, key: str, path: str) -> bool:
        skill = self._skills.get(key)
        return skill is not None and path in skill.files

    def describe(self) -> list[str]:
        """Tell the user in sentences which skills of installed packages are not used, and why."""
        if self.fault:
            return [self.fault]
        sentences = []
        others = self._find_others()
        if others:
            packages = count_noun(len(others), "installed package")
            names = clean_line(list_names(others, _MAX_NAMED))
            sentences.append(f"Left out: {packages} with skills that {PROJECT_FILE} does not name ({names}).")
        sentences += [clean_line(f"{note.path}: {note.message}. Fix: {note.fix}.") for note in self._refused.values()]
        for name in self._editable:
            sentences.append(f"Left out: {name}, an editable install, whose files have no hashes.")
        return sentences

    @property
    def installed(self) -> Mapping[str, InstalledSkill]:
        """The skills by key: their folder below the root."""
        return self._skills

    # -- finding ------------------------------------------------------------------------------------------------------

    def _take_stamp(self) -> object:
        """Return a value that changes with pyproject.toml and with what is installed; None if only a look can tell."""
        records = [f"{self.root}/{folder}/RECORD" for folder in self._mentioned]
        return _stamp([f"{self.project}/{PROJECT_FILE}", self.root, *records])

    def _list_distributions(self) -> list[str]:
        return [name for name in self._list_installed() if name.endswith(".dist-info")]

    def _list_installed(self) -> list[str]:
        try:
            return sorted(system.listdir(self.root))
        except OSError:
            return []

    def _find_skills(self) -> dict[str, InstalledSkill]:
        self._editable = []
        folders = {_split(folder)[0]: folder for folder in self._list_distributions()}
        text = self._read_project_file()
        spelled = _normalize(text)
        # Parsing TOML takes 3 ms, which a project without such packages need not pay.
        records = {name: self._read_record(folders[name]) for name in folders if name in spelled}
        self._mentioned = [folders[name] for name in records]
        if not any(record.is_of_interest for record in records.values()):
            return {}

        skills: dict[str, InstalledSkill] = {}
        required = self._parse_project_file(text)
        for name in sorted(required):
            if name in records and records[name].is_empty:  # it stands for what it requires, as `pydantic-ai` does
                required |= {*map(_normalize, _REQUIRES.findall(self._read_text(folders[name], "METADATA")))}
        for name in sorted(required & folders.keys()):
            record = records.get(name) or self._read_record(folders[name])
            if record.is_editable and self._has_editable_skills(folders[name]):
                self._editable.append(name)
            skills.update(self._list_skills(folders[name], record))
        return skills

    def _read_project_file(self) -> str:
        self.fault = ""
        try:
            data = read_file(self.project, [PROJECT_FILE], 0, _MAX_PROJECT_FILE).data
        except FileNotFoundError:
            self.fault = f"Skills of installed packages are used if a {PROJECT_FILE} names the packages."
        except (OSError, NotPlainFile) as error:
            self.fault = f"{PROJECT_FILE} cannot be read: {error}."
        else:
            return data.decode(errors="replace")
        return ""

    def _parse_project_file(self, text: str) -> set[str]:
        """Return the names of the distributions that the project depends on directly."""
        try:
            document = parse_toml(text.encode())
        except ValueError as error:
            self.fault = f"{PROJECT_FILE} cannot be read: {clean_line(str(error))}."
            return set()
        project = _mapping(document.get("project"))
        groups = [project.get("dependencies")]
        groups += _mapping(project.get("optional-dependencies")).values()
        groups += _mapping(document.get("dependency-groups")).values()
        names = set()
        for group in groups:
            for requirement in group if isinstance(group, list) else ():
                match = _REQUIREMENT.match(requirement) if isinstance(requirement, str) else None
                if match:
                    names.add(_normalize(match[1]))
        return names

    def _list_skills(self, folder: str, record: "_Record") -> Iterator[tuple[str, InstalledSkill]]:
        """Yield the skills of a distribution, each with its folder below the root."""
        files: dict[str, dict[str, str]] = {}
        plugin = self._find_plugin(folder, record)
        for path, sha256 in record.hashes().items():
            place = _split_skill_path(path, plugin)
            if place:
                files.setdefault(place[0], {})[place[1]] = sha256
        name, version = _split(folder)
        for key, inner in files.items():
            if "SKILL.md" in inner:
                yield key, InstalledSkill(name, version, inner)

    def _find_plugin(self, folder: str, record: "_Record") -> str:
        """Return the folder of the skills of the Agent Plugin that a distribution announces; empty if it has none."""
        marker = f"{folder}/{_PLUGIN_MARKER}"
        if not record.has_plugin or marker not in record.hashes():
            return ""
        import json

        from skillshelf.sources._plugins import ListedFiles, read_plugin

        try:
            root = json.loads(self._read_verified(marker, record.hashes()[marker])).get("root")
        except (_Differs, ValueError, AttributeError, RecursionError):
            return ""
        if not isinstance(root, str) or explain_refused_path(root):
            return ""

        def load(path: str) -> bytes | None:
            with suppress(_Differs):
                return self._read_verified(path, record.hashes()[path])
            return None

        plugin = read_plugin(ListedFiles(record.hashes(), load), root)
        return f"{root}/skills" if plugin and not plugin.problem else ""

    def _has_editable_skills(self, folder: str) -> bool:
        """Return True if an editable install from elsewhere has a skill in one of its packages, in the usual places."""
        import json
        from urllib.parse import unquote, urlsplit

        with suppress(ValueError, AttributeError, RecursionError, OSError):
            code = unquote(urlsplit(json.loads(self._read_text(folder, "direct_url.json")).get("url")).path)
            if is_at_or_inside(os.path.realpath(code), self.project):
                return False  # the project's own skills are found there
            for place in (code, f"{code}/src"):
                names = system.listdir(place) if os.path.isdir(place) else []
                if any(os.path.isdir(f"{place}/{name}{_SKILLS}") for name in names):
                    return True
        return False

    def _find_others(self) -> list[str]:
        """Return the packages with skills that the project does not name. Nothing of the skills is read."""
        used = {key.partition("/")[0] for key in self._skills}
        folders = {_split(folder)[0]: folder for folder in self._list_distributions()}
        others = []
        for package in self._list_installed():
            if package in used or package.endswith(".dist-info"):
                continue
            if package.endswith(".agent-plugin"):
                others.append(_normalize(package.partition("-")[0]))
            elif os.path.isdir(f"{self.root}/{package}{_SKILLS}"):
                others.append(self._find_distribution(package, folders))
        return others

    def _find_distribution(self, package: str, folders: Mapping[str, str]) -> str:
        """Return the distribution that a package is from. Reading every RECORD would take 50 ms."""
        for name, folder in folders.items():
            is_alike = name.startswith(_normalize(package))
            if is_alike and f"{package}{_SKILLS}" in self._read_text(folder, "RECORD"):
                return name
        return package

    # -- reading ------------------------------------------------------------------------------------------------------

    def _read_skill(self, key: str, skill: InstalledSkill) -> Found:
        location = f"{self.root}/{key}/SKILL.md"
        self._refused.pop(key, None)
        try:
            contents = {path: self._load(key, path) for path in skill.files}
            text = read(decode(contents["SKILL.md"]), key)
        except Unreadable as fault:
            return Found(None, (replace(fault.diagnostic, path=location),))
        except _Differs as fault:
            message = f"the skill of {skill.distribution} {skill.version} is not used: {fault}"
            fix = f"install {skill.distribution} again"
            path = f"{self.root}/{key}/{fault.path}"
            self._refused[key] = Diagnostic("error", "record-mismatch", message, path, fix=fix)
            return Found(None, (self._refused[key],))
        references, more = choose_references(text, list(contents))
        descriptor = text.describe(
            references=references, source=skill.distribution, location=location, more_references=more
        )
        return Found(descriptor, tuple(replace(note, path=location) for note in text.diagnostics))

    def _load(self, key: str, path: str) -> bytes:
        """Read a file of a skill. Raises _Differs."""
        skill = self._skills.get(key)
        if skill is None or path not in skill.files:
            raise _Differs(path, "its package is no longer installed")
        try:
            return self._read_verified(f"{key}/{path}", skill.files[path])
        except _Differs as fault:
            raise _Differs(path, str(fault)) from None

    def _read_verified(self, path: str, sha256: str) -> bytes:
        try:
            data = read_file(self.root, path.split("/"), 0, MAX_SKILL_BYTES + 1).data
        except (OSError, NotPlainFile) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise _Differs(path, f"{path.rpartition('/')[2]} cannot be read: {reason}") from None
        from base64 import urlsafe_b64encode
        from hashlib import sha256 as hash_sha256

        digest = urlsafe_b64encode(hash_sha256(data).digest()).decode().rstrip("=")
        if digest != sha256:
            raise _Differs(path, f"{path.rpartition('/')[2]} is not as its package installed it")
        return data

    def _read_text(self, folder: str, name: str) -> str:
        try:
            return read_file(self.root, [folder, name], 0, _MAX_RECORD).data.decode(errors="replace")
        except (OSError, NotPlainFile):
            return ""

    def _read_record(self, folder: str) -> "_Record":
        text = self._read_text(folder, "RECORD")
        is_editable = ".pth," in text and '"editable"' in self._read_text(folder, "direct_url.json")
        return _Record(folder, text, is_editable)


class _Record:
    """The files of a distribution, with their hashes."""

    def __init__(self, folder: str, text: str, is_editable: bool) -> None:
        self._text = text
        self._hashes: dict[str, str] | None = None
        self.has_plugin = f"{folder}/{_PLUGIN_MARKER}," in text
        self.is_editable = is_editable
        own = (f"{folder}/", "../")
        self.is_empty = len(text) < _MAX_EMPTY and all(line.startswith(own) for line in text.splitlines())
        """True for a distribution without files of its own."""

        self.has_skills = self.has_plugin or _SKILLS in text

    @property
    def is_of_interest(self) -> bool:
        return self.has_skills or self.is_empty or self.is_editable

    def hashes(self) -> Mapping[str, str]:
        if self._hashes is None:
            import csv

            self._hashes = {}
            for row in csv.reader(self._text.splitlines()):
                kind, _, sha256 = row[1].partition("=") if len(row) > 1 else ("", "", "")
                if kind == "sha256" and not explain_refused_path(row[0]):
                    self._hashes[row[0]] = sha256
        return self._hashes


def find_site_packages(python: str | os.PathLike[str] | None = None) -> str:
    """Return the folder that a Python, or an environment, has its packages in; the running one's without an argument.

    Nothing is run. Raises SourceError if there is no such folder.
    """
    if python is None:
        return f"{sys.prefix}/lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
    from glob import escape, glob

    path = os.path.abspath(os.path.expanduser(python))
    prefix = path if os.path.isdir(path) else os.path.dirname(os.path.dirname(path))
    found = sorted(glob(f"{escape(prefix)}/lib/python3.*/site-packages"))
    version = os.path.basename(os.path.realpath(path))
    of_version = f"{prefix}/lib/{version}/site-packages"
    if of_version in found:
        return of_version
    if len(found) != 1 or not os.path.lexists(path):
        raise SourceError(
            f"{os.fspath(python)!r} is not a Python with packages of its own. Give one such as .venv/bin/python."
        )
    return found[0]


def _stamp(paths: Iterable[str]) -> object:
    """Return a value that changes when one of these files does; None if one may just have changed."""
    now = time.time_ns()
    stamps: list[object] = []
    for path in paths:
        try:
            info = system.stat(path)
        except OSError:
            stamps.append(None)
            continue
        if is_fresh(info, now):
            return None
        stamps.append(file_stamp(info))
    return stamps


def _split(folder: str) -> tuple[str, str]:
    """Return the name and version of a distribution from the name of its metadata folder."""
    name, _, version = folder.removesuffix(".dist-info").partition("-")
    return name.lower().replace("_", "-").replace(".", "-"), version


def _normalize(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _split_skill_path(path: str, plugin_skills: str) -> tuple[str, str] | None:
    """Return the skill's folder and the path in it of an installed file; None for a file of no skill."""
    package, is_skill, inner = path.partition(_SKILLS)
    folder = f"{package}{_SKILLS}"
    if plugin_skills and path.startswith(f"{plugin_skills}/"):
        folder = f"{plugin_skills}/"
        inner = path.removeprefix(folder)
    elif not is_skill or any(part.startswith(".") for part in package.split("/")):
        return None
    name, _, file = inner.partition("/")
    return f"{folder}{name}", file


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
