"""The completeness check for a package of code skills."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import ModuleType

from skillshelf.descriptor import Diagnostic, SkillDescriptor
from skillshelf.errors import ReferenceNotFoundError, SkillError
from skillshelf.files import NotPlainFile
from skillshelf.lint import check_content, check_listed, check_named, check_unlisted
from skillshelf.skill import BaseSkill
from skillshelf.sources import (
    PackageSource,
    find_references_package,
    list_package_files,
    package_of,
    split_listed_path,
)

_PAGE = 512 * 1024


def check_package(package: str | ModuleType) -> None:
    """Fails with an AssertionError that lists every fault of the package's skills and of their references."""
    source = PackageSource(package)
    problems: list[Diagnostic] = []
    skills: list[_Skill] = []
    for key, found in source.refresh().items():
        if found and found.descriptor:
            skills.append(_Skill(source, key, found.descriptor))
        elif found:
            problems += found.diagnostics
    problems += _check_skills(skills)
    if not skills and not problems:
        # A test that looks at nothing must not pass: the package was renamed, or its data was not installed.
        problems.append(Diagnostic("error", "no-skill", "no skill.py is in it or below", source.name.replace(".", "/")))
    if problems:
        raise AssertionError("\n".join(map(_as_line, problems)))


@dataclass(frozen=True, slots=True)
class _Skill:
    source: PackageSource
    key: str
    descriptor: SkillDescriptor

    @property
    def cls(self) -> type[BaseSkill]:
        return self.source.classes[self.key]

    def read(self, listed: str) -> bytes:
        data = b""
        while True:
            page = self.source.reference(self.key, self.descriptor, listed, len(data), _PAGE)
            data += page.data
            if not page.data or len(data) >= page.size:
                return data


def _check_skills(skills: Sequence[_Skill]) -> Iterator[Diagnostic]:
    # By folder: two skills of one skill.py share it, and each file needs a place on one of their lists.
    own = {package_of(skill.cls): None for skill in skills}
    known: dict[str, set[str]] = {package: set() for package in own}
    for skill in skills:
        package = find_references_package(skill.cls)
        existing = frozenset(list_package_files(package))
        below, refused = _resolve(package, skill.descriptor.references)
        known.setdefault(package, set()).update(below)
        yield from _opened(package, refused)
        contents, unreadable = _read_contents(skill, below)
        yield from _opened(package, check_listed(list(below), existing))
        yield from _opened(package, check_named(list(below), existing, skill.cls.instructions, contents))
        yield from _opened(package, unreadable)
        for path, data in contents.items():
            yield from _opened(package, check_content(path, data, existing))
    for package in own:
        yield from _opened(package, check_unlisted(known[package], list_package_files(package)))


def _opened(package: str, problems: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """With paths from the top package on, as a person would open them."""
    for problem in problems:
        yield replace(problem, path=f"{package.replace('.', '/')}/{problem.path}")


def _resolve(package: str, references: Sequence[str]) -> tuple[dict[str, str], list[Diagnostic]]:
    """Listed paths by the way below the skill's folder, and what is to be said of those that lead elsewhere."""
    below, refused = {}, []
    for listed in references:
        try:
            below["/".join(split_listed_path(package, listed))] = listed
        except NotPlainFile as fault:
            refused.append(_unresolved(listed, fault.reason))
    return below, refused


def _read_contents(skill: _Skill, below: Mapping[str, str]) -> tuple[dict[str, bytes], list[Diagnostic]]:
    """Read the references that are there, and say which of them cannot be read."""
    contents: dict[str, bytes] = {}
    unreadable: list[Diagnostic] = []
    for path, listed in below.items():
        try:
            contents[path] = skill.read(listed)
        except ReferenceNotFoundError:
            continue  # check_listed says so
        except SkillError as error:
            unreadable.append(_unresolved(path, str(error)))
    return contents, unreadable


def _unresolved(path: str, reason: str) -> Diagnostic:
    fix = "list plain files of the skill's own folder"
    return Diagnostic("error", "reference-missing", f"the listed reference cannot be loaded: {reason}", path, fix=fix)


def _as_line(problem: Diagnostic) -> str:
    where = f"{problem.path}:{problem.line}" if problem.line else problem.path
    hint = f" ({problem.fix})" if problem.fix else ""
    return " ".join(f"{where}: {problem.code} {problem.message}{hint}".splitlines())
