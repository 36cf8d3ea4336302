"""What clients may ask of the server."""

from typing import NamedTuple

MAX_AGE = 1.0
"""Seconds by which a tool call or a read may lag behind the disk."""

# --- requests ---

MAX_BODY = 4 * 1024 * 1024
"""Bytes of an HTTP request."""
MAX_CHARACTERS = 1_000_000
"""Characters and items in the arguments of one call."""
MAX_DEPTH = 64
"""Levels in the arguments of one call."""
MAX_ECHO = 200
"""Characters of an address or an argument's name that an error repeats."""
MAX_ECHO_IN_DATA = 2_000
"""Characters of an address in the data of an error, for the client's program."""
MAX_SESSIONS = 1_100
"""Sessions of the handshake revisions. An abandoned one takes 52 KB: all of them 56 MiB."""

# --- answers ---

PROMPTS_PER_PAGE = 100
RESOURCES_PER_PAGE = 500
SKILLS_PER_PAGE = 20
"""Skills in a page of `skills/list`: every file of each is read for its digest."""
MAX_COMPLETIONS = 100
"""Values that the protocol allows in one answer."""
MAX_WHOLE_FILE = 4 * 1024 * 1024
"""Bytes of the longest file that `resources/read` gives whole; a longer one comes in pages.

In base64 that is 5.6 MB. The official TypeScript client drops a stdio connection for a message over 10 MiB.
"""
MAX_RECENT_CHARACTERS = 4 * 1024 * 1024
"""Characters of the answers to loads that are kept for a second."""

# --- questions to the user ---

MAX_SHOWN_CHARACTERS = 2_000
"""Characters of the arguments that a question shows."""
MAX_OPEN_QUESTIONS = 1_000
"""Questions without an answer. The oldest beyond that are forgotten, and asked again."""


class NoticeLimits(NamedTuple):
    """How often clients are notified, and how much they may subscribe to."""

    notice_seconds: float = 1.0
    """The shortest time between two notices, however many files change."""
    sweep_seconds: float = 2.0
    """The time between two sweeps while a client waits for notices. With a file watcher, notices come earlier."""
    subscriptions: int = 1_000
    """Resources that a client can subscribe to."""
    streams: int = 1_024
    """`subscriptions/listen` streams that can be open on one transport."""


class ConnectionLimits(NamedTuple):
    """How many connections an HTTP server accepts, and how long a request may take."""

    connections: int = 2_048
    """Connections that are open at once. A request on another one is answered with 503."""
    refusals: int = 64
    """Connections over the limit that are told why they are refused. Further ones are closed at once."""
    request_seconds: float = 30.0
    """Time to send a complete request, from the opening of a connection or from the last answer on it."""
