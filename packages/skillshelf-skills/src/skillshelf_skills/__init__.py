"""The skills that come with skillshelf, one subpackage each.

They do real work with real backends. Each has an extra for its libraries and is on a shelf only if you attach it:

    from skillshelf import Shelf, attach_skill

    shelf = Shelf.open(".", skills=[attach_skill("weather")])
"""

from skillshelf_skills._attachable import ATTACHABLE

__all__ = ["ATTACHABLE"]
