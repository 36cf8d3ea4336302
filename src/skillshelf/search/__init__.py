"""Which skill? `search(catalog, query)` ranks by words."""

from skillshelf.search._words import Match, search

__all__ = ["Match", "search"]
