"""The bundled skills that a user attaches by name, and whether they can be used here.

Nothing is imported to answer that: each skill's libraries are an extra, and a shelf without the skill pays nothing.
"""

import os
import sys
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Protocol, cast

from skillshelf.errors import SettingsError
from skillshelf.skill import BaseSkill
from skillshelf.text import closest_names


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
    """A bundled skill that is on the shelf only if the user attaches it."""

    name: str
    target: str
    """`module:Class`, below this package."""
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
                return Obstacle(f"the library {library} is not installed", f"pip install 'skillshelf[{self.extra}]'")
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
        cls = getattr(import_module(f"{__package__}.{module}"), name)
        return cast(_FromSetting, cls).from_setting(setting)


_MAC_BROWSERS = ("Google Chrome.app/Contents/MacOS/Google Chrome", "Chromium.app/Contents/MacOS/Chromium")
CHROMIUM = SystemProgram(
    ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"),
    "brew install --cask google-chrome" if sys.platform == "darwin" else "apt install chromium",
    # macOS puts no application on the PATH.
    tuple(f"{folder}/{browser}" for folder in ("/Applications", "~/Applications") for browser in _MAC_BROWSERS),
)

ATTACHABLE: tuple[AttachableSkill, ...] = (
    AttachableSkill(
        "agentic-rag",
        "agentic_rag.skill:AgenticRagSkill",
        "rag",
        ("anyio", "httpx2", "ladybug", "lxml_html_clean", "trafilatura"),
        takes="FOLDER",
    ),
    AttachableSkill(
        "authentication-gates",
        "authentication_gates.skill:AuthenticationGatesSkill",
        "authentication-gates",
        ("anyio", "httpx2"),
        takes="SITES",
    ),
    AttachableSkill(
        "browser",
        "browser.skill:BrowserSkill",
        "browser",
        ("anyio", "httpx2", "playwright"),
        takes="HOSTS",
        programs=(CHROMIUM,),
    ),
    AttachableSkill(
        "database",
        "database.skill:DatabaseSkill",
        "database",
        (),  # SQLite comes with Python; a PostgreSQL server needs the extra, and says so
        takes="FILE",
        needs_setting=True,
    ),
    AttachableSkill(
        "execution-debugging",
        "execution_debugging.skill:ExecutionDebuggingSkill",
        "execution-debugging",
        (),
        takes="FOLDER",
    ),
    AttachableSkill(
        "pdf-extraction",
        "pdf_extraction.skill:PdfExtractionSkill",
        "pdf-extraction",
        ("pdfplumber", "pypdfium2"),
        takes="FOLDER",
    ),
    AttachableSkill("weather", "weather.skill:WeatherSkill", "weather", ("anyio", "httpx2")),
)
"""The attachable skills, by name."""
_ALWAYS_THERE = ("find-skills", "skill-authoring")


def describe_attaching() -> dict[str, str]:
    """Return how to attach each skill, by name."""
    ways = {}
    for skill in ATTACHABLE:
        way = f"attach it with --with {skill.usage}"
        obstacle = skill.find_obstacle()
        ways[skill.name] = f"{obstacle.command}, then {way}" if obstacle else way
    return ways


def attach_bundled(text: str) -> BaseSkill:
    """Return the bundled skill that `NAME` or `NAME=SETTING` describes. Raises SettingsError, MissingExtraError."""
    name, _, setting = text.partition("=")
    skill = next((skill for skill in ATTACHABLE if skill.name == name), None)
    if skill is not None:
        return skill.construct(setting)
    if name in _ALWAYS_THERE:
        raise SettingsError(f"The skill {name!r} is on every shelf. There is nothing to attach.")
    names = [skill.name for skill in ATTACHABLE]
    close = closest_names(name, names)
    hint = f"Did you mean {' or '.join(close)}?" if close else f"There are: {', '.join(names)}."
    raise SettingsError(f"No bundled skill is called {name!r}. {hint}")
