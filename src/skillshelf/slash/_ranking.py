"""Which of many names is meant: the bare name first, then words of the description.

Without a function for typos this finds what is spelled right. `skillshelf.agent.rank` brings one.
"""

import re
import string
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache

from skillshelf.descriptor import MAX_DESCRIPTION

LIMIT = 50
"""More than this nobody reads in a menu."""
_MAX_QUERY = 64
_EXACT, _PREFIX, _SPELLING, _WORD, _INSIDE, _NEAR, _ABOUT, _NEARLY_ABOUT = range(0, 80, 10)
_ALNUM = re.compile(r"[^\W_]+")
_TO_SPACES = str.maketrans(dict.fromkeys(string.punctuation + "\n\t“”‘’«»–—…·•", " "))

Near = Callable[[str, Sequence[str]], Mapping[int, int]]
"""The texts that begin almost like a query, by index, with the number of typos."""
Rank = Callable[[str, "Names"], list[int]]
"""The indexes of the names that fit a query, best first."""


class Names:
    """What is ranked, prepared once for many keys."""

    def __init__(self, names: Sequence[str], spellings: Sequence[str], about: Sequence[str]) -> None:
        self.names = [name.lower() for name in names]
        self.spellings = [spelling.lower() for spelling in spellings]
        self.about = about

    @cached_property
    def texts(self) -> list[str]:
        """The words of each name and description, with a space before each."""
        return [_spaced(name, about) for name, about in zip(self.names, self.about, strict=True)]

    @cached_property
    def beginnings(self) -> tuple[list[str], list[int]]:
        """Each name from each of its words on, and whose it is."""
        texts: list[str] = []
        owners: list[int] = []
        for at, name in enumerate(self.names):
            found = _from_each_word(name)
            texts += found
            owners += [at] * len(found)
        return texts, owners

    @cached_property
    def vocabulary(self) -> list[str]:
        """The words of all names and descriptions, each once."""
        return list(set("".join(self.texts).split()))


# A reload changes few of these.
@lru_cache(maxsize=4096)
def _from_each_word(name: str) -> tuple[str, ...]:
    return tuple(name[word.start() :] for word in _ALNUM.finditer(name))


@lru_cache(maxsize=4096)
def _spaced(name: str, about: str) -> str:
    return f" {name} {about[:MAX_DESCRIPTION].lower()}".translate(_TO_SPACES)


def rank(query: str, names: Names, limit: int = LIMIT, near: Near | None = None) -> list[int]:
    """The indexes of the names that fit a query, best first; all are in their own order for an empty one."""
    if len(query) > _MAX_QUERY:
        return []
    wanted = " ".join(query.lower().split())
    if not wanted:
        return list(range(min(limit, len(names.names))))
    tiers = _by_name(wanted, names)
    # Somebody who typed the beginning of a word right made no typo.
    if near and not any(tier <= _WORD for tier in tiers.values()):
        texts, owners = names.beginnings
        for at, typos in near(wanted, texts).items():
            tiers[owners[at]] = min(_NEAR + typos, tiers.get(owners[at], _ABOUT))
    if len(tiers) < limit and (len(wanted) > 1 or not wanted.isascii()):
        _add_described(wanted, names, tiers, near)
    return sorted(tiers, key=lambda at: (tiers[at], len(names.spellings[at]), at))[:limit]


def _by_name(wanted: str, names: Names) -> dict[int, int]:
    tiers: dict[int, int] = {}
    for at, (name, spelling) in enumerate(zip(names.names, names.spellings, strict=True)):
        where = name.find(wanted)
        if where == 0:
            tiers[at] = _EXACT if name == wanted else _PREFIX
        elif spelling.startswith(wanted):
            tiers[at] = _EXACT if spelling == wanted else _SPELLING
        elif where > 0 and not name[where - 1].isalnum():
            tiers[at] = _WORD
        elif where > 0 and len(wanted) > 1:
            tiers[at] = _INSIDE
    return tiers


def _add_described(wanted: str, names: Names, tiers: dict[int, int], near: Near | None) -> None:
    """Those that have every word of the query in their name or description, or else almost every letter of each."""
    words = [[word] for word in _ALNUM.findall(wanted)]
    for at in _having(words, names.texts):
        tiers.setdefault(at, _ABOUT)
    if near and not tiers:
        vocabulary = names.vocabulary
        meant = [[*word, *(vocabulary[at] for at in near(word[0], vocabulary))] for word in words]
        tiers.update(dict.fromkeys(_having(meant, names.texts), _NEARLY_ABOUT))


def _having(words: Sequence[Sequence[str]], texts: Sequence[str]) -> list[int]:
    """The texts in which, of every group of words, one begins a word."""
    found = list(range(len(texts))) if words else []
    for group in words:
        # Scripts that write without spaces have no beginnings of words to look for.
        begun = [f" {word}" if word.isascii() else word for word in group]
        if len(begun) == 1:
            found = [at for at in found if begun[0] in texts[at]]
        else:
            found = [at for at in found if any(word in texts[at] for word in begun)]
    return found
