"""The skills that come with skillshelf, one subpackage each.

`skill-authoring` is on every shelf. The others do real work with real backends: each has an extra for its libraries
and is on a shelf only if you attach it.

    from skillshelf import Shelf
    from skillshelf.bundled import attach_bundled

    shelf = Shelf.open(".", skills=[attach_bundled("weather")])
"""

from skillshelf.bundled._attachable import (
    ATTACHABLE,
    AttachableSkill,
    Obstacle,
    SystemProgram,
    attach_bundled,
    describe_attaching,
)

__all__ = ["ATTACHABLE", "AttachableSkill", "Obstacle", "SystemProgram", "attach_bundled", "describe_attaching"]
