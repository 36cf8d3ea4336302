"""Keeping secrets out of everything that a model reads."""

import base64
import json
import re
import threading
from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, TypeVar
from urllib.parse import unquote

from skillshelf.errors import SkillError

Value = TypeVar("Value")

MIN_SECRET = 4
PLACEHOLDER = "[*]"
"""Shorter than any secret, so that none can be part of it."""
_MAX_NESTING = 3
"""How often a text may be escaped: an address in an address, JSON in HTML."""
_LONGEST_ESCAPE = 12
"""Characters that one character usually takes: `%F0%9F%98%80`, `\\ud83d\\ude00`."""

_HEX = "[0-9a-fA-F]"
_UTF8 = f"%[89abAB]{_HEX}"
_ESCAPE = re.compile(
    # in an address: the bytes of one character
    rf"%(?:[cdCD]{_HEX}{_UTF8}|[eE]{_HEX}(?:{_UTF8}){{2}}|[fF][0-7](?:{_UTF8}){{3}}|{_HEX}{{2}})"
    # in JSON, JavaScript and Python
    rf"|\\(?:u[dD][89abAB]{_HEX}{{2}}\\u[dD][c-fC-F]{_HEX}{{2}}|u{_HEX}{{4}}|x{_HEX}{{2}}|[bfnrt\"'/\\])"
    # in HTML
    rf"|&(?:#[0-9]{{1,9}};?|#[xX]{_HEX}{{1,8}};?|[a-zA-Z][a-zA-Z0-9]{{1,30}};)"
)


class Redactor:
    """Knows every secret of a skill, and replaces it wherever it appears, also encoded and escaped."""

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
            self.longest = _LONGEST_ESCAPE * max(map(len, self._forms), default=0)

    def redact_text(self, text: str) -> str:
        """Return the text without secrets."""
        pieces: list[str] = []
        done = 0
        for start, end in sorted(self._find(text)):
            if start >= done:
                pieces += (text[done:start], PLACEHOLDER)
            done = max(done, end)
        return "".join([*pieces, text[done:]])

    def _find(self, text: str, nesting: int = _MAX_NESTING) -> list[tuple[int, int]]:
        """Return where secrets start and end in a text, as it is and with its escapes read."""
        spans = [span for form in self._forms for span in _find_all(form, text)]
        unescaped = _unescape(text) if nesting else text
        if unescaped != text:
            found = self._find(unescaped, nesting - 1)
            if found:
                places = _Places(text)
                spans += [(places.find(start), places.find(end)) for start, end in found]
        return spans

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
        return bool(self._find(text))


def _find_all(form: str, text: str) -> Iterator[tuple[int, int]]:
    start = text.find(form)
    while start >= 0:
        end = start + len(form)
        yield start, end
        start = text.find(form, end)


class _Places:
    """Where the characters of an unescaped text are in the text with escapes."""

    def __init__(self, text: str) -> None:
        self._escaped: list[int] = []
        """The positions of characters that were escaped."""
        self._longer = [0]
        """By how much the text with escapes is longer, before each of them."""
        for match in _ESCAPE.finditer(text):
            longer = self._longer[-1]
            self._escaped.append(match.start() - longer)
            self._longer.append(longer + len(match[0]) - 1)

    def find(self, position: int) -> int:
        return position + self._longer[bisect_left(self._escaped, position)]


def _unescape(text: str) -> str:
    return _ESCAPE.sub(_read_escape, text)


def _read_escape(match: re.Match[str]) -> str:
    """Return the character that an escape stands for, or another one if it stands for none."""
    import html  # takes 1 ms, which a skill without secrets never pays

    escape = match[0]
    if escape.startswith("%"):
        character = unquote(escape, errors="replace")
    elif escape.startswith("&"):
        character = html.unescape(escape) or escape
    elif escape.startswith("\\x"):
        character = chr(int(escape[2:], 16))
    elif escape == "\\'":
        character = "'"
    else:
        character = json.loads(f'"{escape}"')
    return character[0]


def _list_forms(secret: str) -> set[str]:
    """Return the ways in which a server usually writes a text down, apart from escapes."""
    import html  # takes 1 ms, which a skill without secrets never pays

    data = secret.encode("utf-8", "surrogatepass")
    forms = {
        secret,
        secret[::-1],
        secret.swapcase(),
        secret.upper(),
        secret.lower(),
        data.decode("latin-1"),
        secret.replace(" ", "+"),
        # What looks like an escape in a secret would be read as one, next to true escapes.
        _unescape(secret),
        html.escape(secret),
        json.dumps(secret)[1:-1],
        data.hex(),
        data.hex().upper(),
        base64.b32encode(data).decode().rstrip("="),
        *_list_base64(data),
    }
    return {form for form in forms if len(form) >= MIN_SECRET}


def _list_base64(data: bytes) -> Iterator[str]:
    """Yield the part of Base64 that only these bytes decide, wherever they stand in a longer text."""
    for offset in range(3):
        start = -(-offset * 8 // 6)  # the first character that has no bit of what stands before
        end = (offset + len(data)) * 8 // 6
        padded = bytes(offset) + data + bytes(3)
        yield base64.b64encode(padded).decode()[start:end]
        yield base64.urlsafe_b64encode(padded).decode()[start:end]
