"""Cut text into the words that the index knows.

`fillForms`, `fill-forms` and `fill_forms` have the same words. Endings are cut, so that `deploys` finds `deploying`.
Chinese, Japanese and Korean have no spaces between words: each pair of neighbouring characters counts as a word.

A word consists of letters and digits alone, so a string of words with spaces between them is safe for every engine.
"""

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from skillshelf.search._limits import MAX_WORD

_RUN = re.compile(r"[^\W_]+")
_NO_RUN = str.maketrans({chr(code): " " for code in range(128) if not chr(code).isalnum()})
_UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
_UNSPACED_RUN = re.compile(f"([{_UNSPACED}]+)")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\x00-\x7f]+")
_PLURAL_OF_CAPITALS = re.compile("[A-Z]{2,}s")
"""`PDFs` is a form of `PDF`, not camelCase."""
_STOP_WORDS = frozenset(
    "a an and are as at be but by can do for from have how i in into is it its me my no not of on or our please so "
    "that the their them then there these this to use was we what when which will with would you your".split()
)
_PIECE = 200
"""Characters that are normalized at once. The time grows with the square of the accents that stand together."""
_MAX_GROWTH = 3
"""How much longer normalizing may make a piece. Honest text hardly grows, but U+FDFA becomes 18 characters."""
_MAX_CACHED_RUNS = 100_000


class QueryWord(NamedTuple):
    word: str
    spelling: str
    """As the query has it, in lower case."""


def join_words(text: str) -> str:
    """Return the words of a text in order, with spaces between them, without endings and words that every text has."""
    return " ".join(filter(None, map(_cached_runs.__getitem__, _find_runs(text))))


def split_words(text: str) -> list[str]:
    """Return the words of a text as `join_words` does, in a list."""
    return join_words(text).split()


def split_query(text: str) -> list[QueryWord]:
    """Return the words of a text as `split_words` does, each with its spelling in the text."""
    return [QueryWord(cut_ending(part), part) for run in _find_runs(text) for part in _split_run(run)]


def spell_words(text: str) -> list[str]:
    """Return the words that a search for this text looks for, each once and as the text spells it."""
    spellings: dict[str, str] = {}
    for word, spelling in split_query(text):
        spellings.setdefault(word, spelling)
    return list(spellings.values())


def is_unspaced(text: str) -> bool:
    """Return whether the text has characters of a script that is written without spaces."""
    return not text.isascii() and _UNSPACED_RUN.search(text) is not None


def _find_runs(text: str) -> Sequence[str]:
    """Return the letters and digits that stand together, as the text has them."""
    if text.isascii():
        return text.translate(_NO_RUN).split()  # four times as fast as the regular expression
    runs: list[str] = []
    for line in text.splitlines():  # most lines of a text with a few other characters are ASCII
        runs += line.translate(_NO_RUN).split() if line.isascii() else _RUN.findall(_remove_disguise(line))
    return runs


def _remove_disguise(text: str) -> str:
    """Take out characters that no reader sees, and turn look-alikes such as full-width letters into plain ones."""
    from skillshelf.text.hidden import HIDDEN  # compiling its patterns takes 5 ms, which text in ASCII never pays

    visible = HIDDEN.sub("", text)
    pieces = [visible[at : at + _PIECE] for at in range(0, len(visible), _PIECE)]
    return "".join(unicodedata.normalize("NFKC", piece)[: _MAX_GROWTH * _PIECE] for piece in pieces)


class _RunCache(dict[str, str]):
    """The words of each run, joined. A collection repeats its words: this makes an index build three times as fast."""

    def __missing__(self, run: str) -> str:
        if len(self) >= _MAX_CACHED_RUNS:
            self.clear()
        words = self[run] = " ".join(map(cut_ending, _split_run(run)))
        return words


_cached_runs = _RunCache()


def _split_run(run: str) -> list[str]:
    """Return the words of letters and digits that stand together, with their endings."""
    if run.isascii():
        return _split_spaced(run)
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
    return words


def _split_spaced(run: str) -> list[str]:
    """Return the parts of a camelCase word and the word itself, or the one word."""
    parts = [run.lower()]
    if not _is_one_word(run):
        parts = [part.lower() for part in _PART.findall(run)]
        if len(parts) > 1:
            parts.append(run.lower())
    return [part for part in parts if part not in _STOP_WORDS]


def _is_one_word(run: str) -> bool:
    if run.islower() or _PLURAL_OF_CAPITALS.fullmatch(run):
        return True
    return not run.isascii() and run[1:].islower()


def cut_ending(word: str) -> str:
    """Return the part of an English word that its forms have in common."""
    word = word[:MAX_WORD]
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
