"""Fetching over https, within limits."""

import time
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from skillshelf._version import __version__
from skillshelf.errors import RegistryError
from skillshelf.text import clean_line, truncate

_SECONDS = 30.0
"""Without any byte."""
_TOTAL_SECONDS = 600.0
_CHUNK = 64 * 1024
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class NotThere(RegistryError):
    """The site has no such page."""


def fetch(url: str, limit: int) -> bytes:
    """Return what is at an address. Raises RegistryError."""
    check_address(url)
    shown = clean_line(truncate(url, 200))
    request = Request(url, headers={"User-Agent": f"skillshelf/{__version__}", "Accept-Encoding": "identity"})
    end = time.monotonic() + _TOTAL_SECONDS
    data = bytearray()
    try:
        with build_opener(_CheckedRedirects).open(request, timeout=_SECONDS) as response:
            expected = response.headers.get("Content-Length", "")
            while chunk := response.read(_CHUNK):
                data += chunk
                if len(data) > limit:
                    raise RegistryError(f"{shown} has more than {limit:,} bytes.")
                if time.monotonic() > end:
                    raise RegistryError(f"{shown} took more than {_TOTAL_SECONDS:.0f} seconds.")
    except HTTPError as error:
        if error.code in (404, 410):
            raise NotThere(f"{shown} is not there.") from None
        raise RegistryError(f"{shown} cannot be fetched: HTTP {error.code}.") from None
    except (OSError, HTTPException, ValueError) as error:
        reason = clean_line(truncate(str(getattr(error, "reason", "") or error), 200))
        raise RegistryError(f"{shown} cannot be fetched: {reason}.") from None
    if expected.isdigit() and len(data) != int(expected):
        raise RegistryError(f"{shown} cannot be fetched: the connection ended after {len(data):,} of {expected} bytes.")
    return bytes(data)


class _CheckedRedirects(HTTPRedirectHandler):
    def redirect_request(self, *args: Any) -> Request | None:
        check_address(args[-1])
        return super().redirect_request(*args)


def check_address(url: str) -> None:
    """Refuse an address that others could read or change on its way, or that has a secret in it."""
    try:
        parts = urlsplit(url)
        is_private = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
    except ValueError:
        is_private = False
    if not is_private:
        raise RegistryError(f"{url!r:.200} is not an https address.")
    if parts.username or parts.password:
        raise RegistryError("Don't put a password or token in a URL: the lock is committed.")
