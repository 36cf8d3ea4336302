"""File changes -> shelf.reload. A hint, never the truth: a watcher loses events, so each turn sweeps by stat too."""

import os
import threading
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from skillshelf.descriptor import Delta
from skillshelf.errors import MissingExtraError

if TYPE_CHECKING:
    from skillshelf.shelf import Shelf

# Past this many paths at once (a checkout, an unpacking) looking at everything is cheaper.
_MANY = 500


@runtime_checkable
class InFolder(Protocol):
    """A source whose skills lie in a folder, itself or through one that it wraps."""

    root: str


class Watch:
    """Reloads the shelf when files under its folders change, until closed."""

    def __init__(self, shelf: "Shelf", on_change: Callable[[Delta], None] | None = None) -> None:
        try:
            import watchfiles
        except ImportError:
            raise MissingExtraError("shelf.watch()", "watch") from None
        self._shelf, self._on_change = shelf, on_change
        self._stop = threading.Event()
        self.failure: Exception | None = None
        """What went wrong last. After an exception in a reload or in `on_change`, watching goes on; where the system
        cannot watch (no inotify watches left, say), it has stopped. The sweep of each turn goes on in any case."""
        self._watch = watchfiles.watch
        self._thread = threading.Thread(target=self._run, name="skillshelf-watch", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        roots = [
            source.root for source in self._shelf.sources if isinstance(source, InFolder) and os.path.isdir(source.root)
        ]
        for paths in self._changes(roots) if roots else ():
            try:
                self._reload(paths)
            except Exception as error:  # nobody is above a thread to catch it
                self.failure = error

    def _reload(self, paths: list[str]) -> None:
        delta = self._shelf.reload(None if len(paths) > _MANY else paths)
        if delta and self._on_change:
            self._on_change(delta)

    def _changes(self, roots: list[str]) -> Iterator[list[str]]:
        try:
            for batch in self._watch(
                *roots, stop_event=self._stop, watch_filter=None, debounce=100, step=20, raise_interrupt=False
            ):
                yield sorted(path for _, path in batch)
        except (
            OSError,
            RuntimeError,
        ) as error:  # the latter where the system has no watches left
            self.failure = error

    def close(self) -> None:
        """Stop, and wait until it has; from inside `on_change`, where waiting would never end, only stop."""
        self._stop.set()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def __enter__(self) -> "Watch":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
