"""Starts the system's Chromium behind a guarded proxy, and ends it."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from importlib.resources import files

from playwright.async_api import Browser, BrowserContext, Error, Playwright, async_playwright

from skillshelf.text import truncate
from skillshelf_skills._attachable import CHROMIUM
from skillshelf_skills.browser._limits import BrowserLimits
from skillshelf_skills.browser._results import BrowserError
from skillshelf_skills.net import GuardedProxy, NetworkRules

ENGINE = "shelf"
"""The name under which Playwright knows the scripts in `reader`."""
_READER_PARTS = ("elements.js", "recognition.js", "sight.js", "text.js", "engine.js")
_SECONDS_TO_START = 30.0
_SECONDS_TO_END = 5.0
_VIEWPORT = 1280, 900
_MEGABYTE = 1_000_000
_SECONDS_BETWEEN_CHECKS = 0.25
_PAGE_SIZE = os.sysconf("SC_PAGE_SIZE")
_INHERITED = ("PATH", "TZ")
# Nothing may leave but through the proxy. The browser looks up no names and sends no datagrams, and this machine is no
# exception to the proxy, as it is by default.
_ARGUMENTS = (
    "--proxy-bypass-list=<-loopback>",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--disable-quic",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--dns-prefetch-disable",
    "--no-pings",
    "--deny-permission-prompts",
    "--js-flags=--max-old-space-size=1024",
)
# Playwright switches these protections off, for tests of one's own pages.
_KEPT_PROTECTIONS = ("--disable-popup-blocking", "--disable-ipc-flooding-protection")


@dataclass(frozen=True, slots=True)
class RunningChromium:
    """A browser with an empty profile."""

    browser: Browser
    context: BrowserContext
    proxy: GuardedProxy


@asynccontextmanager
async def run_chromium(
    rules: NetworkRules, limits: BrowserLimits, program: str | None, sandbox: bool | None
) -> AsyncIterator[RunningChromium]:
    """Run a browser until the end of the block. Raises BrowserError.

    Its processes and its profile are gone after the block. They go, too, if this process is killed: the driver ends
    when its input ends, and Chromium when the driver does.
    """
    path = program or CHROMIUM.find()
    if path is None:
        raise BrowserError(f"There is no Chromium on this machine. Install it with: {CHROMIUM.install}.")

    async with AsyncExitStack() as stack:
        proxy = await stack.enter_async_context(
            GuardedProxy(rules, max_total_bytes=limits.traffic_megabytes * _MEGABYTE)
        )
        try:
            playwright = await stack.enter_async_context(async_playwright())
            await playwright.selectors.register(ENGINE, script=_load_reader(), content_script=True)
            browser = await _launch(playwright, path, proxy, sandbox)
        except (Error, OSError) as error:
            raise BrowserError(f"Chromium ({path}) did not start: {_explain(error)}") from None
        stack.push_async_callback(_close, browser)
        context = await _make_context(browser)
        watch = asyncio.create_task(end_greedy_pages(browser, limits.memory_megabytes))
        stack.callback(watch.cancel)
        yield RunningChromium(browser, context, proxy)


def _load_reader() -> str:
    """Return the script that reads pages: its parts, in a scope of their own that only `engine` leaves."""
    folder = files(__package__).joinpath("reader")
    parts = [folder.joinpath(name).read_text(encoding="utf-8") for name in _READER_PARTS]
    return "\n".join(["(() => {", *parts, "return engine;", "})()"])


async def _launch(playwright: Playwright, path: str, proxy: GuardedProxy, sandbox: bool | None) -> Browser:
    # Chromium refuses to run as root with its sandbox.
    is_root = os.geteuid() == 0
    environment: dict[str, str | float | bool] = {
        **{name: os.environ[name] for name in _INHERITED if name in os.environ},
        "HOME": os.devnull,  # nothing of the user's is read there, and nothing can be left there
        "LANG": "C.UTF-8",
    }
    return await playwright.chromium.launch(
        executable_path=path,
        headless=True,
        chromium_sandbox=not is_root if sandbox is None else sandbox,
        proxy={"server": proxy.url, "username": proxy.user, "password": proxy.password},
        args=_ARGUMENTS,
        ignore_default_args=_KEPT_PROTECTIONS,
        env=environment,
        timeout=_SECONDS_TO_START * 1000,
        # Ctrl+C is for the program that uses the skill, which may go on.
        handle_sigint=False,
        handle_sigterm=False,
        handle_sighup=False,
    )


async def _make_context(browser: Browser) -> BrowserContext:
    width, height = _VIEWPORT
    return await browser.new_context(
        accept_downloads=False,
        permissions=[],  # all others are denied
        service_workers="block",
        viewport={"width": width, "height": height},
    )


async def _close(browser: Browser) -> None:
    """Close the browser. One that does not answer ends with its driver."""
    with suppress(Error, TimeoutError):
        async with asyncio.timeout(_SECONDS_TO_END):
            await browser.close()


def _explain(error: Exception) -> str:
    """Return why Chromium did not start, in a sentence."""
    text = str(error)
    if "No usable sandbox" in text or "user namespace" in text.lower():
        return (
            "its sandbox needs user namespaces, which this system does not give it. A program that is confined in "
            "another way can pass sandbox=False to BrowserSkill."
        )
    lines = [line.partition("[err]")[2].strip() for line in text.splitlines() if "[err]" in line]
    return truncate((lines or text.splitlines() or [""])[0], 300).rstrip(".") + "."


# -- memory


@dataclass(frozen=True, slots=True)
class _BrowserProcess:
    id: int
    shows_pages: bool
    memory: int


async def end_greedy_pages(browser: Browser, max_megabytes: int) -> None:
    """Watch the browser's memory until this is cancelled; while there is too much, kill the largest process with pages.

    A page whose process was killed counts as crashed. Without /proc, as on macOS, nothing is measured: there, a page
    is limited by the bounds that Chromium sets.
    """
    with suppress(Error):  # the browser has ended
        session = await browser.new_browser_cdp_session()
        while True:
            answer = await session.send("SystemInfo.getProcessInfo")
            processes = [
                _BrowserProcess(int(info["id"]), info["type"] == "renderer", _measure(int(info["id"])))
                for info in answer["processInfo"]
            ]
            victim = _find_victim(processes, max_megabytes * _MEGABYTE)
            if victim is not None:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(victim, signal.SIGKILL)
            await asyncio.sleep(_SECONDS_BETWEEN_CHECKS)


def _find_victim(processes: Iterable[_BrowserProcess], limit: int) -> int | None:
    """Return the process to end, or None if all together are within the limit."""
    listed = list(processes)
    if sum(process.memory for process in listed) <= limit:
        return None
    largest = max(listed, key=lambda process: (process.shows_pages, process.memory))
    return largest.id


def _measure(process: int) -> int:
    """Return the memory that a process shares with no other, in bytes; 0 if it is gone or there is no /proc."""
    try:
        with open(f"/proc/{process}/statm", "rb") as file:
            _, resident, shared, *_ = map(int, file.read().split())
    except (OSError, ValueError):
        return 0
    return (resident - shared) * _PAGE_SIZE
