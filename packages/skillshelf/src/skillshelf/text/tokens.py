"""Count the tokens of a text: an estimate that needs nothing, or the exact number with the extra `tokens`."""

from collections.abc import Callable, Mapping
from typing import Any

from skillshelf.errors import MissingExtraError

Counter = Callable[[str], int]
"""`estimate`, `count`, or a function of the host's own."""

DEFAULT_BUDGET = 4000
"""The most tokens of a listing, unless the caller says otherwise."""

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


def _make_table() -> bytes:
    """Return the price of each byte, as a table for `bytes.translate`."""
    table = bytearray(256)
    for first, last, price in PRICES:
        table[first : last + 1] = bytes([price]) * (last - first + 1)
    return bytes(table)


_TABLE = _make_table()
_RUN = _TABLE[0:1] * RUN
_MERGED = sum(_RUN) - _RUN[0]


def estimate(text: str) -> int:
    """Return about as many tokens as the o200k tokenizer counts. docs/reference/tokens.md has the measured error."""
    if not text:
        return 0

    priced = text.encode("utf-8", "surrogatepass").translate(_TABLE)
    units = sum(priced) - priced.count(_RUN) * _MERGED
    return max(1, (units + UNIT // 2) // UNIT)


def count_tool(name: str, description: str, parameters: Mapping[str, Any], counter: Counter = estimate) -> int:
    """Return the tokens of a tool's definition, which is part of every call."""
    import json  # only if needed: `import skillshelf` is to be quick

    definition = {"name": name, "description": description, "parameters": parameters}
    return counter(json.dumps(definition, ensure_ascii=False))


def count(text: str) -> int:
    """Return exactly as many tokens as the o200k tokenizer counts. Raises MissingExtraError without rs-bpe.

    rs-bpe takes linear time even for a megabyte without a space, so long texts need not be split first.
    """
    try:
        import rs_bpe.bpe
    except ImportError as error:
        raise MissingExtraError("Exact token counts", "tokens") from error
    encoder = rs_bpe.bpe.openai.o200k_base()  # loaded on the first call and kept by rs_bpe
    try:
        return int(encoder.count(text))
    except UnicodeEncodeError:  # a lone surrogate has no UTF-8 form; count the "?" that replaces it
        return int(encoder.count(text.encode("utf-8", "replace").decode()))
