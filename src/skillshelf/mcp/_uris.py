"""`skill://<name>/<path>`: the addresses of a skill's files."""

import re
from typing import NamedTuple
from urllib.parse import quote, unquote

SCHEME = "skill://"
LISTING = "skill://listing"
SKILL_FILE = "SKILL.md"
_OFFSET = re.compile(r"offset=([0-9]{1,15})")


class Address(NamedTuple):
    """What a URI names. The path is decoded once and not normalized: it is compared with a list, not opened."""

    name: str
    path: str
    """Empty for the skill's folder."""
    offset: int = 0


def uri_of(name: str, path: str = "", offset: int = 0) -> str:
    folder = SCHEME + quote(name, safe="@")
    file = f"{folder}/{quote(path)}" if path else folder
    return f"{file}?offset={offset}" if offset else file


def parse(uri: str) -> Address | None:
    """None for what cannot name a skill's file."""
    if not uri.startswith(SCHEME):
        return None
    rest, _, query = uri.removeprefix(SCHEME).partition("?")
    offset = _OFFSET.fullmatch(query) if query else None
    if query and not offset:
        return None
    name, _, path = rest.partition("/")
    try:
        return Address(unquote(name, errors="strict"), unquote(path, errors="strict"), int(offset[1]) if offset else 0)
    except UnicodeDecodeError:
        return None
