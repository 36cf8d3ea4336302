"""Servers that answer with too much, too slowly, or with nonsense: it ends, and the error is a typed one."""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler

import httpx2
import pytest

from calling import call
from sites import Page, Site, ask_proxy, fetch, send, through_proxy
from skillshelf.errors import AddressRefusedError, FetchFailedError, SkillError
from skillshelf_skills.authentication_gates.skill import AuthenticationGatesSkill
from skillshelf_skills.net import Fetched, GuardedProxy, NetworkRules
from skillshelf_skills.weather.skill import WeatherSkill

MEGABYTE = 1_000_000


@pytest.fixture
def site() -> Iterator[Site]:
    with Site.running() as site:
        yield site


def write(*pieces: bytes) -> Page:
    """Return a page that sends bytes as they are."""

    def answer(page: BaseHTTPRequestHandler) -> None:
        with suppress(OSError):
            for piece in pieces:
                page.wfile.write(piece)

    return answer


def pour(sent: list[int], head: bytes, piece: bytes = b"x" * MEGABYTE, times: int = 500) -> Page:
    """Return a page that sends a head and then ever the same, until it is interrupted, or ends after half a gigabyte.

    `sent` gets the lengths that were sent.
    """

    def answer(page: BaseHTTPRequestHandler) -> None:
        with suppress(OSError):
            page.wfile.write(head)
            for _ in range(times):
                page.wfile.write(piece)
                sent.append(len(piece))

    return answer


OK = b"HTTP/1.1 200 OK\r\n"
ENDLESS = {
    "a body": (OK + b"\r\n", b"x" * MEGABYTE),
    "a body with a length": (OK + b"Content-Length: 999999999999\r\n\r\n", b"x" * MEGABYTE),
    "a body in one chunk": (OK + b"Transfer-Encoding: chunked\r\n\r\nffffffff\r\n", b"x" * MEGABYTE),
    "a body in small chunks": (OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n" * 10_000),
    "a header": (OK + b"X: ", b"x" * MEGABYTE),
    "headers": (OK, b"X-Header: x\r\n" * 10_000),
    "a first line": (b"HTTP/1.1 200 ", b"x" * MEGABYTE),
    "an extension of a chunk": (OK + b"Transfer-Encoding: chunked\r\n\r\n1;", b"x" * MEGABYTE),
    "trailers": (OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"X: x\r\n" * 10_000),
    "a body of a redirect": (b"HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n", b"x" * MEGABYTE),
    "a body of an error": (b"HTTP/1.1 500 Sorry\r\n\r\n", b"x" * MEGABYTE),
    "a packed body": (OK + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(b"")[:10], b"\0" * 10_000),
}


@pytest.mark.parametrize(("head", "piece"), ENDLESS.values(), ids=ENDLESS.keys())
def test_an_endless_answer_is_cut_off(head: bytes, piece: bytes, site: Site) -> None:
    """In whichever part of it the server does not stop. The rest is not received."""
    sent: list[int] = []
    site.pages["/"] = pour(sent, head, piece)
    rules = NetworkRules(site.rules.allowed_hosts, max_bytes=10_000)
    with suppress(FetchFailedError):
        answer = fetch(site.url("/"), rules)
        assert len(answer.body) == 10_000
        assert not answer.is_whole
    assert sum(sent) < 100 * MEGABYTE


def test_the_body_of_a_redirect_is_not_received(site: Site) -> None:
    """It could be endless, and is for nobody."""
    sent: list[int] = []
    site.pages["/"] = pour(sent, b"HTTP/1.1 302 Found\r\nLocation: /there\r\n\r\n")
    site.pages["/there"] = send(b"there")
    assert fetch(site.url("/"), site.rules).text == "there"
    assert sum(sent) < 50 * MEGABYTE


@pytest.mark.parametrize("status", [100, 102, 103, 199])
def test_answers_before_the_answer_do_not_go_on_for_ever(status: int, site: Site) -> None:
    """The time for an answer counts them."""
    site.pages["/"] = pour([], b"", f"HTTP/1.1 {status} Wait\r\n\r\n".encode() * 100, times=10**9)
    with pytest.raises(FetchFailedError, match=r"no complete answer within 0\.5 seconds"):
        fetch(site.url("/"), NetworkRules(site.rules.allowed_hosts, seconds=0.5))


def pack(data: bytes, times: int) -> bytes:
    for _ in range(times):
        data = gzip.compress(data)
    return data


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", pack(bytes(20 * MEGABYTE), 1)),
        ("GZIP", pack(bytes(20 * MEGABYTE), 1)),
        ("gzip, gzip", pack(bytes(20 * MEGABYTE), 2)),
        ("gzip, gzip, gzip, gzip, gzip, gzip, gzip, gzip", pack(bytes(20 * MEGABYTE), 8)),
        ("deflate", zlib.compress(bytes(20 * MEGABYTE))),
        ("br", bytes.fromhex("cb ff ff 3f 00 04 00")),
        ("zstd", bytes.fromhex("28 b5 2f fd a4 ff ff ff 7f 00 00 00 00")),
        ("zstd, br, gzip", b"x"),
        ("gzip", b"this is not packed"),
        ("deflate", b"nor is this"),
        ("compress", b"x"),
        ("\xff", b"x"),
    ],
)
def test_a_packed_answer_does_not_burst(encoding: str, body: bytes, site: Site) -> None:
    """It is unpacked as far as the limit, or not at all."""
    site.pages["/"] = send(body, Content_Encoding=encoding)
    rules = NetworkRules(site.rules.allowed_hosts, max_bytes=MEGABYTE)
    with suppress(FetchFailedError):
        answer = fetch(site.url("/"), rules)
        assert len(answer.body) == MEGABYTE
        assert not answer.is_whole


NONSENSE = [
    b"",
    b"\r\n\r\n",
    b"\0" * 1000,
    b"HTTP/1.1\r\n\r\n",
    b"HTTP/9.9 200 OK\r\n\r\n",
    b"HTTP/1.1 99999 OK\r\n\r\n",
    b"HTTP/1.1 -1 OK\r\n\r\n",
    b"SSH-2.0-OpenSSH_9.9\r\n",
    OK + b"Content-Length: -1\r\n\r\n",
    OK + b"Content-Length: x\r\n\r\nhello",
    OK + b"Content-Length: 5\r\nContent-Length: 50\r\n\r\nhello",
    OK + b"Content-Length: 50\r\n\r\nhello",
    OK + b"Transfer-Encoding: chunked\r\n\r\n-5\r\nhello",
    OK + b"Transfer-Encoding: chunked\r\n\r\nhello",
    OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello, and more\r\n",
    OK + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffffffff\r\nhello",
    OK + b"Transfer-Encoding: nonsense, chunked, gzip\r\n\r\nhello",
    OK + b"no header\r\n\r\n",
    OK + b"X: a\0b\r\n\r\n",
    OK + b" folded: x\r\n\r\n",
    b"HTTP/1.1 302 Found\r\nLocation: \xff\xfe\r\n\r\n",
    b"HTTP/1.1 302 Found\r\nLocation: http://[\r\n\r\n",
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n",
    OK + b"Set-Cookie: " + b"=;" * 10_000 + b"\r\n\r\n",
    OK + b"Content-Type: text/plain; charset=" + b"x" * 10_000 + b"\r\n\r\nhello",
]


@pytest.mark.parametrize("answer", NONSENSE, ids=range(len(NONSENSE)))
def test_nonsense_is_a_typed_error_or_text(answer: bytes, site: Site) -> None:
    """At the Fetcher and at the skills; the proxy passes it on, and lives."""
    site.pages["/"] = write(answer)
    with suppress(FetchFailedError, AddressRefusedError):
        assert isinstance(fetch(site.url("/"), site.rules).text, str)
    with suppress(SkillError):
        call(WeatherSkill(places_url=site.url("/"), rules=site.rules), "find_place", name="Porto")
    with suppress(SkillError):
        gates = AuthenticationGatesSkill(rules=site.rules).with_policy({"check_access": "safe"})
        call(gates, "check_access", url=site.url("/"))

    site.pages["/then"] = send(b"still here")

    def ask(proxy: GuardedProxy) -> bytes:
        ask_proxy(proxy, f"GET {site.url('/')}")
        return ask_proxy(proxy, f"GET {site.url('/then')}")

    assert through_proxy(site.rules, ask).endswith(b"still here")


@pytest.mark.parametrize(
    "charset", ["punycode", "idna", "PunyCode", "unicode_escape", "utf-7", "zip", "\0", "undefined"]
)
def test_an_encoding_cannot_keep_the_reader_busy(charset: str) -> None:
    """Python knows one that takes an hour for ten megabytes."""
    headers = httpx2.Headers({"Content-Type": f"text/html; charset={charset}"})
    answer = Fetched("http://a.example/", 200, headers, b"a-" + b"b9" * 5 * MEGABYTE, is_whole=True)
    assert len(answer.text) >= MEGABYTE
