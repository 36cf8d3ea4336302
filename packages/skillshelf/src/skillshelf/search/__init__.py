"""Find the skills, or the passages of other texts, that fit a request: words, word pairs, similarity of meaning."""

from skillshelf.search._index import find_index_file
from skillshelf.search._overlap import ContestedPhrase, Overlap, OverlapReport, Phrase, find_overlaps, list_phrases
from skillshelf.search._ranking import WEAK_SCORE, WEIGHTS, Weights, show_score
from skillshelf.search._search import FoundWord, Match, SkillSearch
from skillshelf.search._similarity import embed_texts, is_similarity_installed
from skillshelf.search._texts import SearchText, TextMatch, TextSearch
from skillshelf.search._words import spell_words, split_words

__all__ = [
    "WEAK_SCORE",
    "WEIGHTS",
    "ContestedPhrase",
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
    "find_index_file",
    "find_overlaps",
    "is_similarity_installed",
    "list_phrases",
    "show_score",
    "spell_words",
    "split_words",
]
