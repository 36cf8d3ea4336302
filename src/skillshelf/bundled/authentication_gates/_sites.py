"""Sites: the origins that may get a credential, as the user names them."""

import re
from typing import NamedTuple, Self
from urllib.parse import urlsplit

from skillshelf.bundled.authentication_gates._errors import SecretInAddressError
from skillshelf.errors import AddressRefusedError, SettingsError

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
