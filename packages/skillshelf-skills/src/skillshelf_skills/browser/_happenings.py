"""What a page does of its own accord: dialogs, windows, downloads. Nothing of it reaches the user's machine."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from playwright.async_api import BrowserContext, Dialog, Download, Error, FileChooser, Page, Request, Response

from skillshelf.text import quote_for_model, truncate
from skillshelf_skills.browser._limits import BrowserLimits

_MAX_EVENTS = 10
_MAX_TEXT = 300
_AWAITED = frozenset({"document", "xhr", "fetch", "script", "stylesheet"})
"""Requests that a page is waited for. Pictures may come later, and streams never end."""


class Happenings:
    """Answers what a page asks for, and keeps a record of it for the model."""

    def __init__(self, context: BrowserContext, limits: BrowserLimits) -> None:
        self.accepts_dialogs = False
        """True if dialogs are answered with OK: during a call that says so, and not after it."""
        self.is_flood = False
        """True if the page opened more dialogs and windows than it may."""
        self.has_crashed = False
        self.response: Response | None = None
        """The answer to the last request for the page itself."""
        self.failure: str | None = None
        """Why the last such request failed, as Chromium names it: net::ERR_…"""
        self.failed_url = ""
        """The address of that request."""
        self.offered_file = ""
        """The name of the file that the page offered last."""
        self._last_request: Request | None = None
        """The last request for the page itself."""
        self._context = context
        self._limits = limits
        self._page: Page | None = None
        self._events: list[str] = []
        self._opened = 0
        self._running: set[Request] = set()
        self._tasks: set[asyncio.Task[Any]] = set()

    def watch(self, page: Page) -> None:
        """Watch a page. What belongs to an earlier one is forgotten."""
        self._page = page
        self._running.clear()
        self.has_crashed = False
        self.response = None
        self.failure = None
        page.on("dialog", self._on_dialog)
        page.on("download", self._on_download)
        page.on("filechooser", self._on_file_chooser)
        page.on("crash", self._on_crash)
        page.on("request", self._on_request)
        page.on("requestfinished", self._on_request_finished)
        page.on("requestfailed", self._on_request_failed)
        page.on("response", self._on_response)
        page.on("popup", self._on_window)

    def begin_call(self) -> None:
        """Forget the counts of the last call."""
        self.is_flood = False
        self.offered_file = ""
        self._opened = 0
        self._running.clear()
        for other in self._context.pages:
            if other is not self._page:
                self._start(other.close())

    @property
    def is_lost(self) -> bool:
        """True if the page crashed, or is being closed for what it does."""
        return self.has_crashed or self.is_flood

    @property
    def is_loading(self) -> bool:
        """True if the page waits for an answer of a server."""
        return bool(self._running)

    def note(self, sentence: str) -> None:
        """Keep a sentence for the model."""
        self._events.append(sentence)

    def take_events(self) -> list[str]:
        """Return what happened since the last time."""
        taken = self._events[:_MAX_EVENTS]
        if len(self._events) > _MAX_EVENTS:
            taken.append(f"And {len(self._events) - _MAX_EVENTS} more of the same kind.")
        self._events = []
        return taken

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(_ignore_errors(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _count(self) -> None:
        self._opened += 1
        if self._opened > self._limits.dialogs and not self.is_flood and self._page is not None:
            self.is_flood = True
            self._start(self._page.close())

    def _on_dialog(self, dialog: Dialog) -> None:
        if dialog.type == "beforeunload":
            self._start(dialog.accept())
            return
        self._count()
        if self.is_flood:
            return
        text = quote_for_model(truncate(dialog.message, _MAX_TEXT))
        if self.accepts_dialogs and dialog.type == "confirm":
            self._start(dialog.accept())
            self.note(f"The page asked {text} and was answered with OK.")
            return
        self._start(dialog.dismiss())
        answer = "It was closed." if dialog.type == "alert" else "It was answered with Cancel."
        self.note(f"The page showed the dialog ({dialog.type}) {text}. {answer}")

    def _on_window(self, page: Page) -> None:
        self._count()
        self.note(f"The page opened a window with {_show(page.url)}. It was closed; call open_page to go there.")
        self._start(page.close())

    def _on_download(self, download: Download) -> None:
        self.offered_file = download.suggested_filename
        self.note(f"The page offered the file {_show(download.suggested_filename)}. Files are not downloaded.")
        self._start(download.cancel())

    def _on_file_chooser(self, chooser: FileChooser) -> None:
        self.note("The page asked for a file of this machine. It gets none.")

    def _on_crash(self, page: Page) -> None:
        if page == self._page:
            self.has_crashed = True

    def _on_request(self, request: Request) -> None:
        if request.resource_type in _AWAITED:
            self._running.add(request)
        if self._is_for_page(request):
            self.response = None
            self.failure = None
            self._last_request = request

    def _on_request_finished(self, request: Request) -> None:
        self._running.discard(request)

    def _on_request_failed(self, request: Request) -> None:
        self._running.discard(request)
        # An earlier request ends when another one takes its place, and that may be reported last.
        if request == self._last_request:
            self.failure = request.failure or ""
            self.failed_url = request.url

    def _on_response(self, response: Response) -> None:
        if self._is_for_page(response.request):
            self.response = response

    def _is_for_page(self, request: Request) -> bool:
        return request.is_navigation_request() and self._page is not None and request.frame == self._page.main_frame


async def _ignore_errors(work: Coroutine[Any, Any, None]) -> None:
    """Wait for work on a dialog or a window, which may have gone meanwhile."""
    try:
        await work
    except Error:
        return


def _show(text: str) -> str:
    return quote_for_model(truncate(text, _MAX_TEXT))
