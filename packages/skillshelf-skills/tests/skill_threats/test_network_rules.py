"""The network rules: nothing that fetches can be led to this machine or its network, or be kept busy for ever.

Five doors lead out: the Fetcher, requests and tunnels through the GuardedProxy, and the two skills that fetch what a
model or a site names. Every attack is tried at each of them.
"""

import logging
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from calling import call
from sites import Site, ask_proxy, fetch, replace_names, send, through_proxy
from skillshelf.errors import AddressRefusedError, FetchFailedError, SkillError
from skillshelf_skills.authentication_gates.skill import AuthenticationGatesSkill
from skillshelf_skills.net import Fetcher, GuardedProxy, NetworkRules
from skillshelf_skills.weather.skill import WeatherSkill

PUBLIC = "93.184.215.14"
MEGABYTE = 1_000_000


@pytest.fixture
def site() -> Iterator[Site]:
    with Site.running() as site:
        yield site


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    return replace_names(monkeypatch)


@pytest.fixture
def dialled(monkeypatch: pytest.MonkeyPatch, site: Site) -> list[str]:
    """The addresses to which connections are opened. Behind each public one, the site answers."""
    addresses: list[str] = []
    connect = socket.socket.connect

    def lead_to_site(self: socket.socket, address: Any) -> None:
        addresses.append(str(address[0]))
        connect(self, ("127.0.0.1", site.server_port) if address[0] == PUBLIC else address)

    monkeypatch.setattr(socket.socket, "connect", lead_to_site)
    return addresses


# -- the doors --------------------------------------------------------------------------------------------------------


def go_through_fetcher(url: str) -> None:
    fetch(url)


def go_through_proxy(url: str) -> None:
    refuse_or_fail(lambda proxy: ask_proxy(proxy, f"GET {url}"))


def go_through_tunnel(url: str) -> None:
    place = url.partition("://")[2].partition("/")[0]
    refuse_or_fail(lambda proxy: ask_proxy(proxy, f"CONNECT {place}"))


def refuse_or_fail(ask: Callable[[GuardedProxy], bytes]) -> None:
    answer = through_proxy(NetworkRules(), ask)
    status = answer.split(b" ")[1]
    if status in (b"400", b"403", b"502"):
        raise AddressRefusedError("the proxy", answer.decode())


def go_through_weather(url: str) -> None:
    call(WeatherSkill(places_url=url), "find_place", name="Porto")


def go_through_gates(url: str) -> None:
    call(AuthenticationGatesSkill().with_policy({"check_access": "safe"}), "check_access", url=url)


DOORS_FOR_URLS = [go_through_fetcher, go_through_proxy, go_through_weather, go_through_gates]


def at_each(doors: Sequence[Callable[[str], None]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("go", doors, ids=[door.__name__.removeprefix("go_through_") for door in doors])


every_door = at_each([*DOORS_FOR_URLS, go_through_tunnel])

# -- addresses --------------------------------------------------------------------------------------------------------

SCHEMES = [
    "file:///etc/passwd",
    "file://localhost/etc/passwd",
    "FILE:///etc/passwd",
    "ftp://files.example/",
    "data:text/plain,secret",
    "gopher://127.0.0.1:{port}/_GET%20/",
    "dict://127.0.0.1:{port}/",
    "ldap://127.0.0.1:{port}/",
    "unix:///run/docker.sock",
    "ws://127.0.0.1:{port}/",
    "view-source:http://127.0.0.1:{port}/",
    "javascript:fetch('http://127.0.0.1:{port}/')",
    "http+unix://%2Frun%2Fdocker.sock/",
    "//127.0.0.1:{port}/",
]
HOSTS = {
    "loopback": "127.0.0.1",
    "another address of the loopback": "127.8.8.8",
    "a name of this machine": "localhost",
    "a name with a dot": "localhost.",
    "capitals": "LOCALHOST",
    "all addresses": "0.0.0.0",
    "zero": "0",
    "private, class A": "10.0.0.1",
    "private, class B": "172.16.0.1",
    "private, class C": "192.168.0.1",
    "link-local": "169.254.1.1",
    "metadata": "169.254.169.254",
    "metadata of Alibaba": "100.100.100.200",
    "metadata of Azure": "168.63.129.16",
    "carrier-grade NAT": "100.64.0.1",
    "benchmarking": "198.18.0.1",
    "multicast": "224.0.0.1",
    "broadcast": "255.255.255.255",
    "one number": "2130706433",
    "hexadecimal": "0x7f000001",
    "hexadecimal, by bytes": "0x7f.0x0.0x0.0x1",
    "octal": "0177.0.0.1",
    "octal, one number": "017700000001",
    "short": "127.1",
    "short, in three": "127.0.1",
    "a final dot": "127.0.0.1.",
    "full-width digits": "１２７.０.０.１",
    "circled digits": "①②⑦.⓪.⓪.①",
    "ideographic dots": "127。0。0。1",
    "escapes": "%31%32%37.0.0.1",
    "an escaped null": "127.0.0.1%00.example",
    "IPv6 loopback": "[::1]",
    "IPv6 loopback, in full": "[0:0:0:0:0:0:0:1]",
    "IPv6 any": "[::]",
    "IPv6 link-local": "[fe80::1]",
    "IPv6 link-local, with a zone": "[fe80::1%25lo]",
    "IPv6 private": "[fd00::1]",
    "IPv6 site-local": "[fec0::1]",
    "IPv6 metadata of AWS": "[fd00:ec2::254]",
    "IPv4 in IPv6, mapped": "[::ffff:127.0.0.1]",
    "IPv4 in IPv6, mapped and in hexadecimal": "[::ffff:a9fe:a9fe]",
    "IPv4 in IPv6, compatible": "[::127.0.0.1]",
    "IPv4 in IPv6, translated": "[::ffff:0:127.0.0.1]",
    "IPv4 in IPv6, small": "[::7f01]",
    "NAT64": "[64:ff9b::7f00:1]",
    "NAT64, local": "[64:ff9b:1::7f00:1]",
    "6to4": "[2002:7f00:1::]",
    "Teredo": "[2001:0:53aa:64c:0:0:80ff:fffe]",
    "documentation": "[2001:db8::1]",
    "discard": "[100::1]",
    "a user name": "public.example@127.0.0.1",
    "a user name and a password": "public.example:80@127.0.0.1",
    "two user names": "a@public.example@127.0.0.1",
    "a user name that ends the host": "public.example%2f@127.0.0.1",
    "a backslash": "public.example\\@127.0.0.1",
    "a backslash after the host": "127.0.0.1\\.public.example",
    "a tab": "127.0\t.0.1",
    "a line break": "127.0.0.1\nHost: public.example",
    "a carriage return and a line break": "127.0.0.1\r\nX: public.example",
    "a null": "127.0.0.1\0.public.example",
    "a space": "127.0.0.1 public.example",
    "half a surrogate": "127.0.0.1\ud800",
    "nothing": "",
}


@at_each(DOORS_FOR_URLS)
def test_no_other_scheme_is_followed(
    go: Callable[[str], None], site: Site, dialled: list[str], names: dict[str, list[str]]
) -> None:
    """No connection is opened, not even to a public host."""
    names["files.example"] = [PUBLIC]
    assert [url for url in SCHEMES if leads_inside(go, url.format(port=site.server_port), site, dialled)] == []


@every_door
def test_no_way_to_write_a_host_leads_inside(
    go: Callable[[str], None], site: Site, dialled: list[str], names: dict[str, list[str]]
) -> None:
    """The error is a typed one, and no request arrives."""
    names["public.example"] = [PUBLIC]
    inside = [
        way for way, host in HOSTS.items() if leads_inside(go, f"http://{host}:{site.server_port}/", site, dialled)
    ]
    assert inside == []


def leads_inside(go: Callable[[str], None], url: str, site: Site, dialled: list[str]) -> bool:
    """Return True unless the address is refused with a typed error, and nothing of this machine is reached."""
    dialled.clear()
    site.requests.clear()
    try:
        go(url)
    except SkillError:
        return bool(find_private(dialled) or site.requests)
    return True


def find_private(dialled: list[str]) -> list[str]:
    """The tests' own client of the proxy is the only one that connects to this machine."""
    return [address for address in dialled if address not in ("127.0.0.1", PUBLIC)]


def assert_nothing_inside(dialled: list[str], site: Site) -> None:
    assert find_private(dialled) == []
    assert site.requests == []


@every_door
@pytest.mark.parametrize(
    "addresses",
    [["127.0.0.1"], ["10.0.0.1", "169.254.169.254"], ["::1"], ["::ffff:10.0.0.1"], ["fd00:ec2::254"]],
    ids=" ".join,
)
def test_a_public_name_of_a_private_address_leads_nowhere(
    addresses: list[str], go: Callable[[str], None], site: Site, dialled: list[str], names: dict[str, list[str]]
) -> None:
    """Whoever owns a name can give it any address."""
    names["rebound.example"] = addresses
    with pytest.raises(SkillError):
        go(f"http://rebound.example:{site.server_port}/")
    assert_nothing_inside(dialled, site)


@pytest.mark.parametrize("addresses", [["127.0.0.1", PUBLIC], [PUBLIC, "10.0.0.1"], ["::1", "fe80::1", PUBLIC]])
def test_of_several_addresses_only_the_public_ones_are_tried(
    addresses: list[str], site: Site, dialled: list[str], names: dict[str, list[str]]
) -> None:
    """The order does not matter."""
    names["mixed.example"] = addresses
    site.pages["/"] = send(b"hello")
    assert fetch("http://mixed.example/").text == "hello"
    assert dialled == [PUBLIC]

    answer = through_proxy(NetworkRules(), lambda proxy: ask_proxy(proxy, "GET http://mixed.example/"))
    assert answer.endswith(b"hello")
    assert set(dialled) == {PUBLIC, "127.0.0.1"}  # the second is the proxy itself
    assert dialled.count("127.0.0.1") == 1


def test_a_name_that_changes_its_address_is_checked_each_time(
    site: Site, dialled: list[str], names: dict[str, list[str]]
) -> None:
    """Public for the first request, and this machine for the redirect to itself."""
    names["rebound.example"] = [PUBLIC]

    def move(page: BaseHTTPRequestHandler) -> None:
        names["rebound.example"] = ["127.0.0.1"]
        send(b"", status=302, Location=f"http://rebound.example:{site.server_port}/inside")(page)

    site.pages["/"] = move
    with pytest.raises(AddressRefusedError, match="this machine itself"):
        fetch("http://rebound.example/")
    assert dialled == [PUBLIC]
    assert site.requests == ["GET / rebound.example"]


@pytest.mark.parametrize("port", [22, 25, 99_999, -1, 0])
def test_an_allowed_host_is_allowed_at_its_port_alone(port: int, site: Site, dialled: list[str]) -> None:
    """Another service of the same machine is not what the user meant."""
    with pytest.raises(SkillError):
        fetch(f"http://127.0.0.1:{port}/", site.rules)
    assert dialled == []


# -- redirects --------------------------------------------------------------------------------------------------------

TARGETS = [
    "http://127.0.0.1:{port}/inside",
    "http://localhost:{port}/inside",
    "http://[::1]:{port}/inside",
    "http://2130706433:{port}/inside",
    "http://169.254.169.254/latest/meta-data/",
    "http://outside.example@127.0.0.1:{port}/inside",
    "//127.0.0.1:{port}/inside",
    "\\\\127.0.0.1:{port}/inside",
    "http:127.0.0.1:{port}/inside",
    "HTTP://LOCALHOST:{port}/inside",
    "file:///etc/passwd",
    "ftp://127.0.0.1:{port}/inside",
    "data:text/plain,inside",
    "javascript:inside",
    "http://rebound.example:{port}/inside",
    "http://[::1",
    "http://127.0.0.1:99999999/",
]


@pytest.mark.parametrize(
    ("status", "target"),
    [*((302, target) for target in TARGETS), *((status, TARGETS[0]) for status in (301, 303, 307, 308))],
)
def test_no_redirect_leads_inside(
    status: int, target: str, site: Site, dialled: list[str], names: dict[str, list[str]]
) -> None:
    """Not from a public site, at the first or at a later step."""
    names.update({"outside.example": [PUBLIC], "rebound.example": ["127.0.0.1"]})
    site.pages["/first"] = send(b"", status=302, Location="/second")
    location = target.format(port=site.server_port)
    site.pages["/second"] = send(b"", status=status, Location=location)
    with suppress(SkillError):
        fetch("http://outside.example/first")
    with suppress(SkillError):
        go_through_gates("http://outside.example/first")
    with suppress(SkillError):
        go_through_weather("http://outside.example/first")
    assert set(dialled) == {PUBLIC}
    assert not any("/inside 127" in line or "/inside local" in line for line in site.requests)


def test_a_redirect_that_never_ends_is_given_up(site: Site) -> None:
    """Whether it goes in a circle or on and on."""
    site.pages["/circle"] = send(b"", status=302, Location="/circle")

    def go_on(page: BaseHTTPRequestHandler) -> None:
        send(b"", status=302, Location=f"/on?{len(site.requests)}")(page)

    site.pages["/on"] = go_on
    for path in ("/circle", "/on"):
        site.requests.clear()
        with pytest.raises(FetchFailedError, match="redirects more than 5 times"):
            fetch(site.url(path), site.rules)
        assert len(site.requests) == 6


@pytest.mark.parametrize("status", [302, 307])
def test_what_a_request_carries_stays_with_its_site(status: int, site: Site) -> None:
    """Headers are left out on the way to another site, and a form is not sent there at all."""
    received: list[str] = []

    def record(page: BaseHTTPRequestHandler) -> None:
        received.append(str(page.headers))
        send(b"hello")(page)

    with Site.running() as other:
        rules = NetworkRules.allowing([site.host, other.host])
        site.pages["/"] = send(b"", status=status, Location=other.url("/other"))
        other.pages["/other"] = record
        key = {"X-API-Key": "secret-1", "Authorization": "secret-2", "Cookie": "secret-3"}
        assert fetch(site.url("/"), rules, headers=key).text == "hello"
        assert "secret" not in received[0]
        if status == 307:
            with pytest.raises(FetchFailedError, match="to another site"):
                fetch(site.url("/"), rules, method="POST", form={"password": "secret-4"})
            assert len(received) == 1


def test_cookies_of_one_port_are_not_sent_to_another(site: Site) -> None:
    """Behind another port of the same host there may be another program."""
    received: list[str | None] = []

    def record(page: BaseHTTPRequestHandler) -> None:
        received.append(page.headers["Cookie"])
        send(b"")(page)

    async def run(other: Site) -> None:
        async with Fetcher(NetworkRules.allowing(["127.0.0.1"])) as fetcher:
            await fetcher.fetch(site.url("/set"))
            await fetcher.fetch(other.url("/"))
            await fetcher.fetch(site.url("/moved"))
            await fetcher.fetch(site.url("/"))

    with Site.running() as other:
        site.pages["/set"] = send(b"", Set_Cookie="session=secret; Path=/")
        site.pages["/moved"] = send(b"", status=302, Location=other.url("/"))
        site.pages["/"] = other.pages["/"] = record
        anyio.run(run, other)
    assert received == [None, None, "session=secret"]


# -- the environment --------------------------------------------------------------------------------------------------


def test_neither_proxies_nor_passwords_of_the_environment_are_used(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy would look up the names itself, and `.netrc` holds the user's passwords."""
    received: list[str] = []

    def record(page: BaseHTTPRequestHandler) -> None:
        received.append(str(page.headers))
        send(b"direct")(page)

    site.pages["/"] = record
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login ada password secret\ndefault login ada password secret\n")
    (tmp_path / ".netrc").chmod(0o600)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    with Site.running() as trap:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://{trap.host}")
            monkeypatch.setenv(name.lower(), f"http://{trap.host}")
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)

        assert fetch(site.url("/"), site.rules).text == "direct"
        answer = through_proxy(site.rules, lambda proxy: ask_proxy(proxy, f"GET {site.url('/')}"))
        assert answer.endswith(b"direct")
        assert trap.requests == []
    assert len(received) == 2
    assert not any("Authorization" in headers for headers in received)


def test_nothing_of_a_request_is_logged(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    """At the level DEBUG, the HTTP library would log addresses and cookies. Other requests are logged as always."""
    caplog.set_level(logging.DEBUG)
    site.pages["/"] = send(b"", Set_Cookie="session=secret-1")
    fetch(f"{site.url('/')}?key=secret-2", site.rules, headers={"X-API-Key": "secret-3"})
    assert "secret" not in caplog.text
    httpx2.get(f"{site.url('/')}?mine", trust_env=False)
    assert "?mine" in caplog.text
