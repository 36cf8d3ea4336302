"""Why a page could not be loaded."""

import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from playwright.async_api import Error, Response

from skillshelf.errors import AddressRefusedError, FetchFailedError, SkillError
from skillshelf.net import GuardedProxy, name_site

TUNNEL_FAILED = "net::ERR_TUNNEL_CONNECTION_FAILED"
"""What Chromium says if the proxy refused a connection over HTTPS."""
_HTTPS_PORT = 443
_CODE = re.compile(r"net::ERR_[A-Z0-9_]+")
_REASONS = {
    "ABORTED": "the server sent no page: the address leads to a file, or to nothing",
    "CERT_AUTHORITY_INVALID": "its certificate is not from an authority that the browser knows",
    "CERT_COMMON_NAME_INVALID": "its certificate is for another host",
    "CERT_DATE_INVALID": "its certificate has expired",
    "CONNECTION_CLOSED": "the server ended the connection",
    "CONNECTION_RESET": "the server ended the connection",
    "EMPTY_RESPONSE": "the server answered with nothing",
    "INVALID_HTTP_RESPONSE": "the server does not speak HTTP",
    "SSL_PROTOCOL_ERROR": "the server does not speak HTTPS on this port",
    "TOO_MANY_REDIRECTS": "it redirects in a circle",
    "TUNNEL_CONNECTION_FAILED": "it cannot be reached",
    "UNSAFE_REDIRECT": "it redirects to an address that is not a web page",
}


def find_code(error: Error) -> str | None:
    """Return the error of Chromium's network for which a navigation failed, if it did for one: `net::ERR_…`."""
    found = _CODE.search(error.message)
    return found[0] if found else None


def explain_failure(code: str) -> str:
    """Return in words what an error of Chromium's network means: `net::ERR_EMPTY_RESPONSE`."""
    name = code.removeprefix("net::ERR_")
    return _REASONS.get(name, name.replace("_", " ").lower() or "it cannot be loaded")


async def find_sent_refusal(proxy: GuardedProxy, response: Response) -> SkillError | None:
    """Return the refusal that the browser got in place of a page, or None if a server sent it.

    Over HTTP, the browser takes the proxy's own words for the page.
    """
    if response.status not in (403, 502):
        return None
    body = await _read_body(response)
    for refusal in reversed(proxy.refusals):
        if str(refusal) == body:
            return refusal
    return None


def find_tunnel_refusal(refusals: Sequence[SkillError], url: str) -> SkillError | None:
    """Return why the proxy opened no tunnel to the site of an address.

    Over HTTPS, the browser shows nothing of the proxy's words. The latest refusal of host and port is the reason.
    """
    parts = urlsplit(url)
    site = name_site(parts.hostname or "", parts.port or _HTTPS_PORT)
    for refusal in reversed(refusals):
        if isinstance(refusal, AddressRefusedError | FetchFailedError) and refusal.target == site:
            return refusal
    return None


async def _read_body(response: Response) -> str:
    try:
        return await response.text()
    except (Error, UnicodeDecodeError):  # the page has gone on, or the body is not text
        return ""
