"""Which invisible characters have an honest reason to be where they are.

They are ordinary in emoji and in some scripts (a joiner in a family emoji, a non-joiner in Persian), so a hit is judged
by its neighbours. Compiling these patterns takes 5 ms that text in ASCII never pays: import this module when needed.
"""

import re
import unicodedata
from collections.abc import Iterator

# The flags of England, Scotland and Wales are spelt in tag characters: passed over whole, so they are matched before
# them. No other spelling has a picture, so any other would be a text that only a model sees.
_TAGS = {ord(letter): 0xE0000 + ord(letter) for letter in "abcdefghijklmnopqrstuvwxyz"}
_FLAG = f"\U0001f3f4(?:{'|'.join(('gbeng', 'gbsct', 'gbwls')).translate(_TAGS)})\U000e007f"
HIDDEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff\ud800-\udfff]"
)
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufffe\uffff]")
_FLAG_OR_HIDDEN = re.compile(f"{_FLAG}|{HIDDEN.pattern}")
_EMOJI = re.compile("[\u00a9\u00ae\u203c\u2049\u2100-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]")
# Scripts whose spelling needs the zero-width joiner and non-joiner: Arabic, Syriac, the Indic family, Mongolian.
_JOINING = re.compile("[\u0600-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u18af\ufb50-\ufdff\ufe70-\ufefc]")
_IDEOGRAPH = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")


def hidden_in(text: str) -> Iterator[re.Match[str]]:
    """Each character of `text` that hides and has no honest reason to be where it is."""
    for match in _FLAG_OR_HIDDEN.finditer(text):
        if len(match[0]) == 1 and not _honest(text, match.start()):
            yield match


def _honest(text: str, at: int) -> bool:
    char, last = text[at], at + 1 == len(text)
    before, after = text[at - 1 : at], text[at + 1 : at + 2]
    if char == "\u200d" and before == "\ufe0f" and _honest(text, at - 1):
        before = text[at - 2]
    # What hides is no reason for another to hide: the marks of direction have a direction themselves.
    before, after = (side if side and not HIDDEN.match(side) else "" for side in (before, after))
    if char in "\ufe0e\ufe0f":
        return bool(before) and not before.isspace() and not before.isalpha()
    if char == "\u200d" and _EMOJI.match(before):
        return bool(_EMOJI.match(after))
    if char in "\u200c\u200d":
        return bool(_JOINING.match(before)) and (last or bool(_JOINING.match(after)) or after.isspace())
    if char in "\u200e\u200f\u061c":
        return _reads_leftwards(text[max(0, at - 8) : at][::-1]) or _reads_leftwards(text[at + 1 : at + 9])
    if "\ufe00" <= char <= "\ufe0d" or "\U000e0100" <= char <= "\U000e01ef":
        return bool(_IDEOGRAPH.match(before))
    return "\u180b" <= char <= "\u180f" and "\u1820" <= before <= "\u18aa"


def _reads_leftwards(side: str) -> bool:
    """Whether the first character with a direction, seen from a mark between spaces and punctuation, is such a one."""
    for char in side:
        direction = "" if HIDDEN.match(char) else unicodedata.bidirectional(char)
        if direction in ("", "L", "R", "AL", "AN"):
            return direction in ("R", "AL", "AN")
    return False
