"""OAuth clients: where to sign in for a site, and as whom."""

from collections.abc import Iterable
from dataclasses import dataclass

from skillshelf.bundled.authentication_gates._errors import SecretInAddressError
from skillshelf.bundled.authentication_gates._sites import SETTING_HELP, Site
from skillshelf.errors import AddressRefusedError, SettingsError


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
