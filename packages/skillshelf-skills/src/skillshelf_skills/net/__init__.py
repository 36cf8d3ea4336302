"""The network rules: what skills may reach, in one place.

Everything that fetches goes through here: `Fetcher` for HTTP, and `GuardedProxy` for a program such as a browser. Both
look up names and open connections with `open_connection`, so an address is checked after its name was resolved, for
each redirect anew, and the address that was checked is the one that is connected to.
"""

from typing import TYPE_CHECKING

from skillshelf.lazy import export_lazily
from skillshelf_skills.net._rules import NetworkRules, name_site, parse_host

if TYPE_CHECKING:
    from skillshelf_skills.net._connections import open_connection
    from skillshelf_skills.net._fetch import Fetched, Fetcher
    from skillshelf_skills.net._proxy import GuardedProxy

__all__ = ["Fetched", "Fetcher", "GuardedProxy", "NetworkRules", "name_site", "open_connection", "parse_host"]

# The rules are read wherever a skill is attached. Fetching brings an HTTP client, which takes 0.13 s to import.
__getattr__ = export_lazily(
    __name__,
    {"_connections": ["open_connection"], "_fetch": ["Fetched", "Fetcher"], "_proxy": ["GuardedProxy"]},
    extra="fetch",
)
