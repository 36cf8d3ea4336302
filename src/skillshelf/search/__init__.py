"""Find the skills that fit a request: words in their fields, word pairs, and similarity of meaning."""

from skillshelf.search._engine import EngineName
from skillshelf.search._match import FoundWord, Match
from skillshelf.search._overlap import ContestedPhrase, Overlap, OverlapReport, Phrase, find_overlaps, list_phrases
from skillshelf.search._ranking import MIN_SCORE, UNSPACED_WEIGHTS, WEIGHTS, Weights
from skillshelf.search._search import SkillSearch
from skillshelf.search._similarity import is_similarity_installed
from skillshelf.search._store import find_index_folder
from skillshelf.search._words import spell_words, split_words

__all__ = [
    "MIN_SCORE",
    "UNSPACED_WEIGHTS",
    "WEIGHTS",
    "ContestedPhrase",
    "EngineName",
    "FoundWord",
    "Match",
    "Overlap",
    "OverlapReport",
    "Phrase",
    "SkillSearch",
    "Weights",
    "find_index_folder",
    "find_overlaps",
    "is_similarity_installed",
    "list_phrases",
    "spell_words",
    "split_words",
]
