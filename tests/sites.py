"""Web sites on this machine, for what fetches."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

from skillshelf.net import NetworkRules

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
