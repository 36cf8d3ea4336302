"""Code skills: found in a package, named by entry points, or constructed by the caller.

Importing runs the author's code, and so does constructing a skill. Whatever it raises is reported for that module or
skill, and the others still load.
"""

import importlib
import inspect
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar

from skillshelf.errors import (
    InvalidSkillError,
    ReferenceNotAllowedError,
    ReferenceNotFoundError,
    ReferenceUnreadableError,
    SourceError,
)
from skillshelf.files import NotPlainFile, Page, system
from skillshelf.skills import (
    BaseSkill,
    ClassFault,
    Diagnostic,
    Found,
    SkillDescriptor,
    Tool,
    describe_class,
    find_class_faults,
)
from skillshelf.sources._resources import find_references_package, package_files, read_resource, split_listed_path

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

Result = TypeVar("Result")
Findings = Mapping[str, type[BaseSkill] | Diagnostic]
"""By key: a class, or the reason why there is none."""

BUNDLED = "bundled"
"""The source of every skill that comes with skillshelf."""
_BUNDLED_MODULES = ("skillshelf.skill_authoring.", "skillshelf_skills.")
_MAX_REASON = 300


class ClassSource:
    """The common part of sources of code skills.

    A key is `module:Class`, with a number if a function made several classes that share it. An imported class does not
    change, so each of these sources searches only once.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.classes: dict[str, type[BaseSkill]] = {}
        """All classes that were found, those with faults included."""
        self._is_searched = False
        self._tools: dict[str, tuple[Tool, ...] | Diagnostic] = {}

    def _find_skills(self) -> Findings:
        raise NotImplementedError

    def refresh(self, changed: Collection[str] | None = None) -> Mapping[str, Found | None]:
        if self._is_searched:
            return {}
        findings = self._find_skills()
        self._is_searched = True
        return {key: self._describe(key, finding) for key, finding in findings.items()}

    def _describe(self, key: str, finding: type[BaseSkill] | Diagnostic) -> Found:
        if isinstance(finding, Diagnostic):
            return Found(None, (finding,))
        self.classes[key] = finding
        notes = tuple(_report_fault(finding, fault) for fault in find_class_faults(finding))
        if notes:
            return Found(None, notes)
        return Found(finding.descriptor(self._name_source(finding)))

    def _name_source(self, cls: type[BaseSkill]) -> str:
        return self.name

    def bind_tools(self, key: str) -> tuple[Tool, ...] | Diagnostic:
        """Return the tools of a skill, or why it has none. The first call constructs the skill, and no other does."""
        if key not in self._tools:
            self._tools[key] = _construct_tools(self.classes[key])
        return self._tools[key]

    def instructions(self, key: str, descriptor: SkillDescriptor) -> str:
        return self.classes[key].instructions

    def reference(self, key: str, descriptor: SkillDescriptor, path: str, offset: int, limit: int) -> Page:
        skill = descriptor.name
        listed = descriptor.references
        if path not in listed:
            raise ReferenceNotAllowedError(skill, path, listed)
        package = find_references_package(self.classes[key])
        try:
            return read_resource(package, split_listed_path(package, path), offset, limit)
        except FileNotFoundError:
            raise ReferenceNotFoundError(skill, path, listed) from None
        except NotPlainFile as fault:
            raise ReferenceNotAllowedError(skill, path, listed, fault.reason) from None
        except OSError as error:
            raise ReferenceUnreadableError(skill, path, error.strerror or "it cannot be opened") from None


class PackageSource(ClassSource):
    """The skills of a package: those that its own `skill.py` and the `skill.py` of each subpackage define.

    A shelf constructs those that need no arguments, so that the model has their tools.
    """

    def __init__(self, package: str | ModuleType, *, name: str | None = None) -> None:
        self.package = _import_package(package) if isinstance(package, str) else package
        if "__path__" not in vars(self.package):
            raise SourceError(f"{self.package.__name__!r} is a module. Name the package that holds the skills.")
        super().__init__(name or self.package.__name__)

    def _find_skills(self) -> Findings:
        return _find_skills_below(self.package)


class EntryPointSource(ClassSource):
    """Skills of installed distributions: an entry point names a package of skills, or one class."""

    def __init__(
        self, group: str = "skillshelf.skills", name: str = "entry-points", *, without: Collection[str] = ()
    ) -> None:
        """`without` names packages whose skills another source has: entry points that lead into them are passed by."""
        super().__init__(name)
        self.group = group
        self.without = frozenset(without)

    def _find_skills(self) -> Findings:
        if not _mentions_entry_points(self.group):
            return {}
        # It takes longer to import than all of skillshelf.
        from importlib import metadata

        findings: dict[str, type[BaseSkill] | Diagnostic] = {}
        for entry in metadata.entry_points(group=self.group):
            if any(f"{entry.module}.".startswith(f"{package}.") for package in self.without):
                continue
            try:
                target = import_guarded(entry.load, entry.module)
            except ImportFailed as fault:
                findings[entry.value] = fault.diagnostic
            else:
                _merge_findings(findings, _find_named_skills(target, entry.value))
        return findings


class ObjectSource(ClassSource):
    """Skills that the caller constructed. A mistake in one is raised here, where it can be corrected.

    A skill that comes with skillshelf is `bundled`, also if the caller attached it.
    """

    def __init__(self, skills: Sequence[BaseSkill] = (), name: str = "app") -> None:
        super().__init__(name)
        self.skills: tuple[BaseSkill, ...] = ()
        self._added: dict[str, type[BaseSkill] | Diagnostic] = {}
        """The classes of the skills by key."""
        self._instances: dict[str, BaseSkill] = {}
        self._owners: dict[str, str] = {}
        """The skill of each tool, both by name."""
        for skill in skills:
            self.add(skill)

    def add(self, skill: BaseSkill) -> None:
        """Add a skill, which the next refresh reports. `Shelf.attach` does both.

        Raises PolicyError for a raw skill without a policy, and InvalidSkillError for anything else that is wrong with
        it, also if another skill here has its name or the name of one of its tools.
        """
        if not isinstance(skill, BaseSkill):
            raise InvalidSkillError(f"{skill!r} is not a skill. Pass an instance of a BaseSkill subclass.")
        skill_name = describe_class(type(skill), self.name).name
        if any(other.name == skill_name for other in self.skills):
            raise InvalidSkillError(
                f"Two skills are named {skill_name!r}. Leave one out, or give its class another name."
            )

        tools = skill.tools()
        for tool in tools:
            if tool.name in self._owners:
                raise InvalidSkillError(
                    f"Skills {self._owners[tool.name]!r} and {skill_name!r} both have a tool {tool.name!r}. "
                    f'Rename one with @tool(name="…").'
                )
        key = _add_class(self._added, type(skill))
        self._tools[key] = tools
        self._instances[key] = skill
        self._owners |= dict.fromkeys((tool.name for tool in tools), skill_name)
        self.skills += (skill,)
        self._is_searched = False

    def _find_skills(self) -> Findings:
        return {key: cls for key, cls in self._added.items() if key not in self.classes}

    def _describe(self, key: str, finding: type[BaseSkill] | Diagnostic) -> Found:
        """Describe an instance, which may have narrowed the instructions and references of its class."""
        found = super()._describe(key, finding)
        skill = self._instances[key]
        if found.descriptor is None or vars(skill).keys().isdisjoint(("instructions", "references")):
            return found
        size = len(skill.instructions.encode("utf-8", "surrogatepass"))
        return Found(replace(found.descriptor, references=skill.references, size=size))

    def instructions(self, key: str, descriptor: SkillDescriptor) -> str:
        return self._instances[key].instructions

    def _name_source(self, cls: type[BaseSkill]) -> str:
        return BUNDLED if cls.__module__.startswith(_BUNDLED_MODULES) else self.name

    def tools(self) -> tuple[Tool, ...]:
        """Return the tools of all skills, under their policies."""
        return tuple(tool for skill in self.skills for tool in skill.tools())


# -- importing --------------------------------------------------------------------------------------------------------


class ImportFailed(Exception):
    """An author's module cannot be imported. The diagnostic tells the author why."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        self.diagnostic = diagnostic
        super().__init__(diagnostic.message)


def import_guarded(load: Callable[[], Result], module: str) -> Result:
    """Call `load`, which imports an author's module. Raises ImportFailed, whatever goes wrong in the module."""
    try:
        return load()
    except (Exception, SystemExit) as error:
        path = _module_path(module)
        reason = f"{type(error).__name__}: {error}".rstrip(": ")[:_MAX_REASON]
        diagnostic = Diagnostic(
            "error",
            "import-failed",
            f"it cannot be imported: {reason}",
            path,
            _find_failing_line(error, path),
            fix=f"make `import {module}` work by itself",
        )
        raise ImportFailed(diagnostic) from error


def _construct_tools(cls: type[BaseSkill]) -> tuple[Tool, ...] | Diagnostic:
    """Construct a skill and return its tools, or a diagnostic if that takes arguments or a policy, or fails."""
    name = cls.__qualname__
    needed = _find_needed_arguments(cls)
    arguments = ", ".join(f"{argument}=…" for argument in needed)
    pass_it = f"construct it and pass it: Shelf.open(skills=[{name}({arguments})])"
    if cls.category == "raw" and cls.policy is None:
        reason = "it is raw, and a raw skill has tools only under a policy"
        fix = (
            f"write a `policy` in the class, or construct it and pass it with one: "
            f"Shelf.open(skills=[{name}({arguments}).with_policy({{…}})])"
        )
    elif needed:
        reason = f"its constructor needs {', '.join(map(repr, needed))}"
        fix = f"{pass_it}, or give its arguments default values"
    else:
        try:
            return cls().tools()
        except (Exception, SystemExit) as error:
            reason = f"{name}() raises {type(error).__name__}: {error}".rstrip(": ")[:_MAX_REASON]
            fix = f"make {name}() work, or {pass_it}"
    message = f"the model does not have its tools: {reason}"
    return Diagnostic("warning", "tools-missing", message, class_key(cls), fix=fix)


def _find_needed_arguments(cls: type[BaseSkill]) -> list[str]:
    """Return the names of the arguments without which the class cannot be called."""
    try:
        parameters = inspect.signature(cls).parameters.values()
    except (TypeError, ValueError):  # a class that extends one written in C: calling it shows whether it needs any
        return []
    optional = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = []
    for parameter in parameters:
        if parameter.default is parameter.empty and parameter.kind not in optional:
            needed.append(parameter.name)
    return needed


def class_key(skill: type[BaseSkill]) -> str:
    """Return `module:Class`, the key of a code skill in its source."""
    return f"{skill.__module__}:{skill.__qualname__}"


def _add_class(findings: dict[str, type[BaseSkill] | Diagnostic], skill: type[BaseSkill]) -> str:
    """Add a class and return its key. Classes that one function made share their name, so later ones get a number."""
    name = class_key(skill)
    key = name
    number = 1
    while key in findings and findings[key] is not skill:
        number += 1
        key = f"{name}#{number}"
    findings[key] = skill
    return key


def _merge_findings(findings: dict[str, type[BaseSkill] | Diagnostic], more: Findings) -> None:
    """Add further findings. A class that is there already stays one."""
    for key, finding in more.items():
        if isinstance(finding, Diagnostic):
            findings[key] = finding
        else:
            _add_class(findings, finding)


def _import_package(name: str) -> ModuleType:
    try:
        return import_guarded(partial(importlib.import_module, name), name)
    except ImportFailed as fault:
        if _is_missing(name, fault.__cause__):
            raise SourceError(
                f"There is no package {name!r} to take skills from. Install it in the environment that skillshelf "
                f"runs in (pip install NAME, or pip install -e FOLDER for your own), or stop "
                f"naming it, in your settings too. The `skillshelf` command never imports from the current folder."
            ) from fault
        raise SourceError(f"Cannot look for skills in the package {name!r}: {fault}.") from fault


def _is_missing(package: str, error: BaseException | None) -> bool:
    """Return True if the package, or one that it is in, does not exist."""
    if not isinstance(error, ModuleNotFoundError) or not error.name:
        return False
    return f"{package}.".startswith(f"{error.name}.")


def _find_named_skills(target: object, entry: str) -> Findings:
    """Return the skills that the target of an entry point stands for."""
    if isinstance(target, ModuleType):
        return _find_skills_below(target)
    if isinstance(target, type) and issubclass(target, BaseSkill):
        return {class_key(target): target}
    message = f"the entry point {entry!r} names neither a package nor a BaseSkill class"
    fix = "name `my_skills` or `my_skills.rag.skill:RagSkill`"
    return {entry: Diagnostic("error", "invalid-entry-point", message, fix=fix)}


def _find_skills_below(module: ModuleType) -> Findings:
    """Return the skills of a package and its subpackages, or those of one module."""
    if "__path__" not in vars(module):
        return _find_skills_in(module)
    findings: dict[str, type[BaseSkill] | Diagnostic] = {}
    for name in _find_skill_modules(package_files(module), module.__name__):
        try:
            _merge_findings(findings, _find_skills_in(import_guarded(partial(importlib.import_module, name), name)))
        except ImportFailed as fault:
            findings[name] = fault.diagnostic
    return findings


def _find_skill_modules(folder: "Traversable", package: str) -> Iterator[str]:
    """Yield the module names of every `skill.py`. Nothing is imported, and a skill's own data is not searched."""
    children = {child.name: child for child in folder.iterdir()}
    is_skill = "skill.py" in children
    if is_skill:
        yield f"{package}.skill"
    for name, child in sorted(children.items()):
        if not name.isidentifier() or not child.is_dir():
            continue
        # A folder without __init__.py can be imported too, but beside a skill.py it holds references: a file there
        # that happens to be called skill.py is text for the model and must not run.
        if child.joinpath("__init__.py").is_file() or (not is_skill and child.joinpath("skill.py").is_file()):
            yield from _find_skill_modules(child, f"{package}.{name}")


def _find_skills_in(module: ModuleType) -> Findings:
    own = [value for value in vars(module).values() if _is_skill(value) and value.__module__ == module.__name__]
    # A class without a name that others here extend is their common base, not a skill that lacks its name.
    skills = [cls for cls in own if cls.name or not any(cls in other.__mro__[1:] for other in own)]
    if skills:
        findings: dict[str, type[BaseSkill] | Diagnostic] = {}
        for cls in skills:
            _add_class(findings, cls)
        return findings
    message = "it defines no skill"
    fix = "define a class that extends skillshelf.BaseSkill, or rename the file"
    return {module.__name__: Diagnostic("warning", "no-skill", message, _module_path(module.__name__), fix=fix)}


def _is_skill(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, BaseSkill) and not inspect.isabstract(value)


def _report_fault(cls: type[BaseSkill], fault: ClassFault) -> Diagnostic:
    """Return a diagnostic at the line where the class, or a base class of its author, writes the attribute."""
    owner = next(base for base in cls.__mro__ if fault.attribute in vars(base))
    if owner is BaseSkill:  # the author has not written it
        owner = cls
    line = _find_line(owner, fault.attribute)
    return Diagnostic("error", "invalid-skill", fault.message, _module_path(owner.__module__), line)


def _find_line(cls: type, attribute: str) -> int:
    """Return the line of an attribute, or that of the class if it does not write it; 0 without the source."""
    import ast  # only a fault needs it

    try:
        node: ast.AST = ast.parse(inspect.getsource(sys.modules[cls.__module__]))
    except (KeyError, OSError, SyntaxError):
        return 0
    for name in cls.__qualname__.replace("<locals>.", "").split("."):
        scopes = (child for child in ast.walk(node) if isinstance(child, ast.ClassDef | ast.FunctionDef))
        node = next((scope for scope in scopes if scope.name == name), node)
    if not isinstance(node, ast.ClassDef):
        return 0

    for statement in node.body:
        targets: list[ast.expr] = []
        if isinstance(statement, ast.Assign):
            targets = statement.targets
        elif isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        names = [getattr(statement, "name", ""), *(getattr(target, "id", "") for target in targets)]
        if attribute in names:
            return statement.lineno
    return node.lineno


def _module_path(module: str) -> str:
    return module.replace(".", "/") + ".py"


def _find_failing_line(error: BaseException, path: str) -> int:
    """Return the line of the author's file that failed; 0 if the error came from elsewhere."""
    if isinstance(error, SyntaxError) and (error.filename or "").endswith(path):
        return error.lineno or 0

    import traceback  # only a failure needs it

    for frame, line in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename.endswith(path):
            return line
    return 0


# -- entry points -----------------------------------------------------------------------------------------------------


def _mentions_entry_points(group: str) -> bool:
    """Return False if importlib.metadata would find no entry points of the group; True if it may find some.

    Asking it takes 40 ms with 150 distributions, and most users have none with skills.
    """
    if any(hasattr(finder, "find_distributions") for finder in sys.meta_path if not _is_path_finder(finder)):
        return True
    return any(_mentions_in(entry, group.encode()) for entry in dict.fromkeys(sys.path))


def _is_path_finder(finder: object) -> bool:
    from importlib.machinery import PathFinder

    return finder is PathFinder


def _mentions_in(entry: str, group: bytes) -> bool:
    folder = entry or "."
    try:
        names = system.listdir(folder)
    except NotADirectoryError:
        return True  # an archive
    except OSError:
        return False
    if folder.endswith(".egg"):
        return True
    metadata = [name for name in names if name.lower().endswith((".dist-info", ".egg-info"))]
    return any(_mentions_group(f"{folder}/{name}/entry_points.txt", group) for name in metadata)


def _mentions_group(path: str, group: bytes) -> bool:
    try:
        with open(path, "rb") as file:
            return group in file.read()
    except OSError:
        return False
