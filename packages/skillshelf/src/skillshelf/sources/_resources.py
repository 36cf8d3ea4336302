"""The folder of a code skill, as importlib.resources shows it: in a real directory, or inside a zip."""

import os
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from skillshelf.files import NotPlainFile, Page, read_file
from skillshelf.skills import BaseSkill
from skillshelf.sources._names import explain_refused_path

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable


def package_files(package: str | ModuleType) -> "Traversable":
    """Return the package's folder, wherever it was imported from."""
    from pathlib import Path

    module = import_module(package) if isinstance(package, str) else package
    folders = list(module.__path__)
    if len(folders) == 1 and os.path.isdir(folders[0]):
        return Path(folders[0])

    from importlib import resources  # 10 ms that only archives and namespace packages pay

    return resources.files(package)


def package_of(cls: type) -> str:
    """Return the package that a class was defined in; empty for a class in a script."""
    module = sys.modules.get(cls.__module__)
    if module is None:
        return ""
    return module.__package__ or ""


def find_references_package(skill: type[BaseSkill]) -> str:
    """Return the package whose folder holds a skill's references.

    A skill that extends another one and inherits its references finds them in the other's folder.
    """
    for cls in skill.__mro__:
        if cls is not BaseSkill and "references" in vars(cls):
            return package_of(cls)
    return package_of(skill)


def split_listed_path(package: str, listed: str) -> tuple[str, ...]:
    """Return the components of a listed path below the skill's folder. Raises NotPlainFile if it leads elsewhere.

    Authors write it relative to the folder (`references/a.md`) or to the folder of the top package
    (`my_skills/agentic_rag/references/a.md`).
    """
    refusal = explain_refused_path(listed)
    if refusal:
        raise NotPlainFile(refusal)
    parts = tuple(listed.split("/"))
    folder = tuple(package.split("."))
    if parts[: len(folder)] == folder and len(parts) > len(folder):
        return parts[len(folder) :]
    if parts[0] == folder[0]:
        raise NotPlainFile("it is outside the skill's folder")
    return parts


def read_resource(package: str, parts: Sequence[str], offset: int, limit: int) -> Page:
    """Read a page of a file in a package. Raises FileNotFoundError, NotPlainFile, or another OSError."""
    if not package:
        raise OSError(0, "the skill's class is not in a package of its own, so it has no folder")
    folder = _skill_folder(package)
    if isinstance(folder, os.PathLike):
        # The folder that Python imported from is the root, even if a link leads to it.
        return read_file(os.path.realpath(folder), parts, offset, limit)
    return _read_member(folder.joinpath(*parts), offset, limit)


def list_package_files(package: str) -> list[str]:
    """Return every file in the skill's folder, as a path below it. Links to folders are not followed."""
    return sorted(_walk(_skill_folder(package), ""))


def _skill_folder(package: str) -> "Traversable":
    """Return the folder that holds skill.py: a namespace package shows several folders at once."""
    from pathlib import Path  # importlib.resources, which loads it, shows a real folder as one

    module = package_files(package).joinpath("skill.py")
    return module.parent if isinstance(module, Path) else package_files(package)


def _read_member(member: "Traversable", offset: int, limit: int) -> Page:
    import zipfile  # loaded already: the member comes out of it
    import zlib

    if member.is_dir():
        raise NotPlainFile("it is a folder")
    try:
        with member.open("rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(min(offset, size))
            return Page(stream.read(limit), offset, size)
    except (zipfile.BadZipFile, zlib.error) as error:
        raise OSError(0, "its archive is damaged") from error


def _walk(folder: "Traversable", below: str) -> Iterator[str]:
    for entry in folder.iterdir():
        if not entry.is_dir():
            yield below + entry.name
        elif not (isinstance(entry, os.PathLike) and os.path.islink(entry)):
            yield from _walk(entry, f"{below}{entry.name}/")
