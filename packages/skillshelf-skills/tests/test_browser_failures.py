"""The skill `browser` when pages, servers, callers or the machine fail: a typed error, and nothing left running."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from calling import call
from sites import Site, send
from skillshelf.errors import MissingExtraError
from skillshelf_skills.browser import BrowserError, BrowserLimits
from skillshelf_skills.browser._happenings import Happenings
from skillshelf_skills.browser.skill import BrowserSkill
from web_pages import PATIENT, Signal, html, make_skill, needs_browser, open_browser

pytestmark = needs_browser
needs_proc = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="processes are found in /proc")


class Stage(Site):
    """A site that can keep its visitors waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.is_over = threading.Event()

    def keep_silent(self, page: BaseHTTPRequestHandler) -> None:
        """Accept the request, and say nothing."""
        self.is_over.wait()

    def never_finish(self, page: BaseHTTPRequestHandler) -> None:
        """Send the beginning of a page."""
        page.send_response(200)
        page.send_header("Content-Type", "text/html")
        page.end_headers()
        page.wfile.write(b"<p>Beginning</p>" + b" " * 5_000)
        page.wfile.flush()
        self.is_over.wait()


@pytest.fixture(scope="module")
def site() -> Iterator[Stage]:
    with Stage.running() as site:
        site.pages["/"] = html("<p>Home</p>")
        yield site
        site.is_over.set()


@pytest.fixture(scope="module")
def hasty(site: Stage) -> Iterator[BrowserSkill]:
    """One browser for all pages that keep it waiting."""
    with open_browser(site, BrowserLimits(seconds=9, load_seconds=1, memory_megabytes=700)) as skill:
        yield skill


def check_goes_on(skill: BrowserSkill, site: Site) -> None:
    """Open another page, more than once if need be: on a busy machine, one call may not have time enough."""
    for _ in range(10):
        try:
            assert call(skill, "open_page", url=site.url("/"))["text"] == "Home"
        except BrowserError:
            continue
        return
    pytest.fail("the browser does not go on")


# -- pages ------------------------------------------------------------------------------------------------------------


def test_a_page_that_never_finishes_is_read_as_far_as_it_came(hasty: BrowserSkill, site: Stage) -> None:
    """The result says that parts may be missing."""
    site.pages["/endless"] = site.never_finish
    reading = call(hasty, "open_page", url=site.url("/endless"))
    assert reading["text"] == "Beginning"
    assert reading["events"] == ["The page was still loading after 1 second: parts may be missing."]


def test_a_server_that_says_nothing_ends_in_time(hasty: BrowserSkill, site: Stage) -> None:
    """And the browser goes on."""
    site.pages["/silent"] = site.keep_silent
    with pytest.raises(BrowserError, match=r"did not begin to answer within 6 seconds.*'error_codes\.md'"):
        call(hasty, "open_page", url=site.url("/silent"))
    check_goes_on(hasty, site)


HARMFUL = {
    "an endless loop": ("<script>while (true) {}</script>", "does not respond: its own scripts keep it busy"),
    "endless dialogs": ("<script>while (true) alert('again')</script>", "one dialog or window after the other"),
    "memory": (
        "<script>const hoard = []; while (true) { hoard.push(new Uint8Array(50e6).fill(1)) }</script>",
        "crashed|does not respond",
    ),
}


@pytest.mark.parametrize("harm", HARMFUL)
def test_a_page_that_takes_everything_is_closed(harm: str, hasty: BrowserSkill, site: Stage) -> None:
    """Time, attention or memory. The browser goes on without it."""
    body, reason = HARMFUL[harm]
    site.pages["/harm"] = html(body)
    with pytest.raises(BrowserError, match=rf"({reason}).*closed\. Load the reference 'error_codes\.md'"):
        call(hasty, "open_page", url=site.url("/harm"))
    with pytest.raises(BrowserError, match="Call open_page"):
        call(hasty, "read_open_page")
    check_goes_on(hasty, site)


@needs_proc
def test_a_page_that_crashed_is_reported(site: Stage) -> None:
    """Its process is gone; the browser is not."""
    others = find_processes_below(os.getpid())
    with open_browser(site) as skill:
        call(skill, "open_page", url=site.url("/"))
        for pid in find_processes_below(os.getpid()) - others:
            if b"--type=renderer" in read_command(pid):
                os.kill(pid, signal.SIGKILL)
        with pytest.raises(BrowserError, match="The page crashed"):
            call(skill, "read_open_page")
        check_goes_on(skill, site)  # the process that Chromium kept ready for the next page was killed, too


def test_a_page_that_was_closed_between_calls_does_not_concern_the_next(site: Stage) -> None:
    """An address opens in a new page."""
    signal = Signal()
    site.pages["/signal"] = signal
    script = "new EventSource('/signal').onmessage = () => { while (true) alert('again') }"
    site.pages["/later"] = html(f"<p>Quiet</p><script>{script}</script>")
    with open_browser(site) as skill:
        try:
            assert call(skill, "open_page", url=site.url("/later"))["text"] == "Quiet"
        finally:
            signal.is_given.set()
        signal.is_over.wait()
        assert call(skill, "open_page", url=site.url("/"))["text"] == "Home"


@needs_proc
def test_a_browser_that_was_killed_starts_again(site: Stage) -> None:
    """The model is told once."""
    others = find_processes_below(os.getpid())
    with open_browser(site) as skill:
        call(skill, "open_page", url=site.url("/"))
        for pid in find_processes_below(os.getpid()) - others:
            if b"--remote-debugging-pipe" in read_command(pid) and b"--type=" not in read_command(pid):
                os.kill(pid, signal.SIGKILL)
        with pytest.raises(BrowserError, match="The browser has crashed"):
            call(skill, "read_open_page")
        assert call(skill, "open_page", url=site.url("/"))["text"] == "Home"


# -- addresses --------------------------------------------------------------------------------------------------------


def find_free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def test_a_page_that_cannot_be_loaded_says_why(site: Stage) -> None:
    """In words, for HTTP and for HTTPS."""

    def write_nonsense(page: BaseHTTPRequestHandler) -> None:
        page.wfile.write(b"\0\0\0\0 no HTTP \r\n\r\n")

    site.pages["/round"] = send(b"", status=302, Location="/round")
    site.pages["/nothing"] = send(b"", status=204)
    site.pages["/nonsense"] = write_nonsense
    closed = f"127.0.0.1:{find_free_port()}"
    site.rules = type(site.rules).allowing([site.host, closed])
    reasons = {
        site.url("/round"): "redirects in a circle",
        site.url("/nothing"): "no page",
        site.url("/nonsense"): "does not speak HTTP",
        site.url("/").replace("http:", "https:"): "does not speak HTTPS",
        f"http://{closed}/": "connection refused",
        f"https://{closed}/": "connection refused",
        "http://no-such-host.invalid/": "no such host",
        "https://no-such-host.invalid/": "no such host",
    }
    with open_browser(site) as skill:
        # In both orders: no failure is explained with an earlier one.
        for url, reason in (*reasons.items(), *reversed(reasons.items())):
            with pytest.raises(BrowserError, match=rf"{reason}.*'error_codes\.md'"):
                call(skill, "open_page", url=url)
        assert call(skill, "open_page", url=site.url("/"))["text"] == "Home"


def test_the_reason_does_not_depend_on_an_event_that_may_come_late(
    site: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chromium reports a failed request apart from the navigation that failed with it."""
    monkeypatch.setattr(Happenings, "_on_request_failed", Happenings._on_request_finished)
    site.pages["/round"] = send(b"", status=302, Location="/round")
    with open_browser(site) as skill, pytest.raises(BrowserError, match="redirects in a circle"):
        call(skill, "open_page", url=site.url("/round"))


def test_a_browser_that_has_fetched_too_much_says_so(site: Stage) -> None:
    """A new one starts from nothing."""
    site.pages["/large"] = send(b"x" * 3_000_000, Content_Type="text/plain")
    with open_browser(site, PATIENT._replace(traffic_megabytes=1, load_seconds=2)) as skill:
        assert len(call(skill, "open_page", url=site.url("/large"))["text"]) > 0
        with pytest.raises(BrowserError, match="too many bytes"):
            call(skill, "open_page", url=site.url("/"))
        call(skill, "close_browser")
        assert call(skill, "open_page", url=site.url("/"))["text"] == "Home"


# -- the machine ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("program", ["/bin/false", "/no/such/chromium", "/etc/passwd"])
def test_a_chromium_that_does_not_start_is_explained(program: str, site: Stage) -> None:
    """The next call tries again."""
    skill = make_skill(site, program=program)
    for _ in range(2):
        with pytest.raises(BrowserError, match=r"did not start.*'error_codes\.md'"):
            call(skill, "open_page", url=site.url("/"))


def test_a_machine_without_chromium_is_told_the_command(site: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is started."""
    monkeypatch.setenv("PATH", "/no/such/folder")
    with pytest.raises(BrowserError, match="apt install chromium"):
        call(make_skill(site), "open_page", url=site.url("/"))


def test_a_missing_driver_is_named_with_its_extra() -> None:
    """As an error of the call, not of the import."""
    program = (
        "import asyncio, sys; sys.modules['playwright'] = None\n"
        "from skillshelf_skills.browser.skill import BrowserSkill\n"
        "skill = BrowserSkill()\n"
        "asyncio.run(skill.tools()[0].call({'url': 'http://a.example/'}, approved=True))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert MissingExtraError.__name__ in done.stderr
    assert "pip install 'skillshelf[browser]'" in done.stderr


# -- callers ----------------------------------------------------------------------------------------------------------


def test_many_loops_and_threads_share_one_browser(site: Stage) -> None:
    """Their calls run one after the other, and each gets its own answer."""
    site.pages |= {f"/{number}": html(f"<p>Page {number}</p>") for number in range(6)}
    answers: dict[int, str] = {}
    others = find_browser_threads()
    with open_browser(site) as skill:

        def visit(number: int) -> None:
            answers[number] = call(skill, "open_page", url=site.url(f"/{number}"))["text"]

        threads = [threading.Thread(target=visit, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(find_browser_threads() - others) == 1
    assert answers == {number: f"Page {number}" for number in range(6)}


def test_a_caller_who_leaves_does_not_keep_the_browser(site: Stage) -> None:
    """The next call is served."""
    site.pages["/silent"] = site.keep_silent

    async def leave(skill: BrowserSkill) -> None:
        (tool,) = [tool for tool in skill.tools() if tool.name == "open_page"]
        visit = asyncio.ensure_future(tool.call({"url": site.url("/silent")}, approved=True))
        while not any("/silent" in request for request in site.requests):
            await asyncio.sleep(0.01)
        visit.cancel()
        with pytest.raises(asyncio.CancelledError):
            await visit

    with open_browser(site) as skill:
        site.requests.clear()
        asyncio.run(leave(skill))
        assert call(skill, "open_page", url=site.url("/"))["text"] == "Home"


def test_closing_forgets_the_profile(site: Stage) -> None:
    """A cookie is kept from page to page, and gone with the browser; closing twice does no harm."""
    site.pages["/cookie"] = html("<script>document.write(document.cookie || 'none'); document.cookie = 'a=1'</script>")
    with open_browser(site) as skill:
        texts = [call(skill, "open_page", url=site.url("/cookie"))["text"] for _ in range(2)]
        assert call(skill, "close_browser") == {"was_open": True}
        assert call(skill, "close_browser") == {"was_open": False}
        texts.append(call(skill, "open_page", url=site.url("/cookie"))["text"])
    assert texts == ["none", "a=1", "none"]


# -- the end ----------------------------------------------------------------------------------------------------------


def find_browser_threads() -> set[threading.Thread]:
    """Return the threads of all browsers, also of those that other tests have open."""
    return {thread for thread in threading.enumerate() if thread.name == "skillshelf-browser"}


def read_command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def read_parents() -> dict[int, int]:
    """Return the parent of each process that has not ended."""
    parents: dict[int, int] = {}
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] not in "ZX":
            parents[int(name)] = int(fields[1])
    return parents


def find_processes_below(pid: int) -> set[int]:
    parents = read_parents()
    below = {pid}
    while True:
        more = {child for child, parent in parents.items() if parent in below} - below
        if not more:
            return below - {pid}
        below |= more


def wait_until(is_so: Callable[[], bool]) -> None:
    """Wait as long as it takes; the test runner's limit ends it."""
    pause = threading.Event()
    while not is_so():
        pause.wait(0.05)


def test_a_browser_that_is_not_used_ends(site: Stage) -> None:
    """And starts again when it is needed."""
    others = find_browser_threads()
    with open_browser(site, PATIENT._replace(idle_seconds=0.1)) as skill:
        for _ in range(2):
            call(skill, "open_page", url=site.url("/"))
            wait_until(lambda: find_browser_threads() <= others)


def test_a_browser_ends_with_its_skill(site: Stage) -> None:
    """Copies under another policy share it, and the last of them ends it."""
    others = find_browser_threads()
    skill: BrowserSkill | None = make_skill(site)
    copy: BrowserSkill | None = skill.with_policy({"open_page": "safe"}) if skill else None
    assert copy is not None
    call(copy, "open_page", url=site.url("/"))
    copy = None
    assert len(find_browser_threads() - others) == 1
    skill = None
    wait_until(lambda: find_browser_threads() <= others)


PROGRAM = """
import asyncio, os, signal, sys
from skillshelf_skills.browser.skill import BrowserSkill

skill = BrowserSkill([sys.argv[1]])
open_page = skill.tools()[0]
print(asyncio.run(open_page.call({"url": f"http://{sys.argv[1]}/" + sys.argv[2]}, approved=True))["text"], flush=True)
sys.stdin.readline()
"""


@needs_proc
@pytest.mark.parametrize("path", ["", "later"])
@pytest.mark.parametrize("ending", ["exit", "kill"])
def test_nothing_is_left_running_when_the_program_ends(ending: str, path: str, site: Stage, tmp_path: Path) -> None:
    """By itself or killed, also while the page's scripts run without end."""
    site.pages["/later"] = html("<p>Home</p><script>setTimeout(() => { while (true) {} }, 3000)</script>")
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, site.host, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == b"Home\n"
        started = find_processes_below(program.pid)
        assert len(started) > 2
        if ending == "kill":
            program.kill()
        else:
            program.communicate(b"\n")
    wait_until(lambda: not started & read_parents().keys())
    wait_until(lambda: not list(tmp_path.iterdir()))
