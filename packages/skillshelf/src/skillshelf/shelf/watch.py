"""Reload a shelf when files change.

A watcher is a hint, never the truth: it loses events, so each turn sweeps by stat too.
"""

import os
import threading
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING

from skillshelf.errors import MissingExtraError
from skillshelf.skills import Delta
from skillshelf.sources import ENVIRONMENT, InFolder

if TYPE_CHECKING:
    from skillshelf.shelf._shelf import Shelf

# If more paths change at once (a checkout, an unpacked archive), a sweep of everything is cheaper.
_MAX_PATHS = 500


class Watch:
    """Reloads the shelf when files under its folders change, until closed."""

    def __init__(
        self,
        shelf: "Shelf",
        on_change: Callable[[Delta], None] | None = None,
        reload: Callable[[list[str] | None], Delta] | None = None,
    ) -> None:
        """`reload` is called with the changed paths instead of `shelf.reload`; None stands for too many of them."""
        try:
            import watchfiles
        except ImportError:
            raise MissingExtraError("shelf.watch()", "watch") from None

        self._shelf = shelf
        self._on_change = on_change
        self._reload = reload or shelf.reload
        self._watch = watchfiles.watch
        self._stop = threading.Event()
        self.failure: Exception | None = None
        """The last error. Watching goes on after an exception in a reload or in `on_change`. It stops if the system
        cannot watch (no inotify watches left, for example). Each turn sweeps in any case."""
        self._thread = threading.Thread(target=self._run, name="skillshelf-watch", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        sources = [source for source in self._shelf.sources if source.name != ENVIRONMENT]  # which has 50,000 files
        roots = [source.root for source in sources if isinstance(source, InFolder)]
        existing = [root for root in roots if os.path.isdir(root)]
        if not existing:
            return

        for paths in self._wait_for_changes(existing):
            try:
                delta = self._reload(paths if len(paths) <= _MAX_PATHS else None)
                if delta and self._on_change:
                    self._on_change(delta)
            except Exception as error:  # nothing above a thread would catch it
                self.failure = error

    def _wait_for_changes(self, roots: list[str]) -> Iterator[list[str]]:
        batches = self._watch(
            *roots, stop_event=self._stop, watch_filter=None, debounce=100, step=20, raise_interrupt=False
        )
        try:
            for batch in batches:
                yield sorted(path for _, path in batch)
        except (OSError, RuntimeError) as error:  # RuntimeError if the system has no watches left
            self.failure = error

    def close(self) -> None:
        """Stop watching and wait for the thread to end. Called from `on_change`, it does not wait for itself."""
        self._stop.set()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def __enter__(self) -> "Watch":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
