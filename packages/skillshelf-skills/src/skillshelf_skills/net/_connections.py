"""Names looked up, and connections opened, under the rules."""

import os
import socket

import anyio
from anyio.abc import SocketStream

from skillshelf.errors import AddressRefusedError, FetchFailedError
from skillshelf_skills.net._rules import NetworkRules, name_site


async def look_up(rules: NetworkRules, host: str, port: int) -> list[str]:
    """Return the addresses of a host that the rules allow, in the system's order.

    Connect to one of these, never to the name: a second look-up may give another answer. Raises AddressRefusedError if
    the rules forbid all of them, and FetchFailedError if there are none.
    """
    try:
        entries = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError, ValueError):
        reason = "there is no such host, or its name cannot be looked up now"
        raise FetchFailedError(name_site(host, port), reason) from None

    allowed: list[str] = []
    refusal: AddressRefusedError | None = None
    for address in dict.fromkeys(str(entry[4][0]) for entry in entries):
        try:
            rules.check_address(host, port, address)
        except AddressRefusedError as error:
            refusal = error
        else:
            allowed.append(address)
    if refusal and not allowed:
        raise refusal
    return allowed


async def open_connection(rules: NetworkRules, host: str, port: int) -> SocketStream:
    """Connect to a host, at an address that was checked. Raises AddressRefusedError and FetchFailedError."""
    failure = "it has no address"
    with anyio.move_on_after(rules.seconds):
        for address in await look_up(rules, host, port):
            try:
                return await anyio.connect_tcp(address, port)
            except OSError as error:
                failure = describe_failure(error)
        raise FetchFailedError(name_site(host, port), failure)
    raise FetchFailedError(name_site(host, port), f"it did not answer within {rules.seconds:g} seconds")


def describe_failure(error: BaseException) -> str:
    """Return in words why a connection failed: what the system said, or else the last error before it."""
    last = str(error)
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno:
            return os.strerror(cause.errno).lower()
        last = str(cause) or last
        cause = cause.__cause__ or cause.__context__
    return last.rstrip(".").lower() or type(error).__name__
