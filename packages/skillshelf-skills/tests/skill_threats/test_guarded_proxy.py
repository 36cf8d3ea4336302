"""The GuardedProxy: who may use it, and what a client, a server or both can make of it."""

import json
import socket
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler

import httpx2
import pytest

from sites import Site, ask_proxy, exchange, send, through_proxy
from skillshelf_skills.net import GuardedProxy, NetworkRules

KEPT_OPEN = b"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nKeep-Alive: timeout=99\r\nContent-Length: 2\r\n\r\nhi"


@pytest.fixture
def site() -> Iterator[Site]:
    with Site.running() as site:
        yield site


@pytest.mark.parametrize(
    "credentials",
    [
        None,
        "Basic ",
        "Basic c2tpbGxzaGVsZjo=",
        "Basic \xff\xff",
        "Bearer {right}",
        "{right}\r\nProxy-Authorization: Basic x",
        "Basic x\r\nProxy-Authorization: Basic {right}",
        "Basic\r\n {right}",
    ],
)
@pytest.mark.parametrize("line", ["GET http://{host}/", "CONNECT {host}"])
def test_the_proxy_serves_nobody_without_its_password(line: str, credentials: str | None, site: Site) -> None:
    """Nor who writes it in a way that two readers could read differently."""

    def ask(proxy: GuardedProxy) -> bytes:
        header = ""
        if credentials is not None:
            header = f"Proxy-Authorization: {credentials.format(right=proxy._credentials)}\r\n"
        return exchange(proxy, f"{line.format(host=site.host)} HTTP/1.1\r\n{header}\r\n".encode("latin-1"))

    assert through_proxy(site.rules, ask).split(b" ")[1] in (b"400", b"407")
    assert site.requests == []


def test_the_server_gets_the_host_that_was_checked(site: Site) -> None:
    """Whatever host the client names besides; and nothing that is between the client and the proxy."""
    received: list[str] = []

    def record(page: BaseHTTPRequestHandler) -> None:
        received.append(str(page.headers))
        send(b"hello")(page)

    site.pages["/"] = record
    headers = {"Host": "inside.example", "Proxy-Connection": "keep-alive", "Keep-Alive": "timeout=9", "X-Mine": "1"}
    through_proxy(site.rules, lambda proxy: ask_proxy(proxy, f"GET http://{site.host}", headers))
    assert received == [f"Host: {site.host}\nX-Mine: 1\nConnection: close\n\n"]


SMUGGLED = "GET http://inside.example/stolen HTTP/1.1\r\nHost: inside.example\r\nCookie: secret\r\n\r\n"


@pytest.mark.parametrize(
    "first",
    [
        "GET http://{host}/ HTTP/1.1\r\n{password}\r\n",
        "POST http://{host}/ HTTP/1.1\r\nContent-Length: 0\r\n{password}\r\n",
        "POST http://{host}/ HTTP/1.1\r\nContent-Length: 5\r\n{password}\r\nhello",
        "POST http://{host}/ HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 500\r\n{password}\r\nhello",
        "POST http://{host}/ HTTP/1.1\r\nContent-Length: +500\r\n{password}\r\nhello",
        "POST http://{host}/ HTTP/1.1\r\nContent-Length : 500\r\n{password}\r\nhello",
        "POST http://{host}/ HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n{password}\r\n0\r\n\r\n",
        "POST http://{host}/ HTTP/1.1\r\nX: a\nContent-Length: 500\r\n{password}\r\nhello",
        "POST http://{host}/ HTTP/1.1\r\n Content-Length: 500\r\n{password}\r\nhello",
        "GET http://{host}/\nX: HTTP/1.1\r\n{password}\r\n",
    ],
)
def test_a_second_request_is_not_sent_to_the_server_of_the_first(first: str, site: Site) -> None:
    """It may be for another site, and carries the password of the proxy."""
    received: list[bytes] = []

    def keep_open(page: BaseHTTPRequestHandler) -> None:
        """Answer like a server that would take more, and read what comes until the connection ends."""
        page.wfile.write(KEPT_OPEN)
        with suppress(OSError):
            received.append(page.rfile.read())

    site.pages["/"] = keep_open

    def ask(proxy: GuardedProxy) -> bytes:
        password = f"Proxy-Authorization: Basic {proxy._credentials}\r\n"
        data = first.format(host=site.host, password=password) + SMUGGLED
        answer = b""
        with socket.create_connection(("127.0.0.1", proxy.port)) as client:
            client.settimeout(60)
            client.sendall(data.encode())
            while piece := client.recv(65536):
                answer += piece
                if answer.endswith(b"hi"):
                    break
        return answer

    answer = through_proxy(site.rules, ask)
    assert answer.startswith(b"HTTP/1.1 400") or b"Connection: close" in answer
    assert b"keep-alive" not in answer
    assert b"timeout=99" not in answer
    assert b"secret" not in b"".join(received)


def test_a_client_sends_its_second_request_over_a_new_connection(site: Site) -> None:
    """Although the server of the first would keep the connection."""

    def keep_open(page: BaseHTTPRequestHandler) -> None:
        page.wfile.write(KEPT_OPEN)

    with Site.running() as other:
        site.pages["/"] = keep_open
        other.pages["/"] = send(b"the other site")

        def ask(proxy: GuardedProxy) -> str:
            address = f"http://{proxy.user}:{proxy.password}@127.0.0.1:{proxy.port}"
            with httpx2.Client(proxy=address, trust_env=False) as client:
                client.get(site.url("/"))
                return client.get(other.url("/")).text

        rules = NetworkRules.allowing([site.host, other.host])
        assert through_proxy(rules, ask) == "the other site"


@pytest.mark.parametrize("line", ["GET {url}", "CONNECT {host}"])
def test_a_client_that_goes_does_not_end_the_proxy(line: str, site: Site) -> None:
    """Not even if it goes before it has its answer, a refusal included."""
    site.pages["/"] = send(b"still here")

    def ask(proxy: GuardedProxy) -> bytes:
        for host in (site.host, "127.0.0.1:1", "no-such-host.invalid"):
            for _ in range(5):
                with socket.create_connection(("127.0.0.1", proxy.port)) as client:
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # end with a reset
                    request = line.format(url=f"http://{host}/", host=host)
                    client.sendall(
                        f"{request} HTTP/1.1\r\nProxy-Authorization: Basic {proxy._credentials}\r\n".encode()
                    )
                    client.sendall(b"\r\n")
        return ask_proxy(proxy, f"GET {site.url('/')}")

    assert through_proxy(site.rules, ask).endswith(b"still here")


def test_a_body_passes_the_proxy_whole(site: Site) -> None:
    """In one piece or in many."""
    received: list[bytes] = []

    def record(page: BaseHTTPRequestHandler) -> None:
        received.append(page.rfile.read(int(page.headers["Content-Length"])))
        send(b"thanks")(page)

    site.pages["/"] = record
    body = json.dumps(list(range(100_000))).encode()

    def ask(proxy: GuardedProxy) -> bytes:
        return ask_proxy(proxy, f"POST {site.url('/')}", {"Content-Length": str(len(body))}, body)

    assert through_proxy(site.rules, ask).endswith(b"thanks")
    assert received == [body]


@pytest.mark.parametrize(
    "place", ["127.0.0.1:22", "localhost:5432", "[::1]:6379", "10.0.0.1:443", "169.254.169.254:80"]
)
def test_a_tunnel_to_a_refused_place_is_not_opened(place: str, site: Site) -> None:
    """Also if another port of the host is allowed."""
    answer = through_proxy(site.rules, lambda proxy: ask_proxy(proxy, f"CONNECT {place}"))
    assert answer.startswith(b"HTTP/1.1 403 ")
