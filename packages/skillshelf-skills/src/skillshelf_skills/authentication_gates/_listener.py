"""The end of an authorization code flow: a page on this machine to which the issuer sends the user's browser back."""

import hmac
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

_DONE = "The answer has arrived. You may close this page and go back."
_FAILED = "The sign-in failed. You may close this page."
_POLL_SECONDS = 0.5


class RedirectListener(HTTPServer):
    """Waits on 127.0.0.1 for one redirect, and then, or when its time is over, goes away.

    Its start page leads to the issuer. So the model gets a short link, in which nothing is secret.
    """

    def __init__(self, make_link: Callable[[str], str], *, state: str, issuer: str, seconds: float) -> None:
        """`issuer` is what the redirect must name as its issuer; empty if this issuer's redirects name none."""
        super().__init__(("127.0.0.1", 0), _CallbackRequest)
        self.timeout = _POLL_SECONDS
        self.start_page = f"http://127.0.0.1:{self.server_port}/"
        self.redirect = f"{self.start_page}callback"
        self.link = make_link(self.redirect)
        self.code = ""
        self.error = ""
        """The issuer's error, such as `access_denied`."""
        self._state = state
        self._issuer = issuer
        self._deadline = time.monotonic() + seconds
        self._ended = threading.Event()
        threading.Thread(target=self._serve, name="sign-in", daemon=True).start()

    @property
    def seconds_left(self) -> float:
        return max(0.0, self._deadline - time.monotonic())

    def wait(self, seconds: float) -> bool:
        """Return True once the redirect has come, or the time is over."""
        return self._ended.wait(seconds)

    def stop(self) -> None:
        """Wait no longer. The port is closed soon after."""
        self._ended.set()

    def _serve(self) -> None:
        try:
            while not self._ended.is_set() and self.seconds_left:
                self.handle_request()
        finally:
            self.server_close()
            self._ended.set()

    def accept(self, query: dict[str, str]) -> bool:
        """Take the answer of the issuer. Returns False if it does not belong to this sign-in."""
        if not hmac.compare_digest(query.get("state", "").encode(), self._state.encode()):
            return False
        if self._issuer and query.get("iss", "").rstrip("/") != self._issuer:
            return False
        self.code = query.get("code", "")
        self.error = "" if self.code else query.get("error", "bad_answer")
        return True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a browser that goes away is not worth a traceback, which would show the request."""


class _CallbackRequest(BaseHTTPRequestHandler):
    server: RedirectListener
    timeout = 5.0  # a client that sends nothing must not keep the browser waiting

    def do_GET(self) -> None:
        own = urlsplit(self.server.start_page).netloc
        parts = urlsplit(self.path)
        if self.headers.get("Host", "") != own:
            self._answer(403, "This page is for this machine.")
        elif parts.path == "/":
            self._answer(302, "", location=self.server.link)
        elif parts.path != "/callback":
            self._answer(404, "There is no such page.")
        elif self.server.accept({name: values[0] for name, values in parse_qs(parts.query).items()}):
            try:
                self._answer(200, _DONE if self.server.code else _FAILED)
            finally:
                self.server.stop()
        else:
            self._answer(400, "This answer does not belong to the sign-in that was started here.")

    def _answer(self, status: int, text: str, *, location: str = "") -> None:
        body = f"<!doctype html><meta charset=utf-8><title>skillshelf</title><p>{text}</p>".encode()
        self.send_response(status)
        if location:
            self.send_header("Location", location)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Referrer-Policy", "no-referrer")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        """Say nothing: the path of the request has the code in it."""
