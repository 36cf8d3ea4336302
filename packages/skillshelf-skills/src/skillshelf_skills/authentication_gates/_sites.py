"""Sites that may get a credential, and the OAuth clients for them, as the user names them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, Self
from urllib.parse import urlsplit

from skillshelf.errors import AddressRefusedError, SettingsError
from skillshelf_skills.authentication_gates._errors import SecretInAddressError

_PORTS = {"http": 80, "https": 443}
_ADDRESS = re.compile(r"(?P<scheme>https?)://(?P<authority>[^/?#]*)", re.IGNORECASE)
# Strict, so that the site checked here is the one that an HTTP client reads out of the same address.
_AUTHORITY = re.compile(r"(?P<host>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[0-9]{1,5}))?", re.ASCII)
SETTING_HELP = (
    "Name sites, with commas between them: api.example, http://localhost:8080, or with an OAuth client "
    "api.example=CLIENT_ID@https://login.example"
)


# Not a dataclass, which takes half of the millisecond that attaching a skill may take.
class Site(NamedTuple):
    """An origin: scheme, host and port. A credential for one site is never sent to another."""

    scheme: str
    host: str
    port: int

    @classmethod
    def of(cls, url: str) -> Self:
        """Return the site of an address. Raises AddressRefusedError, and SecretInAddressError for a password in it."""
        match = _ADDRESS.match(url)
        if match is None:
            raise AddressRefusedError(url, "it does not begin with http: or https: and a host")
        if "@" in match["authority"]:
            raise SecretInAddressError
        authority = _AUTHORITY.fullmatch(match["authority"])
        if authority is None:
            raise AddressRefusedError(url, "its host has characters other than letters, digits, dots and hyphens")
        scheme = match["scheme"].lower()
        port = int(authority["port"] or _PORTS[scheme])
        return cls(scheme, authority["host"].strip("[]").rstrip(".").lower(), port)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the site that a user named. HTTPS is meant unless they wrote http:. Raises SettingsError."""
        address = text.strip() if "://" in text else f"https://{text.strip()}"
        try:
            site = cls.of(address)
        except (AddressRefusedError, SecretInAddressError):
            raise SettingsError(f"This is not a site. {SETTING_HELP}") from None
        if urlsplit(address).path.strip("/") or urlsplit(address).query:
            raise SettingsError(f"{text!r} is more than a site: leave out what follows the host and the port.")
        return site

    @property
    def address(self) -> str:
        """Host and port, as the network rules take them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}" if self.port == _PORTS[self.scheme] else f"{self.scheme}://{self.address}"

    @property
    def setting(self) -> str:
        """The shortest text that `parse` reads as this site."""
        return str(self).removeprefix("https://")


@dataclass(frozen=True, slots=True)
class OAuthClient:
    """How to sign in at a site with OAuth: at which issuer, and as which client.

    The user names both. A site that could choose the issuer could have itself a token of any other site made.
    """

    issuer: str
    client_id: str

    def __post_init__(self) -> None:
        try:
            Site.of(self.issuer)
        except (AddressRefusedError, SecretInAddressError):
            raise SettingsError(f"{self.issuer!r} is not an issuer. Give its address: https://login.example") from None
        if not self.client_id:
            raise SettingsError("An OAuth client needs its id. The issuer gives you one when you register a program.")


def parse_sites(setting: str) -> dict[Site, OAuthClient | None]:
    """Return the sites of `SITE,SITE=CLIENT_ID@ISSUER`. Raises SettingsError."""
    sites: dict[Site, OAuthClient | None] = {}
    for entry in filter(None, (part.strip() for part in setting.split(","))):
        name, equals, client = entry.partition("=")
        site = Site.parse(name)
        if not equals:
            sites[site] = None
            continue
        client_id, at, issuer = client.partition("@")
        if not at:
            raise SettingsError(f"{entry!r} does not say where to sign in. {SETTING_HELP}")
        sites[site] = OAuthClient(issuer, client_id)
    return sites


def find_hosts(sites: Iterable[Site], clients: Iterable[OAuthClient]) -> list[str]:
    """Return the hosts that the user named, for the network rules."""
    named = [site.address for site in sites]
    return named + [Site.of(client.issuer).address for client in clients]
