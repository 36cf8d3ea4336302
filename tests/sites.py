"""Web sites on this machine, for what fetches, and the ways to fetch from them."""

import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import anyio
import pytest

from skillshelf_skills.net import Fetched, Fetcher, GuardedProxy, NetworkRules

Page = Callable[[BaseHTTPRequestHandler], None]


class Site(ThreadingHTTPServer):
    """A server on this machine. Its pages are functions that write the answer, by path with or without its query."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Request)
        self.pages: dict[str, Page] = {}
        self.requests: list[str] = []
        """Method, path and host of each request."""
        self.host = f"127.0.0.1:{self.server_port}"
        self.rules = NetworkRules.allowing([self.host])

    @classmethod
    @contextmanager
    def running(cls) -> Iterator[Self]:
        """Serve until the end of the block."""
        with cls() as site:
            thread = threading.Thread(target=site.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
            thread.start()
            try:
                yield site
            finally:
                site.shutdown()
                thread.join()

    def url(self, path: str) -> str:
        return f"http://{self.host}{path}"


class _Request(BaseHTTPRequestHandler):
    server: Site

    def do_GET(self) -> None:
        self.server.requests.append(f"{self.command} {self.path} {self.headers['Host']}")
        pages = self.server.pages
        page = pages.get(self.path) or pages.get(self.path.partition("?")[0]) or send(b"not here", status=404)
        page(self)

    do_POST = do_GET

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


def send(body: bytes, *, status: int = 200, **headers: str) -> Page:
    """Return a page with this body. Underscores in the names of headers become hyphens."""

    def write(page: BaseHTTPRequestHandler) -> None:
        page.send_response(status)
        for name, value in headers.items():
            page.send_header(name.replace("_", "-"), value)
        page.send_header("Content-Length", str(len(body)))
        page.end_headers()
        page.wfile.write(body)

    return write


def fetch(url: str, rules: NetworkRules | None = None, **options: Any) -> Fetched:
    """Fetch once."""

    async def run() -> Fetched:
        async with Fetcher(rules) as fetcher:
            return await fetcher.fetch(url, **options)

    return anyio.run(run)


def through_proxy(rules: NetworkRules, ask: Callable[[GuardedProxy], Any], **options: Any) -> Any:
    """Run a client in a thread of its own against a proxy."""

    async def run() -> Any:
        async with GuardedProxy(rules, **options) as proxy:
            return await anyio.to_thread.run_sync(ask, proxy)

    return anyio.run(run)


def ask_proxy(proxy: GuardedProxy, line: str, headers: Mapping[str, str] | None = None, body: bytes = b"") -> bytes:
    """Send one request with the password, and return everything that comes back."""
    fields = {"Proxy-Authorization": f"Basic {proxy._credentials}", **(headers or {})}
    head = "".join([f"{line} HTTP/1.1\r\n", *(f"{name}: {value}\r\n" for name, value in fields.items()), "\r\n"])
    return exchange(proxy, head.encode("utf-8", "surrogatepass") + body)


def exchange(proxy: GuardedProxy, data: bytes) -> bytes:
    """Send bytes to a proxy, and return everything that comes back."""
    received = b""
    with socket.create_connection(("127.0.0.1", proxy.port)) as client:
        client.settimeout(60)
        client.sendall(data)
        with suppress(ConnectionError):
            while piece := client.recv(65536):
                received += piece
    return received


def replace_names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Return the addresses that names have from now on. Names that are not in it are looked up as usual."""
    table: dict[str, list[str]] = {}
    look_up = socket.getaddrinfo

    def getaddrinfo(host: Any, port: Any, *arguments: Any, **keywords: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        if name not in table:
            return look_up(host, port, *arguments, **keywords)
        return [
            (socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))
            for address in table[name]
        ]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return table
