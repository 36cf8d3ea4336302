"""Find the skills, or the passages of other texts, that fit a request: words, word pairs, similarity of meaning."""

from skillshelf.search._engine import EngineName
from skillshelf.search._match import FoundWord, Match
from skillshelf.search._overlap import ContestedPhrase, Overlap, OverlapReport, Phrase, find_overlaps, list_phrases
from skillshelf.search._ranking import MIN_SCORE, UNSPACED_WEIGHTS, WEIGHTS, Weights, show_score
from skillshelf.search._search import SkillSearch
from skillshelf.search._similarity import embed_texts, is_similarity_installed
from skillshelf.search._store import find_index_folder
from skillshelf.search._texts import SearchText, TextMatch, TextSearch
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
    "SearchText",
    "SkillSearch",
    "TextMatch",
    "TextSearch",
    "Weights",
    "embed_texts",
    "find_index_folder",
    "find_overlaps",
    "is_similarity_installed",
    "list_phrases",
    "show_score",
    "spell_words",
    "split_words",
]
