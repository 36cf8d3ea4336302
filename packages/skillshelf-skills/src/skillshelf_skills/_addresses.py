"""Addresses of servers that a user writes after `--with`, where other users of the machine can see them."""

from urllib.parse import SplitResult, parse_qsl, urlsplit

from skillshelf.errors import SettingsError

POSTGRES_PASSWORD = "Put it into PGPASSWORD or ~/.pgpass."
"""Where the password for PostgreSQL belongs."""


def split_address(address: str) -> SplitResult:
    """Return the parts of an address. Raises SettingsError, which does not repeat it."""
    try:
        return urlsplit(address)
    except ValueError:
        raise SettingsError("What should be the address of a server is not an address.") from None


def refuse_password(address: str, remedy: str) -> None:
    """Raise SettingsError if there is a password in an address. It ends with `remedy`, and repeats no secret."""
    parts = split_address(address)
    names = [name.lower() for name, _ in parse_qsl(parts.query, keep_blank_values=True)]
    if parts.password is not None or any("password" in name for name in names):
        raise SettingsError(f"There is a password in an address, where others can see it. {remedy}")
