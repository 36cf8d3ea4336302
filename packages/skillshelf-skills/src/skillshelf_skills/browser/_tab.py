"""The one page that the browser shows, and what a model can do with it."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Literal
from urllib.parse import urlsplit

from playwright.async_api import Error, FloatRect, Page, Response
from playwright.async_api import TimeoutError as PlaywrightTimeout

from skillshelf.errors import AddressRefusedError, FetchFailedError, SkillError
from skillshelf.skills.results import Image
from skillshelf.text import closest_names, count_noun, quote_for_model, truncate
from skillshelf_skills.browser._chromium import RunningChromium
from skillshelf_skills.browser._elements import (
    FoundElement,
    PageReader,
    WholeText,
    check_takes_text,
    check_usable,
    refuse_value,
    show_page_text,
)
from skillshelf_skills.browser._happenings import Happenings
from skillshelf_skills.browser._limits import BrowserLimits
from skillshelf_skills.browser._results import NOTICE, BrowserError, FieldChange, PageReading
from skillshelf_skills.net import GuardedProxy, name_site

_CLOSE_SECONDS = 5.0
_QUIET_CHECKS = 3
_MAX_CHECKS = 30
_SECONDS_BETWEEN_CHECKS = 0.1
_MAX_PNG = 2_000_000
_MAX_URL = 500
_READABLE = ("text/", "image/", "application/xhtml+xml", "application/xml", "application/json")
"""Types of documents that Chromium shows as they are."""
_TUNNEL_FAILED = "net::ERR_TUNNEL_CONNECTION_FAILED"
"""What Chromium says if the proxy refused a connection over HTTPS."""
_HTTPS_PORT = 443
_CODE = re.compile(r"net::ERR_[A-Z0-9_]+")
_REASONS = {
    "ABORTED": "the server sent no page: the address leads to a file, or to nothing",
    "CERT_AUTHORITY_INVALID": "its certificate is not from an authority that the browser knows",
    "CERT_COMMON_NAME_INVALID": "its certificate is for another host",
    "CERT_DATE_INVALID": "its certificate has expired",
    "CONNECTION_CLOSED": "the server ended the connection",
    "CONNECTION_RESET": "the server ended the connection",
    "EMPTY_RESPONSE": "the server answered with nothing",
    "INVALID_HTTP_RESPONSE": "the server does not speak HTTP",
    "SSL_PROTOCOL_ERROR": "the server does not speak HTTPS on this port",
    "TOO_MANY_REDIRECTS": "it redirects in a circle",
    "TUNNEL_CONNECTION_FAILED": "it cannot be reached",
    "UNSAFE_REDIRECT": "it redirects to an address that is not a web page",
}


class Tab:
    """A tab of the browser. One call uses it at a time."""

    def __init__(self, chromium: RunningChromium, limits: BrowserLimits) -> None:
        self._chromium = chromium
        self._limits = limits
        self._happenings = Happenings(chromium.context, limits)
        self._reader = PageReader(limits)
        self._page: Page | None = None
        self._last: WholeText | None = None
        self._old_refusals: list[SkillError] = []

    # -- calls

    async def open(self, url: str) -> PageReading:
        """Go to an address. Raises AddressRefusedError and BrowserError."""
        self._chromium.proxy.rules.check_scheme(url)
        if self._page is not None and (self._page.is_closed() or self._happenings.is_lost):
            await self.drop_page()
        self._happenings.begin_call()
        if self._page is None:
            self._page = await self._chromium.context.new_page()
            self._happenings.watch(self._page)
        page = self._page
        await self._navigate(page, url, lambda: page.goto(url, wait_until="commit", timeout=self._navigation_timeout))
        return await self._arrive(page)

    async def read(self, offset: int) -> PageReading:
        """Read the page, from the start or the next part of the last reading."""
        page = self._begin()
        if offset > 0 and self._last is not None:
            return self._report(page, self._last, offset)
        return await self._arrive(page)

    async def click(self, number: int, name: str, *, accepts_dialogs: bool) -> PageReading:
        """Click on an element."""
        page = self._begin()
        found = await self._reader.find(number, name)
        check_usable(found)
        self._happenings.accepts_dialogs = accepts_dialogs
        try:
            await self._act(found, lambda: found.locator.click(timeout=self._action_timeout))
            return await self._arrive(page)
        finally:
            self._happenings.accepts_dialogs = False

    async def fill(self, number: int, name: str, text: str) -> FieldChange:
        """Replace the content of a field."""
        page = self._begin()
        found = await self._reader.find(number, name)
        check_usable(found)
        check_takes_text(found)
        await self._act(found, lambda: found.locator.fill(text, timeout=self._action_timeout), value=text)
        change = await self._report_change(page, number, name)
        is_readable = found.state["tag"] in ("INPUT", "TEXTAREA") and found.state["type"] != "password"
        if text and is_readable and not change["value"]:
            raise refuse_value(found, text)
        return change

    async def choose(self, number: int, name: str, option: str) -> FieldChange:
        """Choose an option of a list by its text."""
        page = self._begin()
        found = await self._reader.find(number, name)
        check_usable(found)
        if found.state["tag"] != "SELECT":
            raise BrowserError(
                f"Element {found.element} is not a list of the browser's own. Click on it, read the page, and click on "
                f"the option.",
                reference="forms.md",
            )
        options: list[str] = found.state["options"]
        if option not in options:
            close = closest_names(option, options) or tuple(options[:20])
            raise BrowserError(
                f"Element {found.element} has no option {quote_for_model(truncate(option, 100))}. "
                f"There are: {', '.join(map(quote_for_model, close))}.",
                reference="forms.md",
            )
        await self._act(
            found, lambda: found.locator.select_option(label=option, timeout=self._action_timeout), value=option
        )
        return await self._report_change(page, number, name)

    async def press(self, key: str) -> PageReading:
        """Press a key. The element that has the focus gets it."""
        page = self._begin()
        await page.keyboard.press(key)
        return await self._arrive(page)

    async def go_back(self) -> PageReading:
        """Go to the page before this one."""
        page = self._begin()
        response = await self._navigate(
            page, page.url, lambda: page.go_back(wait_until="commit", timeout=self._navigation_timeout)
        )
        if response is None and page.url == "about:blank":  # where every tab begins
            await page.go_forward(wait_until="commit", timeout=self._navigation_timeout)
            raise BrowserError("There is no page before this one.")
        return await self._arrive(page)

    async def take_picture(self, *, whole_page: bool) -> list[str | Image]:
        """Return a picture of the page, and what it shows."""
        page = self._begin()
        area: FloatRect | None = None
        shown = "The visible part"
        if whole_page:
            self._last = await self._reader.read(page)
            height = min(self._last.height, self._limits.image_height)
            area = {"x": 0, "y": 0, "width": _get_width(page), "height": height}
            shown = f"The first {height:,} of {self._last.height:,} pixels"
            if height == self._last.height:
                shown = "The whole"
        data = await self._capture(page, area, "png")
        media_type = "image/png"
        if len(data) > _MAX_PNG:
            data = await self._capture(page, area, "jpeg")
            media_type = "image/jpeg"
        return [f"{shown} of {truncate(page.url, _MAX_URL)}. {NOTICE}", Image(data, media_type)]

    async def _capture(self, page: Page, area: FloatRect | None, kind: Literal["png", "jpeg"]) -> bytes:
        try:
            return await page.screenshot(
                full_page=area is not None,
                clip=area,
                scale="css",
                type=kind,
                quality=60 if kind == "jpeg" else None,
                timeout=self._limits.load_seconds * 1000,
            )
        except PlaywrightTimeout:  # it waits for the page's fonts
            raise BrowserError("The page could not be shown as a picture in time. Read it instead.") from None

    # -- failures

    async def drop_page(self) -> None:
        """Close the page, however it is. The next one starts afresh, with the same cookies."""
        page = self._page
        self._page = None
        self._last = None
        if page is not None:
            with suppress(Error, TimeoutError):
                async with asyncio.timeout(_CLOSE_SECONDS):
                    await page.close()

    async def translate(self, error: Exception) -> Exception:
        """Return the error that explains an error of Playwright's. The page is closed if it is of no more use."""
        # They belong to a result that there is not.
        self._happenings.take_events()
        self._old_refusals = list(self._chromium.proxy.refusals)
        if not isinstance(error, Error | TimeoutError):
            return error
        if not self._chromium.browser.is_connected():
            return BrowserError("The browser has crashed, or was ended by another program.")
        if self._happenings.is_flood:
            await self.drop_page()
            return BrowserError("The page opened one dialog or window after the other, and was closed.")
        if self._happenings.has_crashed:
            await self.drop_page()
            return BrowserError(
                f"The page crashed, or took more than the {self._limits.memory_megabytes:,} MB of memory that the "
                f"browser may have. It was closed."
            )
        if isinstance(error, PlaywrightTimeout | TimeoutError):
            await self.drop_page()
            return BrowserError("The page does not respond: its own scripts keep it busy. It was closed.")
        if self._page is not None and self._page.is_closed():
            await self.drop_page()
            return BrowserError("The page closed itself.")
        return BrowserError(f"The browser could not do this: {truncate(error.message.splitlines()[0], 300)}.")

    # -- steps

    @property
    def _navigation_timeout(self) -> float:
        """Milliseconds. The rest of the time is for the page's content."""
        return self._limits.seconds * 1000 * 2 / 3

    @property
    def _action_timeout(self) -> float:
        """Milliseconds."""
        return self._limits.action_seconds * 1000

    def _begin(self) -> Page:
        if self._page is None or self._page.is_closed():
            raise BrowserError("No page is open. Call open_page first.")
        self._happenings.begin_call()
        return self._page

    async def _navigate(self, page: Page, url: str, go: Callable[[], Awaitable[Response | None]]) -> Response | None:
        shown = quote_for_model(truncate(url, _MAX_URL))
        before = page.url
        self._happenings.failure = None
        try:
            return await go()
        except PlaywrightTimeout:
            await self.drop_page()
            seconds = count_noun(round(self._navigation_timeout / 1000), "second")
            raise BrowserError(f"{shown} did not begin to answer within {seconds}.") from None
        except Error as error:
            happenings = self._happenings
            if happenings.is_flood or happenings.has_crashed or page.is_closed():
                raise
            # What came of it, Chromium says a moment later: its error page, a file, or where the page went instead.
            await _wait_until(lambda: bool(happenings.offered_file) or page.url != before)
            if happenings.offered_file:
                file = quote_for_model(truncate(happenings.offered_file, 200))
                raise BrowserError(f"{shown} is a file to download ({file}), not a page.") from None
            if page.url != before and not page.url.startswith("chrome-error:"):
                return None
            # The event about the failed request may come later than that, or not at all while the machine is busy. An
            # earlier event may be about a request that this navigation ended. The error itself names the reason.
            code = _find_code(error)
            await _wait_until(lambda: happenings.failure is not None and code in (None, happenings.failure))
            if code is not None and happenings.failure != code:
                happenings.failure = code
                happenings.failed_url = url
            await self._raise_failure(url)
            raise

    async def _raise_failure(self, url: str) -> None:
        """Raise why the page could not be loaded, if that is known."""
        happenings = self._happenings
        refusal: SkillError | None = None
        if happenings.failure == _TUNNEL_FAILED:
            refusal = _find_tunnel_refusal(self._list_new_refusals(), happenings.failed_url)
        elif happenings.response is not None:
            refusal = await _find_sent_refusal(self._chromium.proxy, happenings.response)
        if isinstance(refusal, FetchFailedError):
            raise BrowserError(f"{quote_for_model(truncate(url, _MAX_URL))}: {refusal.reason}.") from None
        if refusal is not None:
            raise refusal from None
        if happenings.failure is not None:
            reason = _explain_failure(happenings.failure)
            raise BrowserError(f"{quote_for_model(truncate(url, _MAX_URL))}: {reason}.") from None

    async def _act(self, found: FoundElement, act: Callable[[], Awaitable[object]], value: str = "") -> None:
        """Do something with an element. Raises BrowserError, which says what is in the way."""
        try:
            await act()
        except PlaywrightTimeout:
            again = await self._reader.find(found.element.number, found.element.name)
            check_usable(again)
            if again.state["coveredBy"]:
                raise BrowserError(
                    f"Element {found.element} is covered by {quote_for_model(again.state['coveredBy'])}. Close what "
                    f"lies over it first.",
                    reference="forms.md",
                ) from None
            raise BrowserError(
                f"Element {found.element} cannot be used: it is not in view, or it moves.", reference="forms.md"
            ) from None
        except Error:
            happenings = self._happenings
            if happenings.has_crashed or happenings.is_flood or not value:
                raise
            raise refuse_value(found, value) from None

    async def _arrive(self, page: Page) -> PageReading:
        """Wait until the page has calmed down, read it, and return its first part."""
        await self._wait_for_load(page)
        await self._wait_for_quiet(page)
        if page.url.startswith("chrome-error:"):
            await _wait_until(lambda: self._happenings.failure is not None, seconds=5)
        response = self._happenings.response
        if page.url.startswith("chrome-error:") or (response is not None and response.status in (403, 502)):
            await self._raise_failure(response.url if response is not None else self._happenings.failed_url)
        if page.url.startswith("chrome-error:"):
            raise BrowserError("The page could not be loaded.")

        self._last = await self._reader.read(page)
        if not self._last.media_type.startswith(_READABLE):
            url = page.url
            await self.drop_page()
            raise BrowserError(f"{quote_for_model(truncate(url, _MAX_URL))} is {_describe_type(response)}, not a page.")
        return self._report(page, self._last, 0)

    async def _wait_for_load(self, page: Page) -> None:
        try:
            await page.wait_for_load_state("load", timeout=self._limits.load_seconds * 1000)
        except PlaywrightTimeout:
            seconds = count_noun(round(self._limits.load_seconds), "second")
            self._happenings.note(f"The page was still loading after {seconds}: parts may be missing.")

    async def _wait_for_quiet(self, page: Page) -> None:
        """Wait until the page has not changed for a while and waits for nothing; not for ever."""
        quiet = 0
        last: tuple[str, int] | None = None
        for _ in range(_MAX_CHECKS):
            state = page.url, await self._reader.count_changes(page)
            quiet = quiet + 1 if state == last and not self._happenings.is_loading else 0
            if quiet == _QUIET_CHECKS:
                return
            last = state
            await asyncio.sleep(_SECONDS_BETWEEN_CHECKS)

    def _report(self, page: Page, whole: WholeText, offset: int) -> PageReading:
        text, next_offset = whole.cut(max(offset, 0), self._limits.characters)
        self._note_refusals()
        response = self._happenings.response
        return PageReading(
            notice=NOTICE,
            url=truncate(page.url, _MAX_URL),
            title=whole.title,
            status=response.status if response is not None else None,
            text=text,
            is_whole=not next_offset,
            next_offset=next_offset,
            events=[*self._happenings.take_events(), *whole.missing],
        )

    def _note_refusals(self) -> None:
        """Keep for the model what the page was not given."""
        new = self._list_new_refusals()
        hosts = {refusal.target for refusal in new if isinstance(refusal, AddressRefusedError)}
        self._old_refusals = list(self._chromium.proxy.refusals)
        if hosts:
            shown = ", ".join(map(quote_for_model, sorted(hosts)[:5]))
            self._happenings.note(f"Parts of the page were refused by the network rules: {shown}.")

    def _list_new_refusals(self) -> list[SkillError]:
        """Return what was refused since the model was last told."""
        refusals = self._chromium.proxy.refusals
        return [refusal for refusal in refusals if not any(refusal is old for old in self._old_refusals)]

    async def _report_change(self, page: Page, number: int, name: str) -> FieldChange:
        await self._wait_for_quiet(page)
        found = await self._reader.find(number, name)
        return FieldChange(
            notice=NOTICE,
            url=truncate(page.url, _MAX_URL),
            element=number,
            name=show_page_text(found.element.name),
            value=show_page_text(str(found.state["value"])),
            events=self._happenings.take_events(),
        )


async def _wait_until(is_so: Callable[[], bool], seconds: float = 1) -> None:
    """Wait until something is so, or for so many seconds."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while not is_so():
                await asyncio.sleep(0.05)


def _get_width(page: Page) -> float:
    """Return the width of a page's window."""
    size = page.viewport_size
    assert size is not None
    return size["width"]


def _describe_type(response: Response | None) -> str:
    media_type = response.headers.get("content-type", "") if response is not None else ""
    return truncate(media_type.partition(";")[0].strip(), 100) or "a file"


# -- why a page could not be loaded


def _find_code(error: Error) -> str | None:
    """Return the error of Chromium's network for which a navigation failed, if it did for one: `net::ERR_…`."""
    found = _CODE.search(error.message)
    return found[0] if found else None


def _explain_failure(code: str) -> str:
    """Return in words what an error of Chromium's network means: `net::ERR_EMPTY_RESPONSE`."""
    name = code.removeprefix("net::ERR_")
    return _REASONS.get(name, name.replace("_", " ").lower() or "it cannot be loaded")


async def _find_sent_refusal(proxy: GuardedProxy, response: Response) -> SkillError | None:
    """Return the refusal that the browser got in place of a page, or None if a server sent it.

    Over HTTP, the browser takes the proxy's own words for the page.
    """
    if response.status not in (403, 502):
        return None
    body = await _read_body(response)
    for refusal in reversed(proxy.refusals):
        if str(refusal) == body:
            return refusal
    return None


def _find_tunnel_refusal(refusals: Sequence[SkillError], url: str) -> SkillError | None:
    """Return why the proxy opened no tunnel to the site of an address.

    Over HTTPS, the browser shows nothing of the proxy's words. The latest refusal of host and port is the reason.
    """
    parts = urlsplit(url)
    site = name_site(parts.hostname or "", parts.port or _HTTPS_PORT)
    for refusal in reversed(refusals):
        if isinstance(refusal, AddressRefusedError | FetchFailedError) and refusal.target == site:
            return refusal
    return None


async def _read_body(response: Response) -> str:
    try:
        return await response.text()
    except (Error, UnicodeDecodeError):  # the page has gone on, or the body is not text
        return ""
