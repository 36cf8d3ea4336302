"""The resources that somebody subscribed to.

They are read from time to time, because nothing else tells: a sweep sees that a SKILL.md changed, or that a reference
came or went, and not that one was edited in place.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence

import anyio

from skillshelf.mcp import _files as files
from skillshelf.mcp._looks import in_thread
from skillshelf.mcp._uris import LISTING, parse, uri_of
from skillshelf.shelf import Shelf

MOST = 1_000
"""URIs in one subscription; more are not acknowledged."""
_AT_ONCE = 20
"""Read in one go. Of somebody who leaves meanwhile, the rest is not read."""


class Subscriptions:
    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._lock = anyio.Lock()
        """However many subscribe at once, they take one thread of those that all share."""
        self._wanted: Counter[str] = Counter()
        """How many subscribed to each."""
        self._known: dict[str, bytes | None] = {}
        """The digest of what was served last; None for what is not served any more."""

    async def add(self, uris: Iterable[str]) -> list[str]:
        """Those of them that are served. Whoever asked hears of the next change."""
        async with self._lock:
            found = await self._digests(list(dict.fromkeys(uris))[:MOST])
        served = [uri for uri, digest in found.items() if digest]
        self._wanted.update(served)
        for uri in served:
            self._known.setdefault(uri, found[uri])
        return served

    def remove(self, uris: Iterable[str]) -> None:
        for uri in uris:
            self._wanted[uri] -= 1
            if self._wanted[uri] <= 0:
                del self._wanted[uri]
                self._known.pop(uri, None)

    async def changed(self) -> list[str]:
        """Those that are not as they were when this was asked last."""
        if not self._wanted:
            return []
        found = await self._digests(list(self._wanted))
        changed = [uri for uri, digest in found.items() if uri in self._known and self._known[uri] != digest]
        self._known.update({uri: found[uri] for uri in changed})
        return changed

    async def _digests(self, uris: Sequence[str]) -> dict[str, bytes | None]:
        found: dict[str, bytes | None] = {}
        for start in range(0, len(uris), _AT_ONCE):
            found |= await in_thread(_digests, self._shelf, uris[start : start + _AT_ONCE])
        return found


def _digests(shelf: Shelf, uris: Iterable[str]) -> dict[str, bytes | None]:
    return {uri: _digest(shelf, uri) for uri in uris}


def _digest(shelf: Shelf, uri: str) -> bytes | None:
    """Of a file, or of the first page of a long one and its size. None for what is not in the list of resources."""
    address = parse(uri)
    # Only as it is listed: else one file could be subscribed to under any number of spellings, and be read for each.
    if address is None or uri != uri_of(address.name, address.path):
        return None
    try:
        if uri == LISTING:
            return hashlib.sha256(shelf.listing().text.encode()).digest()
        part = files.read_part(shelf, address)
    except Exception:  # a source of somebody's own may raise anything: of the other resources clients hear on
        return None
    return hashlib.sha256(b"%d\n" % part.size + part.data).digest()
