"""The rules: which addresses a skill may reach, and how much of them."""

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

from skillshelf.errors import AddressRefusedError, SettingsError

# Public by their number, but answered inside a data centre: the metadata services of Azure and of Oracle.
_METADATA = frozenset({ip_address("168.63.129.16"), ip_address("192.0.0.192")})
# `is_global` of Python before 3.11.10 and 3.12.4 takes some of these for public.
_NEVER_PUBLIC = tuple(
    map(
        ip_network,
        (
            "0.0.0.0/8",
            "100.64.0.0/10",
            "192.0.0.0/24",
            "198.18.0.0/15",
            "240.0.0.0/4",
            "64:ff9b:1::/48",
            "100::/64",
            "2001:2::/48",
            "3fff::/20",
            "5f00::/16",
            "fec0::/10",
        ),
    )
)
_NAT64 = IPv6Network("64:ff9b::/96")
# All public IPv6 addresses are in here. Outside are, among others, forms of IPv4 addresses that no one uses any more.
_PUBLIC_IPV6 = IPv6Network("2000::/3")
_SCHEMES = ("http", "https")
_WEB_PORTS = (80, 443)


@dataclass(frozen=True, slots=True)
class NetworkRules:
    """What a skill may reach. Public addresses always; others only if the user allowed their host by name."""

    allowed_hosts: frozenset[str] = frozenset()
    """Hosts that may have any address: `localhost`, `wiki.example:8080`, `10.0.0.7`. Make them with `allowing`."""
    max_bytes: int = 10_000_000
    """The most bytes of one answer."""
    seconds: float = 30.0
    """The time for one answer, with all its redirects."""
    max_redirects: int = 5

    @classmethod
    def allowing(cls, hosts: Iterable[str]) -> "NetworkRules":
        """Return the rules with these hosts allowed. Raises SettingsError for what is not a host."""
        return cls(frozenset(map(parse_host, hosts)))

    def check_scheme(self, url: str) -> None:
        """Raise AddressRefusedError unless this is the address of something to get over HTTP."""
        scheme, colon, _ = url.partition(":")
        if not colon or scheme.lower() not in _SCHEMES:
            raise AddressRefusedError(url, "it does not begin with http: or https:")

    def allows_host(self, host: str, port: int) -> bool:
        """Return True if the user allowed this host, whatever its address."""
        name = _normalise_name(host)
        return name in self.allowed_hosts or f"{name}:{port}" in self.allowed_hosts

    def check_address(self, host: str, port: int, address: str) -> None:
        """Raise AddressRefusedError if a host has an address that it must not have."""
        if self.allows_host(host, port):
            return
        kind = _find_kind(address)
        if kind:
            raise AddressRefusedError(name_site(host, port), f"its address {address} is {kind}")


def name_site(host: str, port: int) -> str:
    """Return a host with its port, as a user may allow it; without the port if it is one that the web has."""
    if port in _WEB_PORTS:
        return host
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse_host(text: str) -> str:
    """Return a host, perhaps with a port, as the rules keep it. Raises SettingsError for anything else."""
    host, colon, port = text.strip().rpartition(":")
    if not colon or not port.isdecimal() or (":" in host and not host.startswith("[")):
        host = text.strip()
        port = ""
    name = _normalise_name(host)
    if not name or any(character in name for character in "/@?#* ") or not name.isprintable():
        raise SettingsError(
            f"{text!r} is not a host. Give a name or an address without http://, perhaps with a port: localhost:8080."
        )
    return f"{name}:{port}" if port else name


def _normalise_name(host: str) -> str:
    return host.strip("[]").rstrip(".").lower()


def _find_kind(text: str) -> str:
    """Return why an address is not public; empty if it is."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return "not an address"
    if isinstance(address, IPv6Address):
        inner = _find_embedded(address)
        if inner is not None:
            return _find_kind(str(inner))
    if address in _METADATA:
        return "that of a metadata service"
    if address.is_loopback:
        return "this machine itself"
    if address.is_link_local:
        return "link-local, like those of metadata services"
    if address.is_multicast:
        return "a multicast address"
    is_special = any(address in network for network in _NEVER_PUBLIC if network.version == address.version)
    if isinstance(address, IPv6Address) and address not in _PUBLIC_IPV6:
        is_special = True
    if address.is_private or is_special or not address.is_global:
        return "private"
    return ""


def _find_embedded(address: IPv6Address) -> IPv4Address | None:
    """Return the IPv4 address that an IPv6 address leads to, if it does."""
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    number = int(address)
    if address in _NAT64 or (0x1_0000 <= number < 1 << 32):  # the second: ::1.2.3.4, which no one should use any more
        return IPv4Address(number & 0xFFFF_FFFF)
    return None
