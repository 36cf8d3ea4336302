"""Keeping secrets out of everything that a model reads."""

import base64
import json
import threading
from collections.abc import Iterator
from typing import Any, TypeVar
from urllib.parse import quote, quote_plus

from skillshelf.errors import SkillError

Value = TypeVar("Value")

MIN_SECRET = 4
PLACEHOLDER = "[*]"
"""Shorter than any secret, so that none can be part of it."""


class Redactor:
    """Knows every secret of a skill, and replaces it wherever it appears, also in the usual encodings."""

    def __init__(self) -> None:
        self._forms: set[str] = set()
        self._lock = threading.Lock()
        self.longest = 0

    def add(self, *secrets: str) -> None:
        """Remember secrets. They are never forgotten: an answer of yesterday may hold them too.

        What is shorter than `MIN_SECRET` would black out ordinary words, and is left out.
        """
        with self._lock:
            for secret in secrets:
                if len(secret) < MIN_SECRET:
                    continue
                self._forms = self._forms | _list_forms(secret)
            self.longest = max(map(len, self._forms), default=0)

    def redact_text(self, text: str) -> str:
        """Return the text without secrets."""
        # The longest first: one form may be part of another.
        for form in sorted(self._forms, key=len, reverse=True):
            if form in text:
                text = text.replace(form, PLACEHOLDER)
        return text

    def redact(self, value: Value) -> Value:
        """Return a value of a tool, a list or a dictionary included, without secrets."""
        return self._redact(value)  # type: ignore[no-any-return]

    def _redact(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.redact_text(value)
        if isinstance(value, dict):
            return {key: self._redact(item) for key, item in value.items()}  # the keys are ours
        if isinstance(value, list):
            return [self._redact(item) for item in value]
        if isinstance(value, tuple):
            return tuple(self._redact(item) for item in value)
        return value

    def redact_error(self, error: SkillError) -> None:
        """Take secrets out of an error: its message, its fields, and the errors that led to it."""
        error.args = self._redact(error.args)
        for name, value in vars(error).items():
            vars(error)[name] = self._redact(value)
        error.__cause__ = None
        error.__context__ = None

    def finds_secret(self, text: str) -> bool:
        return self.redact_text(text) != text


def _list_forms(secret: str) -> set[str]:
    """Return the ways in which a server usually writes a text down."""
    import html  # takes 1 ms, which a skill without secrets never pays

    data = secret.encode("utf-8", "surrogatepass")
    forms = {
        secret,
        secret[::-1],
        secret.swapcase(),
        secret.upper(),
        secret.lower(),
        data.decode("latin-1"),
        data.hex(),
        data.hex().upper(),
        quote(data, safe=""),
        quote(data),
        quote_plus(data),
        quote(data, safe="").lower(),
        html.escape(secret),
        html.escape(secret, quote=False),
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
        repr(secret)[1:-1],
        base64.b32encode(data).decode().rstrip("="),
        *_list_base64(data),
    }
    return {form for form in forms if form}


def _list_base64(data: bytes) -> Iterator[str]:
    """Yield the part of Base64 that only these bytes decide, wherever they stand in a longer text."""
    for offset in range(3):
        start = -(-offset * 8 // 6)  # the first character that has no bit of what stands before
        end = (offset + len(data)) * 8 // 6
        padded = bytes(offset) + data + bytes(3)
        yield base64.b64encode(padded).decode()[start:end]
        yield base64.urlsafe_b64encode(padded).decode()[start:end]
