"""Judge whether an invisible character has an honest reason to be where it is.

Invisible characters are ordinary in emoji and in some scripts (a joiner in a family emoji, a non-joiner in Persian), so
each is judged by its neighbours. Compiling these patterns takes 5 ms, which text in ASCII never pays: this module is
imported only when a text needs it.
"""

import re
import unicodedata
from collections.abc import Iterator

# The flags of England, Scotland and Wales are spelt in tag characters: passed over whole, so they are matched before
# them. No other spelling has a picture, so any other would be a text that only a model sees.
_TAGS = {ord(letter): 0xE0000 + ord(letter) for letter in "abcdefghijklmnopqrstuvwxyz"}
_FLAG = f"\U0001f3f4(?:{'|'.join(('gbeng', 'gbsct', 'gbwls')).translate(_TAGS)})\U000e007f"
# U+2800 is a blank among braille patterns, U+FFFC stands for a picture that is not there, U+1D159 is a note without a
# head, U+13430 to U+1343F join hieroglyphs.
HIDDEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffc\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d159"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff\ud800-\udfff]"
)
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufffe\uffff]")
# The others hide wherever they stand.
_SOMETIMES_HONEST = re.compile(
    "[\u061c\u180b-\u180f\u200c-\u200f\ufe00-\ufe0f\U00013430-\U0001343f\U000e0100-\U000e01ef]"
)
# Braille patterns and the blanks next to them are passed over whole, as drawings are made of them.
_BRAILLE = "[\u2801-\u28ff][\u2800-\u28ff]*+|\u2800++(?=[\u2801-\u28ff])"
_PASSED_OR_HIDDEN = re.compile(f"(?:{_FLAG}|{_BRAILLE})|(?P<hidden>\u2800++|{HIDDEN.pattern})")
_EMOJI = re.compile("[\u00a9\u00ae\u203c\u2049\u2100-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]")
# The characters that Unicode gives a picture and a plain form, chosen by U+FE0E and U+FE0F, with the blocks of arrows,
# symbols and dingbats that they are in: authors put the selector after their neighbours, too.
_PICTURE = re.compile(
    "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff"
    "\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)
# The other such characters: with the selector and U+20E3 they are a keycap, without it they are digits.
_KEYCAP = re.compile("[0-9#*]")
_HIEROGLYPH = re.compile("[\U00013000-\U0001342f\U00013440-\U000143ff]")
# Scripts whose spelling needs the zero-width joiner and non-joiner: Arabic, Syriac, the Indic family, Mongolian.
_JOINING = re.compile("[\u0600-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u18af\ufb50-\ufdff\ufe70-\ufefc]")
_IDEOGRAPH = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")


def find_dishonest(text: str) -> Iterator[re.Match[str]]:
    """Yield each character of the text that hides and has no honest reason to be where it is."""
    for match in _PASSED_OR_HIDDEN.finditer(text):
        if match["hidden"] is None:
            continue
        if match[0][0] == "\u2800":
            yield from HIDDEN.finditer(text, match.start(), match.end())
        elif not _is_honest(text, match.start()):
            yield match


def _is_honest(text: str, at: int) -> bool:
    char = text[at]
    if not _SOMETIMES_HONEST.match(char):
        return False

    before = text[at - 1 : at]
    after = text[at + 1 : at + 2]
    is_last = not after
    if char == "\u200d" and before == "\ufe0f" and _is_honest(text, at - 1):
        before = text[at - 2]
    # A hidden neighbour is not a reason to hide: the marks of direction have a direction themselves.
    if HIDDEN.match(before):
        before = ""
    if HIDDEN.match(after):
        after = ""

    if char in "\ufe0e\ufe0f":  # choose the picture or the plain form of a symbol
        is_keycap = bool(_KEYCAP.match(before)) and after == "\u20e3"
        return is_keycap or bool(_PICTURE.match(before))
    if char == "\u200d" and _EMOJI.match(before):
        return bool(_EMOJI.match(after))
    if char in "\u200c\u200d":
        return bool(_JOINING.match(before)) and (is_last or bool(_JOINING.match(after)) or after.isspace())
    if char in "\u200e\u200f\u061c":  # marks of direction
        return _reads_leftwards(text[max(0, at - 8) : at][::-1]) or _reads_leftwards(text[at + 1 : at + 9])
    if "\ufe00" <= char <= "\ufe0d" or "\U000e0100" <= char <= "\U000e01ef":
        return bool(_IDEOGRAPH.match(before))
    if "\U00013430" <= char <= "\U0001343f":
        return bool(_HIEROGLYPH.match(before))
    return "\u180b" <= char <= "\u180f" and "\u1820" <= before <= "\u18aa"


def _reads_leftwards(side: str) -> bool:
    """Return whether the nearest character with a direction belongs to a script written from right to left.

    `side` is the text on one side of a mark, nearest first. Only the mark's own line counts, so that a text can be
    judged line by line.
    """
    for char in side.partition("\n")[0]:
        if HIDDEN.match(char):
            return False
        direction = unicodedata.bidirectional(char)
        if direction in ("", "L"):
            return False
        if direction in ("R", "AL", "AN"):
            return True
    return False
