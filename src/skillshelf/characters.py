"""Characters that hide: what a reader does not see but a model or a terminal obeys."""

import codecs
import re
from collections.abc import Iterator
from typing import Any

# The selectors and joiners of emoji and scripts, and the blank of braille patterns, move nothing on a terminal.
_HARMLESS_ON_SCREEN = "\ufe0e\ufe0f\u200c\u200d\u2800"


def hidden(text: str) -> Iterator[re.Match[str]]:
    """Each character of `text` that hides and has no honest reason to be where it is."""
    if text.isascii():
        return iter(())
    from skillshelf.hiding import hidden_in

    return hidden_in(text)


def show_hidden(text: str) -> str:
    """The text with each hiding character written out as `<U+200B>`."""
    parts: list[str] = []
    last = 0
    for match in hidden(text):
        parts += text[last : match.start()], _name(match)
        last = match.end()
    return "".join((*parts, text[last:])) if parts else text


def decode_text(data: bytes, *, is_whole: bool = True) -> str | None:
    """Return data as text, or None if it is not UTF-8 or has a NUL byte.

    Unless it `is_whole`, more data follows, and a character cut in two at its end is left out.
    """
    if b"\0" in data:
        return None
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(data, final=is_whole)
    except UnicodeDecodeError:
        return None


def unify_lines(text: str) -> str:
    """Return the text with every line ending as a line feed."""
    if "\r" not in text:
        return text
    return text.replace("\r\n", "\n").replace("\r", "\n")


def text_for_model(text: str) -> str:
    """Return text from a file as a model may read it: hidden characters written out, line endings as line feeds."""
    return show_hidden(unify_lines(text))


def show_controls(text: str) -> str:
    """The text with each control character but tab and newline written out as `<U+001B>`."""
    if text.isprintable():
        return text
    from skillshelf.hiding import CONTROL

    return CONTROL.sub(_name, text)


def clean(text: str) -> str:
    """What may reach a terminal. Every string from a skill, a path or an error passes through here first."""
    shown = show_controls(text)
    if shown.isascii():
        return shown
    from skillshelf.hiding import HIDDEN

    return HIDDEN.sub(lambda match: match[0] if match[0] in _HARMLESS_ON_SCREEN else _name(match), shown)


def clean_line(text: str) -> str:
    """`clean`, on one line."""
    return clean(" ".join(text.split())) if "\n" in text or "\t" in text else clean(text)


def whole(text: str) -> str:
    """The text without halves of characters, as a file name may have: no socket and no JSON parser takes them."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def to_json(value: Any, indent: int | None = None) -> str:
    """JSON in printable ASCII, so that it can be looked at in a terminal too; what has no JSON form becomes text."""
    import json  # only where it is asked for: `import skillshelf` is to be quick

    # DEL is the one control character that JSON leaves as it is.
    return json.dumps(value, indent=indent, default=str).replace("\x7f", "\\u007f")


def _name(match: re.Match[str]) -> str:
    return f"<U+{ord(match[0]):04X}>"
