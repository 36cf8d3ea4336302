"""From a package to the skill classes in it.

Importing runs the author's code. Whatever it raises is reported for that module and costs the others nothing.
"""

import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar

from skillshelf.descriptor import Diagnostic
from skillshelf.skill import BaseSkill
from skillshelf.sources._resources import files_of

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

Loaded = TypeVar("Loaded")
Findings = Mapping[str, type[BaseSkill] | Diagnostic]
"""By key: a class, or why there is none."""

_SHOWN = 300


class ImportFailed(Exception):
    """Carries what to tell the author."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        self.diagnostic = diagnostic
        super().__init__(diagnostic.message)


def imported(load: Callable[[], Loaded], module: str) -> Loaded:
    """What `load` returns. Raises ImportFailed for anything that goes wrong in the module meanwhile."""
    try:
        return load()
    except (Exception, SystemExit) as error:
        path = module_path(module)
        reason = f"{type(error).__name__}: {error}".rstrip(": ")[:_SHOWN]
        fix = f"make `import {module}` work by itself"
        raise ImportFailed(
            Diagnostic("error", "import-failed", f"it cannot be imported: {reason}", path, _line(error, path), fix)
        ) from error


def skills_in(module: ModuleType) -> Findings:
    """The skills of a package and its subpackages, or those of one module."""
    if "__path__" not in vars(module):
        return _skills_of(module)
    found: dict[str, type[BaseSkill] | Diagnostic] = {}
    for name in _skill_modules(files_of(module), module.__name__):
        try:
            found |= _skills_of(imported(partial(importlib.import_module, name), name))
        except ImportFailed as fault:
            found[name] = fault.diagnostic
    return found


def key_of(skill: type[BaseSkill]) -> str:
    return f"{skill.__module__}:{skill.__qualname__}"


def module_path(module: str) -> str:
    return module.replace(".", "/") + ".py"


def _skill_modules(folder: "Traversable", package: str) -> Iterator[str]:
    """Module names of every `skill.py`. Nothing is imported, and nothing that is a skill's data is looked into."""
    children = {child.name: child for child in folder.iterdir()}
    if is_skill := "skill.py" in children:
        yield f"{package}.skill"
    for name, child in sorted(children.items()):
        if not name.isidentifier() or not child.is_dir():
            continue
        # A folder without __init__.py can be imported too, but beside a skill.py it holds references: a file there
        # that happens to be called skill.py is text for the model and must not run.
        if child.joinpath("__init__.py").is_file() or (not is_skill and child.joinpath("skill.py").is_file()):
            yield from _skill_modules(child, f"{package}.{name}")


def _skills_of(module: ModuleType) -> Findings:
    own = [value for value in vars(module).values() if _is_skill(value) and value.__module__ == module.__name__]
    # A class without a name that others here extend is their common ground, not a skill that lacks its name.
    skills = [cls for cls in own if cls.name or not any(cls in other.__mro__[1:] for other in own)]
    if skills:
        return {key_of(cls): cls for cls in skills}
    message, fix = "it defines no skill", "define a class that extends skillshelf.BaseSkill, or rename the file"
    return {module.__name__: Diagnostic("warning", "no-skill", message, module_path(module.__name__), fix=fix)}


def _is_skill(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, BaseSkill) and not inspect.isabstract(value)


def _line(error: BaseException, path: str) -> int:
    """The line of the author's file that failed; 0 when it was somewhere else."""
    if isinstance(error, SyntaxError) and (error.filename or "").endswith(path):
        return error.lineno or 0
    import traceback  # only a failure needs it

    frames = traceback.walk_tb(error.__traceback__)
    return next((line for frame, line in frames if frame.f_code.co_filename.endswith(path)), 0)
