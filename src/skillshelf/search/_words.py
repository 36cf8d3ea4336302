"""Cut text into the words that the index knows.

`fillForms`, `fill-forms` and `fill_forms` have the same words. Endings are cut, so that `deploys` finds `deploying`.
Chinese, Japanese and Korean have no spaces between words: each pair of neighbouring characters counts as a word.
"""

import re
import unicodedata
import zlib
from functools import lru_cache

_RUN = re.compile(r"[^\W_]+")
_UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
_UNSPACED_RUN = re.compile(f"([{_UNSPACED}]+)")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\x00-\x7f]+")
_STOP_WORDS = frozenset(
    "a an and are as at be but by can do for from have how i in into is it its me my no not of on or our please so "
    "that the their them then there these this to use was we what when which will with would you your".split()
)
_LONGEST_WORD = 40
"""A longer run is data, not a word: only its beginning is kept."""


def split_words(text: str) -> list[str]:
    """Return the words of a text in order, without endings and without words that every text has."""
    if not text.isascii():
        text = _remove_disguise(text)
    words: list[str] = []
    for run in _RUN.findall(text):
        words += _split_run(run)
    return words


def split_keys(text: str) -> list[int]:
    """Return the words of a text as the numbers that the index knows them by."""
    if not text.isascii():
        text = _remove_disguise(text)
    keys: list[int] = []
    for run in _RUN.findall(text):
        keys += _hash_run(run)
    return keys


@lru_cache(maxsize=65_536)
def hash_word(word: str) -> int:
    """Return a number of 32 bits for a word, the same in every process."""
    return zlib.crc32(word.encode("utf-8", "surrogatepass"))


def split_query(text: str) -> list[tuple[str, str]]:
    """Return the words of a text as `split_words` does, each with its spelling in the text."""
    if not text.isascii():
        text = _remove_disguise(text)
    words: list[tuple[str, str]] = []
    for run in _RUN.findall(text):
        parts = _split_run(run)
        words += [(part, run.lower() if len(parts) == 1 else part) for part in parts]
    return words


def spell_words(text: str) -> list[str]:
    """Return the words that a search for this text looks for, each once and as the text spells it."""
    spellings: dict[str, str] = {}
    for word, spelling in split_query(text):
        spellings.setdefault(word, spelling)
    return list(spellings.values())


def is_unspaced(text: str) -> bool:
    """Return whether the text has characters of a script that is written without spaces."""
    return not text.isascii() and _UNSPACED_RUN.search(text) is not None


def _remove_disguise(text: str) -> str:
    """Take out characters that no reader sees, and turn look-alikes such as full-width letters into plain ones."""
    from skillshelf.hidden import HIDDEN  # compiling its patterns takes 5 ms, which text in ASCII never pays

    return unicodedata.normalize("NFKC", HIDDEN.sub("", text))


# A collection repeats its words: with these caches, building an index is three times as fast.
@lru_cache(maxsize=65_536)
def _hash_run(run: str) -> tuple[int, ...]:
    return tuple(map(hash_word, _split_run(run)))


@lru_cache(maxsize=4_096)
def _split_run(run: str) -> tuple[str, ...]:
    """Return the words of letters and digits that stand together."""
    if run.isascii():
        return tuple(_split_spaced(run))
    words: list[str] = []
    for piece in _UNSPACED_RUN.split(run):
        if not piece:
            continue
        if not _UNSPACED_RUN.match(piece):
            words += _split_spaced(piece)
        elif len(piece) == 1:
            words.append(piece)
        else:
            words += [piece[at : at + 2] for at in range(len(piece) - 1)]
    return tuple(words)


def _split_spaced(run: str) -> list[str]:
    """Return the parts of a camelCase word and the word itself, or the one word."""
    parts = [run.lower()]
    if not run.islower():
        parts = [part.lower() for part in _PART.findall(run)]
        if len(parts) > 1:
            parts.append(run.lower())
    return [cut_ending(part[:_LONGEST_WORD]) for part in parts if part not in _STOP_WORDS]


def cut_ending(word: str) -> str:
    """Return the part of an English word that its forms have in common."""
    length = len(word)
    if length > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if length > 5 and word.endswith("ing"):
        return _undouble(word[:-3])
    if length > 4 and word.endswith("ed"):
        return _undouble(word[:-2])
    if length > 4 and word.endswith("es") and word[-3] in "sxzh":
        return word[:-2]
    if length > 3 and word.endswith("s") and not word.endswith(("ss", "us")):
        word = word[:-1]
    if len(word) > 4 and word.endswith("e"):
        return word[:-1]
    return word


def _undouble(word: str) -> str:
    """Return `plan` for `plann`."""
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "ls":
        return word[:-1]
    return word


def spell_variants(word: str) -> set[str]:
    """Return every word that is one typo away: a letter left out, added, changed, or swapped with the next."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    variants: set[str] = set()
    for at in range(len(word) + 1):
        head = word[:at]
        tail = word[at:]
        variants.update(head + letter + tail for letter in letters)
        if tail:
            variants.add(head + tail[1:])
            variants.update(head + letter + tail[1:] for letter in letters)
        if len(tail) > 1:
            variants.add(head + tail[1] + tail[0] + tail[2:])
    variants.discard(word)
    return variants
