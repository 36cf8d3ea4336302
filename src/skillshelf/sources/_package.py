"""Code skills: found in a package, named by entry points, or constructed by the caller."""

import importlib
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from types import ModuleType

from skillshelf.descriptor import Diagnostic, SkillDescriptor
from skillshelf.errors import (
    InvalidSkillError,
    ReferenceNotAllowedError,
    ReferenceNotFoundError,
    ReferenceUnreadableError,
    SourceError,
)
from skillshelf.files import NotPlainFile, Page
from skillshelf.found import Found
from skillshelf.skill import BaseSkill
from skillshelf.sources._modules import Findings, ImportFailed, imported, key_of, module_path, skills_in
from skillshelf.sources._resources import parts_below, read_resource, references_package
from skillshelf.tools import Tool


class ClassSource:
    """What the sources here share. A key is `module:Class`; an imported class does not change, so they look once."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.classes: dict[str, type[BaseSkill]] = {}
        self._looked = False

    def _find(self) -> Findings:
        raise NotImplementedError

    def refresh(self, changed: Collection[str] | None = None) -> Mapping[str, Found | None]:
        if self._looked:
            return {}
        findings = self._find()
        self._looked = True
        return {key: self._found(key, finding) for key, finding in findings.items()}

    def _found(self, key: str, finding: type[BaseSkill] | Diagnostic) -> Found:
        if isinstance(finding, Diagnostic):
            return Found(None, (finding,))
        try:
            descriptor = finding.descriptor(self.name)
        except InvalidSkillError as error:
            return Found(None, (Diagnostic("error", "invalid-skill", str(error), module_path(finding.__module__)),))
        self.classes[key] = finding
        return Found(descriptor)

    def instructions(self, key: str, descriptor: SkillDescriptor) -> str:
        return self.classes[key].instructions

    def reference(self, key: str, descriptor: SkillDescriptor, path: str, offset: int, limit: int) -> Page:
        skill, listed = descriptor.name, descriptor.references
        if path not in listed:
            raise ReferenceNotAllowedError(skill, path, listed)
        package = references_package(self.classes[key])
        try:
            return read_resource(package, parts_below(package, path), offset, limit)
        except FileNotFoundError:
            raise ReferenceNotFoundError(skill, path, listed) from None
        except NotPlainFile as fault:
            raise ReferenceNotAllowedError(skill, path, listed, fault.reason) from None
        except OSError as error:
            raise ReferenceUnreadableError(skill, path, error.strerror or "it cannot be opened") from None


class PackageSource(ClassSource):
    """The skills of a package: what the `skill.py` of it and of each subpackage defines."""

    def __init__(self, package: str | ModuleType, *, name: str | None = None) -> None:
        self.package = _imported_package(package) if isinstance(package, str) else package
        if "__path__" not in vars(self.package):
            raise SourceError(f"{self.package.__name__!r} is a module. Name the package that holds the skills.")
        super().__init__(name or self.package.__name__)

    def _find(self) -> Findings:
        return skills_in(self.package)


class EntryPointSource(ClassSource):
    """Skills of installed distributions: an entry point names a package of skills, or one class."""

    def __init__(self, group: str = "skillshelf.skills", name: str = "entry-points") -> None:
        super().__init__(name)
        self.group = group

    def _find(self) -> Findings:
        # Takes longer to import than all of skillshelf, and only this source wants it.
        from importlib import metadata

        found: dict[str, type[BaseSkill] | Diagnostic] = {}
        for entry in metadata.entry_points(group=self.group):
            try:
                found |= _named(imported(entry.load, entry.module), entry.value)
            except ImportFailed as fault:
                found[entry.value] = fault.diagnostic
        return found


class ObjectSource(ClassSource):
    """Skills the caller constructed. What is wrong with one is raised here, where it can be mended."""

    def __init__(self, skills: Sequence[BaseSkill], name: str = "app") -> None:
        super().__init__(name)
        self.skills = tuple(skills)
        names: set[str] = set()
        for skill in self.skills:
            if not isinstance(skill, BaseSkill):
                raise InvalidSkillError(f"{skill!r} is not a skill. Pass an instance of a BaseSkill subclass.")
            if (added := skill.descriptor(name).name) in names:
                raise InvalidSkillError(f"Two skills are named {added!r}. Give one of the classes another name.")
            names.add(added)
        self.tools()

    def _find(self) -> Findings:
        return {key_of(type(skill)): type(skill) for skill in self.skills}

    def tools(self) -> tuple[Tool, ...]:
        """All tools. Raises PolicyError for a raw skill without a policy, InvalidSkillError for a name taken twice."""
        owners: dict[str, str] = {}
        tools = []
        for skill in self.skills:
            for each in skill.tools():
                if each.name in owners:
                    raise InvalidSkillError(
                        f"Skills {owners[each.name]!r} and {skill.name!r} both have a tool {each.name!r}. "
                        f'Rename one with @tool(name="…").'
                    )
                owners[each.name] = skill.name
                tools.append(each)
        return tuple(tools)


def _imported_package(name: str) -> ModuleType:
    try:
        return imported(partial(importlib.import_module, name), name)
    except ImportFailed as fault:
        raise SourceError(f"Package {name!r} is no place to look for skills: {fault}.") from fault


def _named(target: object, value: str) -> Findings:
    if isinstance(target, ModuleType):
        return skills_in(target)
    if isinstance(target, type) and issubclass(target, BaseSkill):
        return {key_of(target): target}
    message = f"the entry point {value!r} names neither a package nor a BaseSkill class"
    return {
        value: Diagnostic(
            "error", "invalid-entry-point", message, fix="name `my_skills` or `my_skills.rag.skill:RagSkill`"
        )
    }
