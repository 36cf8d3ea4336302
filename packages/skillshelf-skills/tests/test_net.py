"""The network rules: what skills may reach, over real connections."""

import gzip
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from ipaddress import IPv4Address, IPv6Address
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sites import Site, fetch, replace_names, send, through_proxy
from skillshelf.errors import AddressRefusedError, FetchFailedError, SettingsError
from skillshelf_skills.net import GuardedProxy, NetworkRules, parse_host

PUBLIC = "93.184.215.14"


@pytest.fixture
def site() -> Iterator[Site]:
    with Site.running() as site:
        yield site


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    return replace_names(monkeypatch)


# -- addresses --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.255.255.254",
        "0.0.0.0",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
        "198.18.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "fe80::1",
        "fe80::1%eth0",
        "fd00:ec2::254",
        "fec0::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b:1::1",
        "2002:7f00:1::",
        "2001:db8::1",
        "not an address",
    ],
)
def test_addresses_that_are_not_public_are_refused(address: str) -> None:
    """Loopback, private, link-local and metadata addresses, in every notation that leads to them."""
    with pytest.raises(AddressRefusedError, match=r"may not be reached: its address .* is "):
        NetworkRules().check_address("shop.example", 443, address)


@pytest.mark.parametrize("address", [PUBLIC, "1.1.1.1", "2606:4700:4700::1111", "64:ff9b::101:101", "::ffff:1.1.1.1"])
def test_public_addresses_are_allowed(address: str) -> None:
    """Also those that reach an IPv4 address through IPv6."""
    NetworkRules().check_address("shop.example", 443, address)


@given(
    st.ip_addresses(v=4, network="10.0.0.0/8") | st.ip_addresses(v=4, network="127.0.0.0/8"), st.sampled_from([0, 1, 2])
)
def test_no_notation_hides_a_private_address(address: IPv4Address, notation: int) -> None:
    """As itself, mapped into IPv6, or translated by NAT64."""
    prefix = (0, 0xFFFF << 32, 0x64FF9B << 96)[notation]
    shown = str(address) if notation == 0 else str(IPv6Address(prefix + int(address)))
    with pytest.raises(AddressRefusedError):
        NetworkRules().check_address("shop.example", 80, shown)


def test_a_host_is_allowed_by_name_and_port() -> None:
    """Letters, a final dot and brackets make no difference; another port of the same host does."""
    rules = NetworkRules.allowing(["LOCALHOST:8080", "wiki.example.", "[::1]:9000"])
    rules.check_address("localhost", 8080, "127.0.0.1")
    rules.check_address("Wiki.Example", 443, "10.0.0.7")
    rules.check_address("::1", 9000, "::1")
    for host, port in (("localhost", 8081), ("notwiki.example", 443), ("::1", 80)):
        with pytest.raises(AddressRefusedError):
            rules.check_address(host, port, "127.0.0.1")


@pytest.mark.parametrize("text", ["", " ", "http://a", "a/b", "user@host", "*", "*.corp", "a b", "a\nb"])
def test_what_is_not_a_host_cannot_be_allowed(text: str) -> None:
    """A star would allow more than the user can see."""
    with pytest.raises(SettingsError, match="is not a host"):
        parse_host(text)


# -- fetching ---------------------------------------------------------------------------------------------------------


def test_an_answer_comes_whole_with_its_type_and_text(site: Site) -> None:
    """Whatever its status, in the encoding that the server names."""
    site.pages["/"] = send("Grüße".encode("latin-1"), status=404, Content_Type="text/HTML; charset=latin-1")
    answer = fetch(f"http://{site.host}/", site.rules)
    assert (answer.status, answer.media_type, answer.text, answer.is_whole) == (404, "text/html", "Grüße", True)


@pytest.mark.parametrize("charset", ["no-such", "idna", "hex", "unicode_escape"])
def test_an_encoding_that_cannot_be_used_is_passed_over(charset: str, site: Site) -> None:
    """The text is never missing."""
    site.pages["/"] = send(b"a..b \\u0041", Content_Type=f"text/plain; charset={charset}")
    assert fetch(f"http://{site.host}/", site.rules).text.startswith("a..b")


@pytest.mark.parametrize(
    "url",
    ["file:///etc/passwd", "ftp://a.example/", "gopher://a.example/", "data:text/plain,a", "javascript:1", "//a", "a"],
)
def test_only_http_is_fetched(url: str) -> None:
    """Other schemes are refused before anything is looked up."""
    with pytest.raises(AddressRefusedError, match="does not begin with http: or https:"):
        fetch(url)


@pytest.mark.parametrize(
    "host", ["localhost", "127.0.0.1", "127.1", "0x7f000001", "2130706433", "[::1]", "[::ffff:7f00:1]"]
)
def test_this_machine_is_refused_however_it_is_written(host: str, site: Site) -> None:
    """Not one request arrives."""
    with pytest.raises(AddressRefusedError):
        fetch(f"http://{host}:{site.server_port}/")
    assert site.requests == []


def test_a_public_name_with_a_private_address_is_refused(site: Site, names: dict[str, list[str]]) -> None:
    """The address counts, not the name."""
    names["shop.example"] = ["127.0.0.1"]
    with pytest.raises(AddressRefusedError, match=r"'shop\.example:\d+' may not be reached: its address 127\.0\.0\.1"):
        fetch(f"http://shop.example:{site.server_port}/")
    assert site.requests == []


def test_a_name_is_looked_up_once(site: Site, names: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    """The address that was checked is the one connected to: a name that changes its address gains nothing."""
    site.pages["/"] = send(b"hello")
    names["wiki.example"] = ["127.0.0.1"]
    looked_up: list[object] = []
    patched = socket.getaddrinfo

    def count(host: Any, *arguments: Any, **keywords: Any) -> Any:
        looked_up.append(host.decode() if isinstance(host, bytes) else host)
        return patched(host, *arguments, **keywords)

    monkeypatch.setattr(socket, "getaddrinfo", count)
    fetch(f"http://wiki.example:{site.server_port}/", NetworkRules.allowing(["wiki.example"]))
    assert looked_up == ["wiki.example"]
    assert site.requests == [f"GET / wiki.example:{site.server_port}"]


@pytest.mark.parametrize("target", ["http://127.0.0.1:{other}/secret", "file:///etc/passwd", "//localhost:{other}/"])
def test_a_redirect_is_checked_like_a_first_address(target: str, site: Site) -> None:
    """An allowed host cannot lead to a forbidden one."""
    with Site.running() as other:
        site.pages["/"] = send(b"", status=302, Location=target.format(other=other.server_port))
        with pytest.raises(AddressRefusedError):
            fetch(f"http://{site.host}/", site.rules)
        assert other.requests == []


def test_redirects_are_followed_and_named(site: Site) -> None:
    """Up to a limit."""
    site.pages["/"] = send(b"", status=302, Location="/there")
    site.pages["/there"] = send(b"here")
    answer = fetch(f"http://{site.host}/", site.rules)
    assert answer.url == f"http://{site.host}/there"
    assert answer.redirects == (f"http://{site.host}/",)
    assert fetch(f"http://{site.host}/", site.rules, follow=False).status == 302

    site.pages["/round"] = send(b"", status=302, Location="/round")
    with pytest.raises(FetchFailedError, match="redirects more than 5 times"):
        fetch(f"http://{site.host}/round", site.rules)


def test_a_long_answer_is_cut_off_at_the_limit(site: Site) -> None:
    """Also one that is small on the wire and large when unpacked."""
    rules = NetworkRules(site.rules.allowed_hosts, max_bytes=1_000)
    site.pages["/long"] = send(b"x" * 5_000)
    site.pages["/bomb"] = send(gzip.compress(b"x" * 5_000_000), Content_Encoding="gzip")
    for path in ("/long", "/bomb"):
        answer = fetch(f"http://{site.host}{path}", rules)
        assert (len(answer.body), answer.is_whole) == (1_000, False)


def test_a_server_that_never_finishes_ends_in_time(site: Site) -> None:
    """The limit is for the whole answer, so a byte now and then does not extend it."""
    done = threading.Event()

    def trickle(page: BaseHTTPRequestHandler) -> None:
        page.send_response(200)
        page.end_headers()
        try:
            while not done.wait(0.01):
                page.wfile.write(b".")
        except OSError:
            return

    site.pages["/"] = trickle
    try:
        with pytest.raises(FetchFailedError, match=r"no complete answer within 0\.3 seconds"):
            fetch(f"http://{site.host}/", NetworkRules(site.rules.allowed_hosts, seconds=0.3))
    finally:
        done.set()


def test_a_closed_port_and_an_unknown_name_are_explained() -> None:
    """In words that say which it is."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(FetchFailedError, match="connection refused"):
        fetch(f"http://127.0.0.1:{port}/", NetworkRules.allowing(["127.0.0.1"]))
    with pytest.raises(FetchFailedError, match="no such host"):
        fetch("http://no-such-host.invalid/")


def test_nonsense_instead_of_an_answer_is_an_error(site: Site) -> None:
    """A typed one, like everything that can go wrong here."""

    def write_nonsense(page: BaseHTTPRequestHandler) -> None:
        page.wfile.write(b"no HTTP at all\r\n\r\n")

    site.pages["/"] = write_nonsense
    with pytest.raises(FetchFailedError):
        fetch(f"http://{site.host}/", site.rules)


def test_the_environment_cannot_send_requests_elsewhere(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy of the environment would look up the names itself."""
    site.pages["/"] = send(b"direct")
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert fetch(f"http://{site.host}/", site.rules).text == "direct"


# -- the proxy --------------------------------------------------------------------------------------------------------


def ask_through_proxy(proxy: GuardedProxy, url: str, password: str | None = None) -> httpx2.Response:
    secret = proxy.password if password is None else password
    address = f"http://{proxy.user}:{secret}@127.0.0.1:{proxy.port}"
    with httpx2.Client(proxy=address, trust_env=False) as client:
        return client.get(url)


def test_a_program_reaches_what_is_allowed_through_the_proxy(site: Site) -> None:
    """The server sees an ordinary request."""
    site.pages["/a?b=c"] = send(b"hello")
    answer = through_proxy(site.rules, lambda proxy: ask_through_proxy(proxy, f"http://{site.host}/a?b=c"))
    assert answer.text == "hello"
    assert site.requests == [f"GET /a?b=c {site.host}"]


def test_the_proxy_refuses_what_the_rules_forbid(site: Site) -> None:
    """For plain requests and for tunnels, and says why to who runs it."""

    def ask(proxy: GuardedProxy) -> list[str]:
        answer = ask_through_proxy(proxy, f"http://{site.host}/")
        assert answer.status_code == 403
        with pytest.raises(httpx2.ProxyError, match="403"):
            ask_through_proxy(proxy, f"https://{site.host}/")
        return [str(refusal) for refusal in proxy.refusals]

    refusals = through_proxy(NetworkRules(), ask)
    assert len(refusals) == 2
    assert all(f"'{site.host}' may not be reached" in refusal for refusal in refusals)
    assert site.requests == []


def test_the_proxy_serves_only_who_has_its_password(site: Site) -> None:
    """Another program of this machine gets nothing through it."""
    answer = through_proxy(site.rules, lambda proxy: ask_through_proxy(proxy, f"http://{site.host}/", "guessed"))
    assert answer.status_code == 407
    assert site.requests == []


def test_the_proxy_ends_its_connections_with_its_block(site: Site) -> None:
    """A client that never finishes does not keep it."""

    def ask(proxy: GuardedProxy) -> socket.socket:
        client = socket.create_connection(("127.0.0.1", proxy.port))
        client.sendall(b"GET http://")
        return client

    with through_proxy(site.rules, ask) as client:
        client.settimeout(10)
        with suppress(ConnectionResetError):  # if the proxy had not read all of it
            assert client.recv(1) == b""


def test_all_servers_together_can_send_so_much_through_the_proxy(site: Site) -> None:
    """Then the connection ends, and a new one is refused."""
    site.pages["/"] = send(b"x" * 300_000)

    def ask(proxy: GuardedProxy) -> int:
        with pytest.raises(httpx2.RemoteProtocolError):
            ask_through_proxy(proxy, f"http://{site.host}/")
        return ask_through_proxy(proxy, f"http://{site.host}/").status_code

    assert through_proxy(site.rules, ask, max_total_bytes=100_000) == 502


@pytest.mark.parametrize(
    "request_line",
    [b"\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"CONNECT\r\n\r\n", b"CONNECT a:b HTTP/1.1\r\n\r\n", b"\xff" * 90_000],
)
def test_nonsense_does_not_end_the_proxy(request_line: bytes, site: Site) -> None:
    """It is answered with an error, and the next client is served."""
    site.pages["/"] = send(b"still here")

    def ask(proxy: GuardedProxy) -> httpx2.Response:
        with socket.create_connection(("127.0.0.1", proxy.port)) as client:
            client.settimeout(10)
            client.sendall(request_line)
            assert b" 400 " in client.recv(1_000)
        return ask_through_proxy(proxy, f"http://{site.host}/")

    assert through_proxy(site.rules, ask).text == "still here"
