"""Characters that hide: what a reader does not see but a model or a terminal obeys.

Invisible characters are ordinary in emoji and in some scripts (a joiner in a family emoji, a non-joiner in Persian), so
a hit is judged by its neighbours.
"""

import re
import unicodedata
from collections.abc import Iterator

# A flag of a part of a country is spelt in tag characters: passed over whole, so it is matched before them.
_FLAG = "\U0001f3f4[\U000e0020-\U000e007e]{1,6}\U000e007f"
_HIDDEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff\ud800-\udfff]"
)
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufffe\uffff]")
_FLAG_OR_HIDDEN = re.compile(f"{_FLAG}|{_HIDDEN.pattern}")
_EMOJI = re.compile("[\u00a9\u00ae\u203c-\u3299\U0001f000-\U0001faff\ufe0f]")
# Scripts whose spelling needs the zero-width joiner and non-joiner: Arabic, Syriac, the Indic family, Mongolian.
_JOINING = re.compile("[\u0600-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u18af\ufb50-\ufdff\ufe70-\ufefc]")
_IDEOGRAPH = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")


def hidden(text: str) -> Iterator[re.Match[str]]:
    """Each character of `text` that hides and has no honest reason to be where it is."""
    if text.isascii():
        return
    for match in _FLAG_OR_HIDDEN.finditer(text):
        if len(match[0]) == 1 and not _honest(text, match.start()):
            yield match


def _honest(text: str, at: int) -> bool:
    char = text[at]
    before, after = text[at - 1 : at], text[at + 1 : at + 2]
    if char in "\ufe0e\ufe0f":
        return bool(before) and not before.isspace() and not before.isalpha() and not _HIDDEN.match(before)
    if char == "\u200d" and _EMOJI.match(before):
        return bool(_EMOJI.match(after))
    if char in "\u200c\u200d":
        return bool(_JOINING.match(before) and (not after or _JOINING.match(after) or after.isspace()))
    if char in "\u200e\u200f\u061c":
        return any(side and unicodedata.bidirectional(side) in ("R", "AL", "AN") for side in (before, after))
    if "\ufe00" <= char <= "\ufe0d" or "\U000e0100" <= char <= "\U000e01ef":
        return bool(_IDEOGRAPH.match(before))
    return "\u180b" <= char <= "\u180f" and "\u1820" <= before <= "\u18aa"


def _name(match: re.Match[str]) -> str:
    return f"<U+{ord(match[0]):04X}>"


def show_hidden(text: str) -> str:
    """The text with each hiding character written out as `<U+200B>`."""
    hits = list(hidden(text))
    if not hits:
        return text
    parts: list[str] = []
    last = 0
    for match in hits:
        parts += text[last : match.start()], _name(match)
        last = match.end()
    return "".join((*parts, text[last:]))


def show_controls(text: str) -> str:
    """The text with each control character but tab and newline written out as `<U+001B>`."""
    return _CONTROL.sub(_name, text)


def clean(text: str) -> str:
    """What may reach a terminal. Every string from a skill, a path or an error passes through here first."""
    if text.isascii() and text.isprintable():
        return text
    return _HIDDEN.sub(
        lambda match: match[0] if match[0] in "\ufe0e\ufe0f\u200c\u200d" else _name(match), show_controls(text)
    )


def clean_line(text: str) -> str:
    """`clean`, on one line."""
    return clean(" ".join(text.split())) if "\n" in text or "\t" in text else clean(text)
