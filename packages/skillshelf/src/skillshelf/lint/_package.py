"""Check a package of code skills: their classes and their references. The package is imported, which runs its code."""

import inspect
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import FunctionType, ModuleType
from typing import get_args

from skillshelf.errors import ReferenceNotFoundError, SkillError
from skillshelf.files import NotPlainFile
from skillshelf.lint._disk import CheckReport
from skillshelf.lint._format import check_instructions_size, check_template_text
from skillshelf.lint._limits import MAX_INLINE_TOKENS, MAX_TOKENS
from skillshelf.lint._references import check_content, check_listed, check_named, check_unlisted
from skillshelf.skills import BaseSkill, Diagnostic, SkillDescriptor, is_tool, read_tool_methods
from skillshelf.skills.schema import return_hint
from skillshelf.sources import (
    PackageSource,
    find_references_package,
    list_package_files,
    package_of,
    split_listed_path,
)
from skillshelf.text.tokens import estimate

_PAGE_BYTES = 512 * 1024


def check_code_skills(package: str | ModuleType) -> CheckReport:
    """Check the skills of a package, which is imported. Raises SourceError if that fails.

    Paths in the diagnostics start at the top package, as in `my_skills/rag/skill.py`: the package may be inside a zip.
    """
    source = PackageSource(package)
    problems: list[Diagnostic] = []
    valid = 0
    for found in source.refresh().values():
        if found:
            problems += found.diagnostics
            valid += found.descriptor is not None
    # A class that cannot be a skill yet is checked as far as it goes, so that its author sees all faults at once.
    skills = [_Skill(source, key) for key, cls in source.classes.items() if isinstance(cls.references, tuple)]
    problems += _check_references(skills)
    for cls in source.classes.values():
        problems += _check_class(cls)

    if not valid and not problems:
        # A check of nothing must not pass: the package was renamed, or its data was not installed.
        path = source.package.__name__.replace(".", "/")
        fix = "put each skill into a subpackage of its own, as a class in its skill.py"
        problems.append(Diagnostic("error", "no-skill", "no skill.py is in it or below", path, fix=fix))
    return CheckReport(valid, list(dict.fromkeys(problems)))


# -- the class ---------------------------------------------------------------------------------------------------------


def _check_class(cls: type[BaseSkill]) -> Iterator[Diagnostic]:
    path = _source_path(cls)
    if isinstance(cls.instructions, str):
        for note in check_instructions_size(cls.instructions, line=0):
            yield replace(note, path=path)
        yield from _check_inline_guidance(cls)
    yield from _check_unmarked_methods(cls)
    yield from _check_results(cls)
    yield from check_template_text(_read_source(cls), path)


def _read_source(cls: type[BaseSkill]) -> bytes:
    """Return the source of the module that defines a skill; nothing if only its bytecode was installed."""
    try:
        source = inspect.getsource(sys.modules[cls.__module__])
    except (KeyError, OSError):
        return b""
    return source.encode("utf-8", "surrogatepass")


def _check_unmarked_methods(cls: type[BaseSkill]) -> Iterator[Diagnostic]:
    """Report public methods that are not tools.

    Methods that implement the interface of a class from elsewhere are exempt: BaseSkill's own, or a library's.
    """
    foreign_bases = [base for base in cls.__mro__ if base is BaseSkill or _top_package(base) != _top_package(cls)]
    own_bases = [base for base in cls.__mro__ if base not in foreign_bases]
    attributes = dict.fromkeys(name for base in reversed(own_bases) for name in vars(base))
    for attribute in attributes:
        method = inspect.getattr_static(cls, attribute)
        is_public_method = isinstance(method, FunctionType) and not attribute.startswith("_")
        if not is_public_method or is_tool(method):
            continue
        if any(attribute in vars(base) for base in foreign_bases):
            continue
        owner = next(base for base in cls.__mro__ if attribute in vars(base))
        message = f"{owner.__qualname__}.{attribute}() is public but not a tool, so no model can call it"
        if any(is_tool(vars(base).get(attribute)) for base in cls.__mro__):
            message = f"{owner.__qualname__}.{attribute}() replaces a tool without @tool, so no model can call it"
        fix = f"write @tool above it, or name it _{attribute} if only the skill's own code calls it"
        if attribute == "get_tools":
            fix = "delete it, and write @tool above each method that it returns"
        yield Diagnostic("warning", "tool-unmarked", message, _source_path(owner), method.__code__.co_firstlineno, fix)


def _check_inline_guidance(cls: type[BaseSkill]) -> Iterator[Diagnostic]:
    """Report instructions of more than two paragraphs or so, if all guidance is in them."""
    tokens = estimate(cls.instructions)
    if cls.references or not MAX_INLINE_TOKENS < tokens <= MAX_TOKENS:
        return
    message = f"all {tokens:,} tokens of its guidance are in the instructions, which a listing repeats in every call"
    fix = "keep a paragraph or two, move the rest into references/ and say in the instructions when to load it"
    yield Diagnostic("info", "guidance-inline", message, _source_path(cls), fix=fix)


def _check_results(cls: type[BaseSkill]) -> Iterator[Diagnostic]:
    """Report tools that return bytes, which have no form that a model can read."""
    for method in read_tool_methods(cls)[0]:
        function = inspect.getattr_static(cls, method.attribute)
        if _names_bytes(return_hint(function, cls)):
            owner = next(base for base in cls.__mro__ if method.attribute in vars(base))
            message = f"{owner.__qualname__}.{method.attribute}() returns bytes, so every call of the tool fails"
            fix = "return text, or an Image or Audio from skillshelf"
            line = function.__code__.co_firstlineno
            yield Diagnostic("error", "tool-returns-bytes", message, _source_path(owner), line, fix)


def _names_bytes(hint: object) -> bool:
    if hint in (bytes, bytearray, memoryview):
        return True
    return any(_names_bytes(argument) for argument in get_args(hint))


def _top_package(cls: type) -> str:
    return cls.__module__.partition(".")[0]


def _source_path(cls: type) -> str:
    return cls.__module__.replace(".", "/") + ".py"


# -- its references ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Skill:
    source: PackageSource
    key: str

    @property
    def cls(self) -> type[BaseSkill]:
        return self.source.classes[self.key]

    def read(self, listed: str) -> bytes:
        data = b""
        descriptor = SkillDescriptor(self.cls.__qualname__, "", references=self.cls.references)
        while True:
            page = self.source.reference(self.key, descriptor, listed, len(data), _PAGE_BYTES)
            data += page.data
            if not page.data or len(data) >= page.size:
                return data


def _check_references(skills: Sequence[_Skill]) -> Iterator[Diagnostic]:
    # Skills of one skill.py share a folder, and each file in it must be listed by at least one of them.
    own_packages = {package_of(skill.cls): None for skill in skills}
    listed_by_package: dict[str, set[str]] = {package: set() for package in own_packages}

    for skill in skills:
        package = find_references_package(skill.cls)
        existing = frozenset(list_package_files(package))

        references, refused = _resolve_references(package, skill.cls.references)
        paths = list(references)
        listed_by_package.setdefault(package, set()).update(paths)
        yield from _add_package_path(package, refused)

        contents, unreadable = _read_contents(skill, references)
        yield from _add_package_path(package, check_listed(paths, existing))
        if isinstance(skill.cls.instructions, str):
            yield from _add_package_path(package, check_named(paths, existing, skill.cls.instructions, contents))
        yield from _add_package_path(package, unreadable)
        for path, data in contents.items():
            yield from _add_package_path(package, check_content(path, data, existing))
            yield from _add_package_path(package, check_template_text(data, path))

    for package in own_packages:
        unlisted = check_unlisted(listed_by_package[package], list_package_files(package))
        yield from _add_package_path(package, unlisted)


def _add_package_path(package: str, problems: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """Yield the problems with paths that start at the top package, so that a user can open them."""
    for problem in problems:
        yield replace(problem, path=f"{package.replace('.', '/')}/{problem.path}")


def _resolve_references(package: str, listed_paths: Sequence[str]) -> tuple[dict[str, str], list[Diagnostic]]:
    """Return the listed paths by their path in the skill's folder, and a problem for each one that leads outside."""
    references: dict[str, str] = {}
    refused: list[Diagnostic] = []
    for listed in listed_paths:
        try:
            path = "/".join(split_listed_path(package, listed))
        except NotPlainFile as error:
            refused.append(_report_unloadable(listed, error.reason))
        else:
            references[path] = listed
    return references, refused


def _read_contents(skill: _Skill, references: Mapping[str, str]) -> tuple[dict[str, bytes], list[Diagnostic]]:
    """Return the contents of the references that exist, and a problem for each one that cannot be read."""
    contents: dict[str, bytes] = {}
    unreadable: list[Diagnostic] = []
    for path, listed in references.items():
        try:
            contents[path] = skill.read(listed)
        except ReferenceNotFoundError:
            continue  # check_listed reports it
        except SkillError as error:
            unreadable.append(_report_unloadable(path, str(error)))
    return contents, unreadable


def _report_unloadable(path: str, reason: str) -> Diagnostic:
    fix = "list plain files of the skill's own folder"
    return Diagnostic("error", "reference-missing", f"the listed reference cannot be loaded: {reason}", path, fix=fix)
