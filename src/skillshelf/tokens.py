"""How many tokens a text is: an estimate that needs nothing, and the exact count when the `tokens` extra is there."""

from collections.abc import Callable
from zlib import adler32

from skillshelf.errors import MissingExtraError

Counter = Callable[[str], int]
"""Either of the two functions below, or a host's own."""
DEFAULT_BUDGET = 4000
"""Tokens that a listing takes at most, unless the caller says otherwise."""

UNIT = 16
"""Prices are in sixteenths of a token: fine enough for the lowercase letter, the cheapest byte."""

# The price of a byte of UTF-8. The first byte of a character tells its script and pays for all of it.
# benchmarks/tokens_fit.py fits the prices to real skills and prints these lines.
PRICES = (
    (0x00, 0x7F, 12),  # spaces, punctuation, and every ASCII character without a line of its own
    (0x0A, 0x0A, 3),  # newline
    (0x0D, 0x0D, 1),  # carriage return
    (0x30, 0x39, 15),  # digits
    (0x41, 0x5A, 4),  # capitals
    (0x61, 0x7A, 1),  # lowercase letters
    (0x80, 0xC1, 0),  # the further bytes of a character
    (0xC2, 0xCA, 9),  # Latin with accents
    (0xCB, 0xCF, 4),  # Greek
    (0xD0, 0xD3, 2),  # Cyrillic
    (0xD4, 0xDF, 3),  # Hebrew, Arabic
    (0xE0, 0xE1, 4),  # Indic scripts, Thai, Vietnamese
    (0xE2, 0xE2, 6),  # dashes, quotes, arrows, boxes
    (0xE3, 0xE3, 13),  # kana
    (0xE4, 0xE9, 11),  # Chinese characters
    (0xEA, 0xED, 7),  # Hangul
    (0xEE, 0xEF, 18),  # full-width forms
    (0xF0, 0xFF, 27),  # emoji
)
# Indents, rules and brackets merge: this many spaces and marks in a row cost as much as one. Of 4 to 8, 6 fits best.
RUN = 6


def _table() -> bytes:
    table = bytearray(256)
    for first, last, price in PRICES:
        table[first : last + 1] = bytes([price]) * (last - first + 1)
    return bytes(table)


_TABLE = _table()
_RUN = _TABLE[0:1] * RUN
_MERGED = sum(_RUN) - _RUN[0]


def estimate(text: str) -> int:
    """About as many tokens as the o200k tokenizer makes of it: docs/reference/tokens.md has the measured error."""
    if not text:
        return 0
    priced = text.encode("utf-8", "surrogatepass").translate(_TABLE)
    # The low half of Adler-32 is the sum of the bytes modulo 65521, and the one way to it in the standard library that
    # takes a nanosecond per byte or less. A block of 4096 stays below: nothing costs more per byte than a digit.
    units = sum(adler32(priced[at : at + 4096], 0) & 0xFFFF for at in range(0, len(priced), 4096))
    return max(1, (units - priced.count(_RUN) * _MERGED + UNIT // 2) // UNIT)


def estimate_unread(size: int) -> int:
    """Return about how many tokens a text of this many bytes has, without reading it: four bytes make one in English.

    For lists of skills only. A menu has five milliseconds to answer a key press, in which it can't read fifty files.
    Anything that has the text uses `estimate`.
    """
    return size // 4


def count(text: str) -> int:
    """Exactly as many tokens as the o200k tokenizer makes of it. Raises MissingExtraError without rs-bpe.

    Linear even in a megabyte without a space, so nothing is cut up first.
    """
    try:
        import rs_bpe.bpe
    except ImportError as error:
        raise MissingExtraError("Exact token counts", "tokens") from error
    encoder = rs_bpe.bpe.openai.o200k_base()  # loaded on the first call and kept by rs_bpe
    try:
        return int(encoder.count(text))
    except UnicodeEncodeError:  # a lone surrogate has no UTF-8 form: counted as the "?" that takes its place
        return int(encoder.count(text.encode("utf-8", "replace").decode()))
