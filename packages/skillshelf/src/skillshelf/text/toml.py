"""Read TOML that somebody else wrote."""

from typing import Any

_MAX_DOTS = 500
"""In a line. tomllib takes 1.6 GB for a key of 20,000 parts, and four times that for twice as many."""


def parse_toml(data: bytes) -> dict[str, Any]:
    """Return the top-level table. Raises ValueError for what is not TOML, or would take the memory of the machine."""
    import tomllib  # takes 5 ms

    lines = data.splitlines()
    if lines and max(line.count(b".") for line in lines) > _MAX_DOTS:
        raise ValueError(f"a line has more than {_MAX_DOTS} dots")
    try:
        return tomllib.loads(data.decode())
    except RecursionError:
        raise ValueError("values are nested too deeply") from None
