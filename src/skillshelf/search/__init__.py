"""Which skill? `search(catalog, query)` ranks by words."""

from skillshelf.search.words import Match, search

__all__ = ["Match", "search"]
