"""Pages that try to reach what the network rules forbid, from inside a real browser."""

import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from calling import call
from sites import Site, send
from skillshelf.errors import AddressRefusedError
from skillshelf_skills.browser.skill import BrowserSkill
from web_pages import find_number, html, make_skill, needs_browser, open_browser

pytestmark = needs_browser


class Canary:
    """A place on this machine that must hear nothing: a port for connections and one for datagrams, with one number."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        canary = self

        class Listener(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                canary.heard.append(self.request.recv(1_000))

        self.tcp = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Listener)
        self.port = self.tcp.server_address[1]
        self.udp.bind(("127.0.0.1", self.port))
        self.udp.setblocking(False)

    @classmethod
    @contextmanager
    def listening(cls) -> Iterator["Canary"]:
        canary = cls()
        thread = threading.Thread(target=canary.tcp.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            with canary.tcp, canary.udp:
                yield canary
                canary.tcp.shutdown()
        finally:
            thread.join()

    def check_silence(self) -> None:
        with pytest.raises(BlockingIOError):
            self.udp.recv(1_000)
        assert self.heard == []


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with Site.running() as site:
        yield site


@pytest.fixture(scope="module")
def skill(site: Site) -> Iterator[BrowserSkill]:
    with open_browser(site) as skill:
        yield skill


@pytest.fixture
def canary() -> Iterator[Canary]:
    with Canary.listening() as canary:
        yield canary


def show(skill: BrowserSkill, site: Site, body: str) -> Any:
    site.pages["/page"] = html(body)
    return call(skill, "open_page", url=site.url("/page"))


ESCAPES = {
    "fetch": "fetch(http).then(lost, kept)",
    "fetch without CORS": """
        fetch(http, {mode: 'no-cors'}).then((answer) => answer.text()).then((text) => text ? lost() : kept(), kept)""",
    "fetch of localhost": "fetch(http.replace('127.0.0.1', 'localhost')).then(lost, kept)",
    "fetch in another notation": "fetch(http.replace('127.0.0.1', '2130706433')).then(lost, kept)",
    "fetch over IPv6": "fetch(http.replace('127.0.0.1', '[::ffff:127.0.0.1]')).then(lost, kept)",
    "fetch over HTTPS": "fetch(http.replace('http:', 'https:')).then(lost, kept)",
    "fetch of a file": "fetch('file:///etc/passwd').then(lost, kept)",
    "beacon": "navigator.sendBeacon(http, 'secret'); fetch(http).then(lost, kept)",
    "picture": "const image = new Image(); image.onload = lost; image.onerror = kept; image.src = http",
    "web socket": """
        const link = new WebSocket(http.replace('http:', 'ws:')); link.onopen = lost; link.onerror = kept""",
    "event source": """
        const events = new EventSource(http);
        events.onopen = lost;
        events.onerror = () => { events.close(); kept() }""",
    "worker": """
        const task = `fetch('${http}').then(() => postMessage(1), () => postMessage(0))`;
        const worker = new Worker(URL.createObjectURL(new Blob([task])));
        worker.onmessage = (message) => message.data ? lost() : kept()""",
    "WebRTC": """
        const relay = {urls: `turn:127.0.0.1:${port}?transport=tcp`, username: 'a', credential: 'b'};
        const peer = new RTCPeerConnection({iceServers: [{urls: `stun:127.0.0.1:${port}`}, relay]});
        let found = 0;
        peer.onicecandidate = (event) => { if (event.candidate) found++; else found ? lost() : kept() };
        peer.createDataChannel('a');
        peer.createOffer().then((offer) => peer.setLocalDescription(offer))""",
    "WebTransport": "new WebTransport(http.replace('http:', 'https:')).ready.then(lost, kept)",
    "preconnect": """
        const hint = document.createElement('link'); hint.rel = 'preconnect'; hint.href = http;
        document.head.append(hint); fetch(http).then(lost, kept)""",
}


@pytest.mark.parametrize("escape", ESCAPES)
def test_scripts_of_a_page_do_not_reach_this_machine(
    escape: str, skill: BrowserSkill, site: Site, canary: Canary
) -> None:
    """By no way out that a browser has, and in no notation of the address."""
    reading = show(
        skill,
        site,
        f"""<p id=out>waiting</p><script>
        const port = {canary.port}, http = `http://127.0.0.1:{canary.port}/`;
        const lost = () => {{ out.textContent = "escaped" }}, kept = () => {{ out.textContent = "kept" }};
        {ESCAPES[escape]}
        </script>""",
    )
    events = reading["events"]
    while reading["text"] == "waiting":
        reading = call(skill, "read_open_page")
        events += reading["events"]
    assert reading["text"] == "kept"
    if escape == "fetch":
        assert events == [f'Parts of the page were refused by the network rules: "127.0.0.1:{canary.port}".']
    canary.check_silence()


@pytest.mark.parametrize(
    "target",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://[fd00:ec2::254]/latest/meta-data/",
        "http://127.0.0.1:{port}/",
        "http://localhost:{port}/",
        "http://0.0.0.0:{port}/",
        "http://2130706433:{port}/",
        "https://127.0.0.1:{port}/",
    ],
)
def test_no_redirect_leads_to_a_forbidden_address(target: str, skill: BrowserSkill, site: Site, canary: Canary) -> None:
    """Whether the server, the page or its script sends the browser there, or the model does."""
    address = target.format(port=canary.port)
    site.pages["/redirect"] = send(b"", status=302, Location=address)
    site.pages["/refresh"] = html(f"<meta http-equiv=refresh content='0; url={address}'>")
    site.pages["/script"] = html(f"<script>location = '{address}'</script>")
    for url in (address, *map(site.url, ("/redirect", "/refresh", "/script"))):
        with pytest.raises(AddressRefusedError, match="may not be reached"):
            call(skill, "open_page", url=url)
    canary.check_silence()


def test_links_and_forms_to_forbidden_addresses_lead_nowhere(skill: BrowserSkill, site: Site, canary: Canary) -> None:
    """A click is checked like an address that the model names."""
    page = show(
        skill,
        site,
        f"""<a href=http://127.0.0.1:{canary.port}/>Go</a>
        <form action=http://127.0.0.1:{canary.port}/ method=post><button>Send</button></form>""",
    )
    for name in ("Go", "Send"):
        with pytest.raises(AddressRefusedError):
            call(skill, "click_element", element=find_number(page, name), name=name)
        page = call(skill, "go_back")
    canary.check_silence()


def test_a_public_name_with_a_private_address_is_refused(
    site: Site, canary: Canary, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proxy looks names up, and the browser never does."""
    look_up = socket.getaddrinfo

    def getaddrinfo(host: Any, port: Any, *arguments: Any, **keywords: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        return look_up("127.0.0.1" if name == "rebind.example" else host, port, *arguments, **keywords)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    skill = make_skill(site)
    try:
        for scheme in ("http", "https"):
            with pytest.raises(AddressRefusedError, match=r"'rebind\.example:\d+' may not be reached: its address 127"):
                call(skill, "open_page", url=f"{scheme}://rebind.example:{canary.port}/")
    finally:
        call(skill, "close_browser")
    canary.check_silence()


def test_files_of_this_machine_are_not_shown(skill: BrowserSkill, site: Site, tmp_path: Path) -> None:
    """In a frame, as a picture, through a link, by a redirect or in a form."""
    secret = tmp_path / "secret.html"
    secret.write_text("<p>top secret</p>")
    address = secret.as_uri()
    site.pages["/redirect"] = send(b"", status=302, Location=address)
    page = show(
        skill,
        site,
        f"""<iframe src={address}></iframe><iframe src=/redirect></iframe><object data={address}></object>
        <iframe src=view-source:{address}></iframe><iframe src=chrome://version></iframe>
        <a href={address}>Link</a><a href=view-source:{address}>Source</a><a href=chrome://settings>Chrome</a>""",
    )
    for name in ("Link", "Source", "Chrome"):
        clicked = call(skill, "click_element", element=find_number(page, name), name=name)
        assert "top secret" not in str(clicked)
        assert clicked["url"] == page["url"]
    assert "top secret" not in str(page)


def test_the_browser_is_reached_by_no_port(skill: BrowserSkill, site: Site) -> None:
    """It is driven through a pipe: there is no debugging port that a page or another program could use."""
    show(skill, site, "<p>Home</p>")
    commands = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.is_file()]
    ours = [command for command in commands if b"--remote-debugging-pipe" in command]
    assert not any(b"--remote-debugging-port" in command for command in ours)
