"""A shelf of skills for Python agents.

    from skillshelf import Shelf

    shelf = Shelf.open(".")                          # the workspace's skills and the user's
    system_prompt += shelf.listing().text            # the section that the model always sees
    with shelf.turn() as turn:                       # one user message to its final answer
        turn.load("pdf")                             # a skill's instructions, when the model asks for them
        turn.load("pdf", "forms.md")                 # one of its references
    shelf.reload()                                   # picks up changes on disk and returns them as a Delta

Code skills are subclasses of BaseSkill with methods marked @tool. SkillDiscoverySkill has the tools for the model.
"""

# First of all: it keeps `python -m skillshelf` from importing files of the current folder.
from skillshelf import _import_path as _import_path

# isort: split

from typing import TYPE_CHECKING

from skillshelf._version import __version__ as __version__
from skillshelf.errors import (
    AmbiguousReferenceError,
    InvalidSkillError,
    MissingExtraError,
    PolicyError,
    ReferenceNotAllowedError,
    ReferenceNotFoundError,
    ReferenceUnreadableError,
    SkillError,
    SkillNotFoundError,
    SkillUnreadableError,
    SourceError,
    ToolArgumentError,
    ToolFailedError,
    ToolResultError,
)
from skillshelf.lazy import export_lazily
from skillshelf.shelf import Loaded, Shelf, SkillDiscoverySkill, Turn
from skillshelf.skills import Activation, BaseSkill, Catalog, Delta, Diagnostic, SkillDescriptor, Tool, tool
from skillshelf.sources import DirectorySource, MemorySource, PackageSource

if TYPE_CHECKING:
    from skillshelf.skills.results import Audio, Image

__all__ = [
    "Activation",
    "AmbiguousReferenceError",
    "Audio",
    "BaseSkill",
    "Catalog",
    "Delta",
    "Diagnostic",
    "DirectorySource",
    "Image",
    "InvalidSkillError",
    "Loaded",
    "MemorySource",
    "MissingExtraError",
    "PackageSource",
    "PolicyError",
    "ReferenceNotAllowedError",
    "ReferenceNotFoundError",
    "ReferenceUnreadableError",
    "Shelf",
    "SkillDescriptor",
    "SkillDiscoverySkill",
    "SkillError",
    "SkillNotFoundError",
    "SkillUnreadableError",
    "SourceError",
    "Tool",
    "ToolArgumentError",
    "ToolFailedError",
    "ToolResultError",
    "Turn",
    "tool",
]

# Only tools that return images or sound need it.
__getattr__ = export_lazily(__name__, {"skills.results": ["Audio", "Image"]})
