"""Names that are near each other: for suggestions, and for names made to be mistaken."""

import unicodedata
from collections.abc import Iterable

# Letters of other scripts that look like a Latin one, as far as skill names go.
_LOOKALIKES = str.maketrans(
    "аеорсхуіѕјһԁԛԝɡɩѵкмтвнοαρτυνικεγωℓ０１２３４５６７８９–—−‐‑_",
    "aeopcxyisjhdqwgivkmtbhoaptuvikeywl0123456789------",
)
_MOST = 2_000
# So few are all compared; of more, only those that begin alike or share a word.
_FEW = 200


def skeleton(name: str) -> str:
    """What a name looks like: equal for names that a reader would take for one another."""
    if name.isascii():
        return name.lower().replace("_", "-")
    return unicodedata.normalize("NFKC", name).casefold().translate(_LOOKALIKES)


def closest(name: str, names: Iterable[str]) -> tuple[str, ...]:
    """Up to three names that were perhaps meant, best first."""
    import difflib  # 5 ms that only a mistake pays

    wanted = skeleton(name[:100]).rpartition("@")[0] or skeleton(name[:100])
    words = {word for word in wanted.split("-") if len(word) > 2}
    everything = list(names)
    near: list[str] = []
    for candidate in everything:
        look = skeleton(candidate)
        few = len(everything) <= _FEW
        if few or look[:2] == wanted[:2] or any(word in look for word in words) or wanted in look:
            near.append(candidate)
            if len(near) == _MOST:
                break
    return tuple(difflib.get_close_matches(name[:100], near, 3, 0.5))
