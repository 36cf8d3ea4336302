"""Untrusted text: decode it, reveal hidden characters, escape control sequences, truncate, compare names.

A skill, a path or an error may hold characters that a reader does not see but a model or a terminal obeys. Text on its
way to a model goes through `text_for_model`, text on its way to a terminal through `clean` or `clean_line`.
"""

import codecs
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

# Selectors and joiners of emoji and scripts, and the blank of braille patterns: they move nothing on a terminal.
_HARMLESS_ON_SCREEN = "\ufe0e\ufe0f\u200c\u200d\u2800"

# Letters of other scripts that look like a Latin one, as far as skill names go.
_LOOKALIKES = str.maketrans(
    "аеорсхуіѕјһԁԛԝɡɩѵкмтвнοαρτυνικεγωℓ０１２３４５６７８９–—−‐‑_",
    "aeopcxyisjhdqwgivkmtbhoaptuvikeywl0123456789------",
)

_COLOR = re.compile(r"\x1b\[[0-9;:]*m")
_MAX_COMPARED_LENGTH = 100
# Comparing a name takes some 20 µs. Up to this many are all compared; of more, only those that begin alike or share a
# word, and no more than the second number.
_ALWAYS_COMPARED = 200
_MAX_COMPARED = 2_000
_MIN_HIDDEN_VALUE = 4
"""Characters of the shortest value that `hide_values` hides. A shorter one is not a secret."""


def decode_text(data: bytes, *, is_whole: bool = True) -> str | None:
    """Return the data as text, or None if it is not UTF-8 or has a NUL byte.

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


def replace_surrogates(text: str) -> str:
    """Replace halves of characters, which a file name may have: neither sockets nor JSON parsers take them."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def to_json(value: Any, indent: int | None = None) -> str:
    """Return JSON in printable ASCII, which is safe to print. Values without a JSON form become text."""
    import json  # only if needed: `import skillshelf` is to be quick

    # DEL is the one control character that JSON leaves as it is.
    return json.dumps(value, indent=indent, default=str).replace("\x7f", "\\u007f")


# --- characters that hide ---


def find_hidden(text: str) -> Iterator[re.Match[str]]:
    """Yield each character of the text that hides and has no honest reason to be where it is."""
    if text.isascii():
        return iter(())

    from skillshelf.text.hidden import find_dishonest

    return find_dishonest(text)


def show_hidden(text: str) -> str:
    """Write out each hiding character as `<U+200B>`."""
    parts: list[str] = []
    last = 0
    for match in find_hidden(text):
        parts.append(text[last : match.start()])
        parts.append(_write_out(match))
        last = match.end()
    if not parts:
        return text
    return "".join((*parts, text[last:]))


def text_for_model(text: str) -> str:
    """Return text from a file as a model may read it: hidden characters written out, line endings as line feeds."""
    return show_hidden(unify_lines(text))


def quote_for_model(name: str) -> str:
    """Return a name or path on one line and in quotes, so that it cannot pass for instructions."""
    import json  # only if needed: `import skillshelf` is to be quick

    return json.dumps(clean_line(replace_surrogates(name)), ensure_ascii=False)


def show_controls(text: str) -> str:
    """Write out each control character except tab and newline as `<U+001B>`."""
    if text.isprintable():
        return text

    from skillshelf.text.hidden import CONTROL

    return CONTROL.sub(_write_out, text)


def clean(text: str) -> str:
    """Make text safe for a terminal. Every string from a skill, a path or an error passes through here first."""
    shown = show_controls(text)
    if shown.isascii():
        return shown

    from skillshelf.text.hidden import HIDDEN

    return HIDDEN.sub(lambda match: match[0] if match[0] in _HARMLESS_ON_SCREEN else _write_out(match), shown)


def clean_line(text: str) -> str:
    """Make text safe for a terminal, on one line."""
    if "\n" in text or "\t" in text:
        text = " ".join(text.split())
    return clean(text)


def _write_out(match: re.Match[str]) -> str:
    return f"<U+{ord(match[0]):04X}>"


# --- short texts for messages ---


def truncate(text: str, length: int) -> str:
    """Return at most `length` characters of a text, ending in `…` if some are missing.

    For a terminal, which counts in cells, use `rendering.truncate_cells`.
    """
    if len(text) <= length:
        return text
    return text[: length - 1].rstrip() + "…"


def truncate_words(text: str, length: int) -> str:
    """Return at most `length` characters of a text, ending in `…` after a whole word if some are missing.

    A word that fills more than half of the length is cut: there may be no spaces at all, as in Chinese.
    """
    if len(text) <= length:
        return text
    end = text.rfind(" ", length // 2, length)
    return truncate(text, length) if end < 0 else text[:end].rstrip() + "…"


def truncate_middle(text: str, length: int, hint: str = "") -> str:
    """Return the beginning and the end of a text, about `length` characters, and how many are missing between.

    `hint` says how to get them.
    """
    if len(text) <= length:
        return text
    half = max(1, length // 2)
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters are left out{hint} …]\n{text[-half:]}"


def count_noun(count: int, noun: str) -> str:
    """Return `1 skill` or `2 skills`."""
    if count == 1:
        return f"1 {noun}"
    return f"{count:,} {noun}s"


def list_names(names: Sequence[str], limit: int) -> str:
    """Join names with commas and count those beyond the limit: `a, b and 3 more`."""
    text = ", ".join(names[:limit])
    if len(names) > limit:
        text += f" and {len(names) - limit:,} more"
    return text


# --- names that are near each other ---


def skeleton(name: str) -> str:
    """Return how a name looks: equal for names that a reader would take for one another."""
    if name.isascii():
        return name.lower().replace("_", "-")
    return unicodedata.normalize("NFKC", name).casefold().translate(_LOOKALIKES)


def closest_names(name: str, names: Iterable[str], *, limit: int = 3, min_similarity: float = 0.5) -> tuple[str, ...]:
    """Return up to `limit` names that may have been meant, best first. Case, hyphens and underscores do not count."""
    import difflib  # takes 5 ms, which only a mistake pays

    wanted = skeleton(name[:_MAX_COMPARED_LENGTH])
    spellings: dict[str, list[str]] = {}
    for candidate in names:
        spellings.setdefault(skeleton(candidate), []).append(candidate)

    compared: Iterable[str] = spellings
    if len(spellings) > _ALWAYS_COMPARED:
        compared = _preselect(wanted, spellings)
    near = difflib.get_close_matches(wanted, compared, limit, min_similarity)
    containing = [look for look in compared if len(wanted) > 2 and wanted in look]
    best = dict.fromkeys([*sorted(containing, key=len), *near])
    return tuple(spelling for look in best for spelling in spellings[look])[:limit]


def _preselect(wanted: str, looks: Iterable[str]) -> list[str]:
    """Return the looks that begin like the wanted one, contain it, or share a word with it."""
    words = [word for word in wanted.split("-") if len(word) > 2]
    selected: list[str] = []
    for look in looks:
        if look[:2] == wanted[:2] or wanted in look or any(word in look for word in words):
            selected.append(look)
            if len(selected) == _MAX_COMPARED:
                break
    return selected


def without_colors(text: str) -> str:
    """Remove the sequences with which programs color their output. No other sequence is touched."""
    return _COLOR.sub("", text)


def hide_values(text: str, values: Mapping[str, str]) -> str:
    """Replace each value in a text by the name of its variable, the longest values first."""
    for name, value in sorted(values.items(), key=lambda item: -len(item[1])):
        if len(value) >= _MIN_HIDDEN_VALUE:
            text = text.replace(value, f"[{name}]")
    return text
