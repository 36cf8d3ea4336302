"""`[tool.skillshelf.skills]` in pyproject.toml: the skills that a workspace wants, by source."""

import os
from collections.abc import Sequence
from typing import NamedTuple

from skillshelf.errors import RegistryError
from skillshelf.files import NotPlainFile, read_file
from skillshelf.registry._installation import Installation
from skillshelf.registry._lock import Origin, Pin, SkillsLock, read_lock
from skillshelf.registry._operations import NewSkill, describe_new, install
from skillshelf.registry._package import OfferedSkill, choose_offered, find_offered, read_content
from skillshelf.registry._sources import open_source, parse_source
from skillshelf.text.toml import parse_toml

_FILE = "pyproject.toml"
_MAX_FILE = 1024 * 1024
ALL = "*"


class WantedSkills(NamedTuple):
    """Skills that the manifest lists and the lock does not pin."""

    origin: Origin
    names: Sequence[str]
    """Names or folders; `*` for all that the source has."""


def find_wanted(installation: Installation) -> list[WantedSkills]:
    """Return what the workspace's manifest lists and the lock does not pin. Raises RegistryError."""
    listed = [] if installation.is_user else _read_manifest(installation)
    if not listed:
        return []
    lock = read_lock(installation.lock_path)
    found = []
    for origin, names in listed:
        missing = [name for name in names if not _is_pinned(lock, origin, name)]
        if missing:
            found.append(WantedSkills(origin, missing))
    return found


def _is_pinned(lock: SkillsLock, origin: Origin, name: str) -> bool:
    """Return True if a skill of this name is pinned, or any for `*`. The version that is asked for counts."""
    folder = f"{origin.path}/".lstrip("/")
    return any(
        name in (ALL, skill.name, skill.origin.path)
        for skill in lock.skills.values()
        if skill.origin._replace(path=origin.path) == origin and f"{skill.origin.path}/".startswith(folder)
    )


def install_wanted(installation: Installation, wanted: Sequence[WantedSkills]) -> list[NewSkill]:
    """Fetch what the manifest lists, install it and pin it: all or, with a RegistryError, none."""
    new = []
    for origin, names in wanted:
        with open_source(origin, Pin(), installation.place, anywhere=False) as package:
            offered = find_offered(package, origin)
            chosen = _choose_all(offered) if ALL in names else choose_offered(offered, names)
            new += [
                describe_new(origin, skill.path, package.pin, read_content(package, skill.name, skill.path))
                for skill in chosen
            ]
    install(installation, new)
    return new


def _choose_all(offered: Sequence[OfferedSkill]) -> list[OfferedSkill]:
    # Copies for several agents are one skill: the shallowest, which comes first.
    return list({skill.name: skill for skill in reversed(offered) if not skill.problem}.values())


def _read_manifest(installation: Installation) -> list[WantedSkills]:
    path = f"{installation.place}/{_FILE}"
    try:
        data = read_file(installation.place, [_FILE], 0, _MAX_FILE).data
    except (OSError, NotPlainFile):
        return []
    if b"skillshelf" not in data:
        return []
    try:
        table = parse_toml(data)
    except ValueError as error:
        raise RegistryError(f"{path} cannot be read: {error}.") from None
    tool = table.get("tool", {})
    own = tool.get("skillshelf", {}) if isinstance(tool, dict) else {}
    skills = own.get("skills", {}) if isinstance(own, dict) else own
    if not isinstance(skills, dict):
        raise RegistryError(f'{path}: [tool.skillshelf.skills] has lines such as "acme/skills@v2" = ["pdf-forms"].')
    return [_read_line(installation, source, names) for source, names in skills.items()]


def _read_line(installation: Installation, source: str, names: object) -> WantedSkills:
    if isinstance(names, str):
        names = [names]
    if not isinstance(names, list) or not names or not all(isinstance(name, str) and name for name in names):
        raise RegistryError(
            f"{installation.place}/{_FILE}: {source!r:.200} in [tool.skillshelf.skills] needs a list of names, "
            f"or '{ALL}'."
        )
    text = os.path.join(installation.place, source) if source.startswith(".") else source
    try:
        origin = parse_source(text, "", installation.place, anywhere=False)
    except RegistryError as error:
        raise RegistryError(f"{installation.place}/{_FILE}, [tool.skillshelf.skills]: {error}") from None
    return WantedSkills(origin, names)
