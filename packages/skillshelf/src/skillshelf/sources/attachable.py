"""Skills of installed packages that are on a shelf only if the user attaches them by name, with `--with`.

A package announces a table of them in the entry point group `skillshelf.attachable`. No skill is imported to tell
whether it can be used here: its libraries are an extra, and a shelf without the skill pays nothing.
"""

import os
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Protocol, cast

from skillshelf.errors import SettingsError
from skillshelf.skills import BaseSkill
from skillshelf.sources.entry_points import find_entry_points
from skillshelf.text import closest_names

ENTRY_POINTS = "skillshelf.attachable"
_NEVER_ATTACHED = {
    "find-skills": "It is on every shelf",
    "skill-authoring": "The command line and the chat have it; a program takes packages=['skillshelf.skill_authoring']",
}
_INSTALL = "pip install 'skillshelf[{}]'"
_SHIPPED = {
    "agentic-rag": "rag",
    "authentication-gates": "authentication-gates",
    "browser": "browser",
    "database": "database",
    "execution-debugging": "execution-debugging",
    "pdf-extraction": "pdf-extraction",
    "weather": "weather",
}
"""The extra of each skill in `skillshelf-skills`. It installs that package, too, so one command suffices."""


class _FromSetting(Protocol):
    """What the class of an attachable skill offers besides being a skill."""

    def from_setting(self, setting: str) -> BaseSkill:
        """Return the skill as the text after `NAME=` describes it. Its policy asks before anything raw runs.

        Raises SettingsError, which says what the text should be, and MissingExtraError if this text needs a library.
        """
        ...


@dataclass(frozen=True, slots=True)
class SystemProgram:
    """A program that a skill runs and that pip cannot install."""

    names: tuple[str, ...]
    """The names under which systems have it. One of them suffices."""
    install: str
    """The command that installs it."""
    paths: tuple[str, ...] = ()
    """Where it may lie besides the PATH. `~` is the user's home."""

    def find(self) -> str | None:
        """Return the path of the program; None if it is not on this machine."""
        import shutil  # takes 5 ms, which only users of the skill's extra pay

        for place in (*self.names, *map(os.path.expanduser, self.paths)):
            found = shutil.which(place)
            if found:
                return found
        return None


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a skill cannot be used here."""

    reason: str
    command: str
    """What installs the missing part."""

    def __str__(self) -> str:
        return f"{self.reason}: {self.command}"


@dataclass(frozen=True, slots=True)
class AttachableSkill:
    """A skill that is on the shelf only if the user attaches it."""

    name: str
    target: str
    """`module:Class`."""
    extra: str
    """The extra that installs its libraries."""
    libraries: tuple[str, ...]
    """The modules that the extra installs, as `import` names them."""
    takes: str = ""
    """What may follow `NAME=`, in capitals; empty if nothing does."""
    needs_setting: bool = False
    """True if something has to."""
    programs: tuple[SystemProgram, ...] = ()

    @property
    def usage(self) -> str:
        """What to write after `--with`."""
        if not self.takes:
            return self.name
        return f"{self.name}={self.takes}" if self.needs_setting else f"{self.name}[={self.takes}]"

    def find_obstacle(self) -> Obstacle | None:
        """Return why the skill cannot be used here, or None if it can."""
        for library in self.libraries:
            if find_spec(library) is None:
                return Obstacle(f"the library {library} is not installed", _INSTALL.format(self.extra))
        for program in self.programs:
            if program.find() is None:
                return Obstacle(f"there is no {program.names[0]} on this machine", program.install)
        return None

    def construct(self, setting: str = "") -> BaseSkill:
        """Return the skill. Raises SettingsError or MissingExtraError if it cannot be used here with this setting."""
        obstacle = self.find_obstacle()
        if obstacle:
            raise SettingsError(f"The skill {self.name!r} is not available here: {obstacle}")
        if setting and not self.takes:
            raise SettingsError(f"The skill {self.name!r} takes no setting. Write: --with {self.name}")
        if self.needs_setting and not setting:
            raise SettingsError(f"The skill {self.name!r} needs to know what to work on. Write: --with {self.usage}")
        module, _, name = self.target.partition(":")
        cls = getattr(import_module(module), name)
        return cast(_FromSetting, cls).from_setting(setting)


def list_attachable() -> list[AttachableSkill]:
    """Return the attachable skills of all installed packages, by name."""
    skills = [skill for point in find_entry_points(ENTRY_POINTS) for skill in point.load()]
    return sorted(skills, key=lambda skill: skill.name)


def describe_attaching() -> dict[str, str]:
    """Return how to attach each skill, by name."""
    ways = {}
    for skill in list_attachable():
        way = f"attach it with --with {skill.usage}"
        obstacle = skill.find_obstacle()
        ways[skill.name] = f"{obstacle.command}, then {way}" if obstacle else way
    return ways


def attach_skill(text: str) -> BaseSkill:
    """Return the attachable skill that `NAME` or `NAME=SETTING` describes. Raises SettingsError, MissingExtraError."""
    name, _, setting = text.partition("=")
    attachable = list_attachable()
    skill = next((skill for skill in attachable if skill.name == name), None)
    if skill is not None:
        return skill.construct(setting)
    if name in _NEVER_ATTACHED:
        raise SettingsError(f"There is no need to attach the skill {name!r}. {_NEVER_ATTACHED[name]}.")
    if name in _SHIPPED:
        raise SettingsError(f"The skill {name!r} is not installed: {_INSTALL.format(_SHIPPED[name])}")
    names = sorted({*(skill.name for skill in attachable), *_SHIPPED})
    close = closest_names(name, names)
    hint = f"Did you mean {' or '.join(close)}?" if close else f"There are: {', '.join(names)}."
    raise SettingsError(f"No skill to attach is called {name!r}. {hint}")
