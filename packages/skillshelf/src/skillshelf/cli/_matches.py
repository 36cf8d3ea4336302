"""What `search` and `why --for` print of a match: its score, and the words and the meaning that it comes from."""

from dataclasses import asdict
from typing import Any

from skillshelf.cli._output import Output
from skillshelf.cli._workspace import skill_as_json
from skillshelf.search import FoundWord, Match, is_similarity_installed, spell_words
from skillshelf.text import clean_line, list_names, truncate
from skillshelf.text.tables import Cell, Column, draw_bar

INSTALL_SIMILARITY = "pip install 'skillshelf[search]'"
_WORDS_ALONE = f"Only words were compared. {INSTALL_SIMILARITY} adds similarity of meaning."
_MAX_LISTED = 10
_MAX_WORD = 40
_BAR = 16


def print_score(match: Match, query: str, out: Output) -> None:
    """Print a table of the parts of a score, largest first, and the words of the query that the skill lacks."""
    columns = [Column("word"), Column("found in"), Column("rarity", right=True), Column("share", right=True)]
    rows: list[list[str | Cell]] = []
    shares: list[float] = []
    for word in sorted(match.words, key=lambda word: -word.share):
        rows.append([_spell(word), word.field, f"{word.rarity:.2f}", _format_share(word.share)])
        shares.append(word.share)
    if match.similarity_share:
        rows.append([Cell("similar meaning", "italic"), "", "", _format_share(match.similarity_share)])
        shares.append(match.similarity_share)

    if out.is_terminal:
        columns.append(Column("", style="green"))
        for row, share in zip(rows, shares, strict=True):
            row.append(draw_bar(share, _BAR))
    out.print_table(columns, rows, indent=3)

    missing = find_missing_words(match, query)
    if missing:
        out.print_styled(f"not found: {list_names(missing, _MAX_LISTED)}", "yellow", indent=3)
    if match.excluded_words:
        excluded = [truncate(clean_line(word), _MAX_WORD) for word in match.excluded_words]
        out.print_styled(f"says it is not for: {list_names(excluded, _MAX_LISTED)}", "yellow", indent=3)


def find_missing_words(match: Match, query: str) -> list[str]:
    """Return the words of the query that a skill does not have, as the query spells them."""
    found = {word.word for word in match.words}
    return [truncate(clean_line(word), _MAX_WORD) for word in spell_words(query) if word not in found]


def _spell(word: FoundWord) -> str:
    spelling = truncate(word.word, _MAX_WORD)
    if word.corrected:
        return f"{spelling} (read as {word.corrected})"
    return spelling


def _format_share(share: float) -> str:
    return f"{share:.0%}"


def note_words_alone(out: Output) -> None:
    """Say that search compares words alone if the extra for similarity is not installed."""
    if not is_similarity_installed():
        out.print_styled(_WORDS_ALONE, "dim")


def match_as_json(match: Match, query: str) -> dict[str, Any]:
    """Return a match and the reasons for its score, for another program."""
    return {
        "score": match.score,
        "is_weak": match.is_weak,
        "next_score": match.next_score,
        "reasons": list(match.why),
        "words": [asdict(word) for word in match.words],
        "missing_words": find_missing_words(match, query),
        "excluded_words": list(match.excluded_words),
        "similarity_share": match.similarity_share,
        "copies": list(match.copies),
        **skill_as_json(match.descriptor),
        "name": match.name,
    }
