"""What a search is compared with: plain BM25, as textbooks have it."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

_WORD = re.compile(r"[a-z0-9]+|[\u3040-\u9fff]")
_K1 = 1.2
_B = 0.75


class PlainBM25:
    """BM25 over whole words in lower case, one character of Chinese or Japanese being a word."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._postings: dict[str, list[tuple[str, int]]] = defaultdict(list)
        self._lengths: dict[str, int] = {}
        for identifier, text in texts.items():
            words = _WORD.findall(text.lower())
            self._lengths[identifier] = len(words)
            for word, count in Counter(words).items():
                self._postings[word].append((identifier, count))
        self._mean = sum(self._lengths.values()) / max(1, len(self._lengths)) or 1.0

    def rank(self, query: str, limit: int) -> list[str]:
        scores: dict[str, float] = defaultdict(float)
        total = len(self._lengths)
        for word in set(_WORD.findall(query.lower())):
            postings = self._postings.get(word, [])
            rarity = math.log(1 + (total - len(postings) + 0.5) / (len(postings) + 0.5))
            for identifier, count in postings:
                damping = _K1 * (1 - _B + _B * self._lengths[identifier] / self._mean)
                scores[identifier] += rarity * count * (_K1 + 1) / (count + damping)
        return sorted(scores, key=lambda identifier: -scores[identifier])[:limit]


def join(skill: Mapping[str, str], fields: Iterable[str]) -> str:
    return " ".join(skill.get(field, "") for field in fields)
