"""Fetching over HTTP under the rules."""

import codecs
import logging
import ssl
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from http.cookiejar import Cookie, CookieJar, DefaultCookiePolicy
from typing import Any, Self
from urllib.request import Request

import anyio
import httpcore2
import httpx2
from httpcore2 import SOCKET_OPTION, AsyncNetworkStream

from skillshelf.errors import FetchFailedError
from skillshelf_skills.net._connections import describe_failure, look_up
from skillshelf_skills.net._rules import NetworkRules

_CONNECTION_FAILURES = (
    httpcore2.NetworkError,
    httpcore2.ProtocolError,
    httpcore2.TimeoutException,
    httpcore2.UnsupportedProtocol,
)
_HEADERS = {
    "User-Agent": "skillshelf",
    "Accept": "text/html,text/plain,application/json;q=0.9,*/*;q=0.5",
    "Accept-Encoding": "gzip, deflate",
}
# What a body may be packed with, once. Packed several times, a small answer could grow to gigabytes in one step.
_ENCODINGS = frozenset({"", "identity", "gzip", "x-gzip", "deflate"})
# Encodings of Python that no page is written in. The first takes time that grows with the square of the length.
_NOT_FOR_PAGES = frozenset({"punycode", "idna", "unicode-escape", "raw-unicode-escape", "undefined"})
_LOGGERS = ("httpcore2.connection", "httpcore2.http11", "httpcore2.http2", "httpx2")
_is_fetching: ContextVar[bool] = ContextVar("is_fetching", default=False)


@dataclass(frozen=True, slots=True)
class Fetched:
    """The answer of a server."""

    url: str
    """Where the answer came from, after all redirects."""
    status: int
    headers: httpx2.Headers
    body: bytes
    is_whole: bool
    """False if the body was longer than the rules allow, and was cut off there."""
    redirects: tuple[str, ...] = ()
    """The addresses that led there, the first one included."""

    @property
    def media_type(self) -> str:
        """The type of the body in lower case, such as `text/html`; empty if the server does not say."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def text(self) -> str:
        """The body as text, in the encoding that the server names, or UTF-8."""
        _, _, named = self.headers.get("content-type", "").partition("charset=")
        try:
            encoding = codecs.lookup(named.partition(";")[0].strip(" \"'") or "utf-8").name
            if encoding in _NOT_FOR_PAGES:
                encoding = "utf-8"
            return self.body.decode(encoding, "replace")
        except (LookupError, ValueError):  # no such encoding, or one that is not for text
            return self.body.decode("utf-8", "replace")


class Fetcher:
    """A client that keeps its cookies and reaches what the rules allow. Use it in `async with`.

    Its requests are not logged: at the level DEBUG, the HTTP library logs addresses and cookies.
    """

    def __init__(self, rules: NetworkRules | None = None) -> None:
        self.rules = rules or NetworkRules()
        self._client = httpx2.AsyncClient(
            transport=_GuardedTransport(self.rules),
            headers=_HEADERS,
            cookies=CookieJar(_CookiesByPort()),
            timeout=self.rules.seconds,
            trust_env=False,  # a proxy would look up the names itself, and a .netrc would send the user's passwords
        )

    async def __aenter__(self) -> Self:
        await self._client.__aenter__()
        return self

    async def __aexit__(self, *exception: Any) -> None:
        await self._client.__aexit__(*exception)

    async def fetch(
        self,
        url: str,
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        form: Mapping[str, str] | None = None,
        json: object = None,
        follow: bool = True,
    ) -> Fetched:
        """Return the answer of a server, whatever its status.

        A redirect to another site gets neither the headers nor the form. Raises AddressRefusedError for what the rules
        forbid, including the target of a redirect, and FetchFailedError.
        """
        try:
            with anyio.fail_after(self.rules.seconds), _keep_out_of_logs():
                request = self._client.build_request(method, url, headers=headers, data=form, json=json)
                return await self._send(request, frozenset(headers or ()), follow=follow)
        except TimeoutError:
            raise FetchFailedError(url, f"there was no complete answer within {self.rules.seconds:g} seconds") from None
        except (httpx2.InvalidURL, UnicodeError) as error:
            raise FetchFailedError(url, f"it is not an address: {error}") from None
        except (httpx2.HTTPError, *_CONNECTION_FAILURES) as error:
            raise FetchFailedError(url, describe_failure(error)) from None

    async def _send(self, request: httpx2.Request, private_headers: frozenset[str], *, follow: bool) -> Fetched:
        """Send a request and follow redirects. Only the head of a redirect is received."""
        first = str(request.url)
        passed: list[str] = []
        while True:
            response = await self._client.send(request, stream=True)
            try:
                following = response.next_request
                if following is None or not follow:
                    return await self._read(response, tuple(passed))
            finally:
                await response.aclose()

            if len(passed) == self.rules.max_redirects:
                raise FetchFailedError(first, f"it redirects more than {self.rules.max_redirects} times")
            if following.url.origin != request.url.origin:
                if following.method not in ("GET", "HEAD"):
                    raise FetchFailedError(
                        first, "it redirects the posted form to another site, and such redirects are not followed"
                    )
                for name in private_headers:
                    following.headers.pop(name, None)
            passed.append(str(response.url))
            request = following

    async def _read(self, response: httpx2.Response, redirects: tuple[str, ...]) -> Fetched:
        """Read the body up to the limit. The rest is never received."""
        encoding = response.headers.get("content-encoding", "").strip().lower()
        if encoding not in _ENCODINGS:
            raise FetchFailedError(str(response.url), "its answer has a content encoding that was not asked for")

        pieces: list[bytes] = []
        room = self.rules.max_bytes
        is_whole = True
        async for piece in response.aiter_bytes():
            pieces.append(piece[:room])
            room -= len(piece)
            if room < 0:
                is_whole = False
                break
        return Fetched(
            url=str(response.url),
            status=response.status_code,
            headers=response.headers,
            body=b"".join(pieces),
            is_whole=is_whole,
            redirects=redirects,
        )


class _CookiesByPort(DefaultCookiePolicy):
    """Keeps the cookies of one port from the others of its host, which may belong to another program."""

    def set_ok(self, cookie: Cookie, request: Request) -> bool:
        _, _, port = request.host.rpartition(":")
        cookie.port = port if port.isdecimal() else "80"  # the standard library's name for the usual port
        cookie.port_specified = True
        return super().set_ok(cookie, request)


class _Silence(logging.Filter):
    """Drops what the HTTP library logs about a request of a Fetcher, and nothing else."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not _is_fetching.get()


_silence = _Silence()


@contextmanager
def _keep_out_of_logs() -> Iterator[None]:
    """Log nothing about the HTTP requests of this block. Those of other tasks are logged as always."""
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_silence)  # a second time does nothing
    before = _is_fetching.set(True)
    try:
        yield
    finally:
        _is_fetching.reset(before)


@cache
def _make_ssl_context() -> ssl.SSLContext:
    """Read the certificates of authorities, which takes 18 ms: longer than a fetch from this machine."""
    return httpx2.create_ssl_context(trust_env=False)


class _GuardedTransport(httpx2.AsyncBaseTransport):
    """The connections of an HTTP client, each to an address that was checked."""

    def __init__(self, rules: NetworkRules) -> None:
        self._rules = rules
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=_make_ssl_context(), network_backend=_GuardedBackend(rules)
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url = request.url
        self._rules.check_scheme(str(url))
        response = await self._pool.handle_async_request(
            httpcore2.Request(
                method=request.method,
                url=httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
                headers=request.headers.raw,
                content=request.stream,
                extensions=request.extensions,
            )
        )
        return httpx2.Response(
            status_code=response.status,
            headers=response.headers,
            stream=_ResponseBody(response),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        await self._pool.aclose()


class _ResponseBody(httpx2.AsyncByteStream):
    """The body of a response while it arrives."""

    def __init__(self, response: httpcore2.Response) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._response.aiter_stream():
            yield piece

    async def aclose(self) -> None:
        await self._response.aclose()


class _GuardedBackend(httpcore2.AnyIOBackend):
    """Opens connections to addresses that were checked."""

    def __init__(self, rules: NetworkRules) -> None:
        self._rules = rules

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[SOCKET_OPTION] | None = None,
    ) -> AsyncNetworkStream:
        failure: Exception | None = None
        for address in await look_up(self._rules, host, port):
            try:
                return await super().connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
        raise failure or httpcore2.ConnectError("the host has no address")

    async def connect_unix_socket(self, *arguments: Any, **keywords: Any) -> AsyncNetworkStream:
        raise httpcore2.UnsupportedProtocol("skills do not connect to sockets of this machine")
