"""A code skill's folder, as importlib.resources shows it: in a real directory, or inside a zip."""

import os
import sys
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import TYPE_CHECKING

from skillshelf.files import NotPlainFile, Page, read_file
from skillshelf.skill import BaseSkill
from skillshelf.sources._names import path_refusal

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable


def files_of(package: str | ModuleType) -> "Traversable":
    """The package's folder, wherever it was imported from."""
    from importlib import resources  # 10 ms that only code skills pay

    return resources.files(package)


def package_of(cls: type) -> str:
    """The package that a class was defined in; empty for one in a script."""
    module = sys.modules.get(cls.__module__)
    return (module.__package__ if module else "") or ""


def references_package(skill: type[BaseSkill]) -> str:
    """The package whose folder holds the references.

    A skill that extends another and inherits its references finds them where the other keeps them.
    """
    listers = (cls for cls in skill.__mro__ if cls is not BaseSkill and "references" in vars(cls))
    return package_of(next(listers, skill))


def parts_below(package: str, listed: str) -> tuple[str, ...]:
    """A listed path as the way below the skill's folder. Raises NotPlainFile where it leads elsewhere.

    Authors write it from the folder on (`references/a.md`) or from the top package on
    (`my_skills/agentic_rag/references/a.md`).
    """
    if reason := path_refusal(listed):
        raise NotPlainFile(reason)
    parts, folder = tuple(listed.split("/")), tuple(package.split("."))
    if parts[: len(folder)] == folder and len(parts) > len(folder):
        return parts[len(folder) :]
    if parts[0] == folder[0]:
        raise NotPlainFile("it lies outside the skill's folder")
    return parts


def read_resource(package: str, parts: Sequence[str], offset: int, limit: int) -> Page:
    """Raises FileNotFoundError, NotPlainFile, or another OSError."""
    if not package:
        raise OSError(0, "the skill's class is not in a package of its own, so it has no folder")
    folder = _folder(package)
    if isinstance(folder, os.PathLike):
        # The folder Python imported from is the root, wherever a link to it lies.
        return read_file(os.path.realpath(folder), parts, offset, limit)
    return _read_member(folder.joinpath(*parts), offset, limit)


def files_below(package: str) -> list[str]:
    """Every file in the skill's folder, as a path below it. Links to folders are not followed: the gate would not."""
    return sorted(_walk(_folder(package), ""))


def _folder(package: str) -> "Traversable":
    """A namespace package shows itself as several folders at once: the skill's is the one that holds skill.py."""
    from pathlib import Path  # what importlib.resources shows a real folder as; loaded with it

    module = files_of(package).joinpath("skill.py")
    return module.parent if isinstance(module, Path) else files_of(package)


def _read_member(member: "Traversable", offset: int, limit: int) -> Page:
    import zipfile  # already there: the member comes out of it
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
