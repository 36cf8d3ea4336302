"""Names with a key, for skills that only the person may invoke.

In the revisions without a handshake a request over HTTP stands alone: a client opens a second connection for calls at
once, and a new one after a while. What it was given with the prompt is all that tells it from others.
"""

import hmac
import secrets

_SIGN = "#"


class Keys:
    """Good as long as the server runs."""

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(16)

    def with_key(self, name: str) -> str:
        return f"{name}{_SIGN}{self._key(name)}"

    def name_of(self, given: object) -> str | None:
        """The name that was given with its right key; None for anything else."""
        if not isinstance(given, str) or _SIGN not in given:
            return None
        name, _, key = given.rpartition(_SIGN)
        return name if hmac.compare_digest(_bytes(key), _bytes(self._key(name))) else None

    def _key(self, name: str) -> str:
        return hmac.new(self._secret, _bytes(name), "sha256").hexdigest()[:10]


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
