"""Find the skills that fit a request: words in their fields, word pairs, and similarity of meaning."""

from skillshelf.search._engine import (
    MIN_SCORE,
    MIN_SCORE_IN_WORDS,
    UNSPACED_WEIGHTS,
    WEIGHTS,
    SkillSearch,
    Weights,
    find_threshold,
)
from skillshelf.search._match import FoundWord, Match
from skillshelf.search._overlap import ContestedPhrase, Overlap, OverlapReport, Phrase, find_overlaps, list_phrases
from skillshelf.search._similarity import is_similarity_installed
from skillshelf.search._words import spell_words, split_words

__all__ = [
    "MIN_SCORE",
    "MIN_SCORE_IN_WORDS",
    "UNSPACED_WEIGHTS",
    "WEIGHTS",
    "ContestedPhrase",
    "FoundWord",
    "Match",
    "Overlap",
    "OverlapReport",
    "Phrase",
    "SkillSearch",
    "Weights",
    "find_overlaps",
    "find_threshold",
    "is_similarity_installed",
    "list_phrases",
    "spell_words",
    "split_words",
]
