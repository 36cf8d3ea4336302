"""Test the search for close names."""

from hypothesis import given
from hypothesis import strategies as st

from skillshelf.text import closest_names, truncate, truncate_words


def test_suggests_the_best_names_first() -> None:
    assert closest_names("pdf-form", ["xlsx", "pdf", "pdf-forms"]) == ("pdf-forms", "pdf")


def test_ignores_case_and_the_kind_of_hyphen() -> None:
    assert closest_names("Allowed_Tools", ["allowed-tools", "license"]) == ("allowed-tools",)
    assert closest_names("max-tokens", ["max_tokens"], limit=1) == ("max_tokens",)


def test_suggests_every_spelling_that_looks_alike() -> None:
    assert closest_names("pdf-forms", ["pdf_forms", "PDF-forms"]) == ("pdf_forms", "PDF-forms")


def test_gives_at_most_as_many_names_as_asked_for() -> None:
    names = [f"report-{number}" for number in range(9)]
    assert len(closest_names("report", names)) == 3
    assert len(closest_names("report", names, limit=1)) == 1


def test_a_word_of_a_longer_name_finds_it() -> None:
    """People type what they remember; by letters alone, another name would be nearer."""
    names = ["latex-posters", "Flutter Riverpod State Management", "sql-review"]
    assert closest_names("flutter", names)[0] == "Flutter Riverpod State Management"
    assert closest_names("sql", names) == ("sql-review",)


def test_suggests_nothing_for_a_name_unlike_all_others() -> None:
    assert closest_names("zzz", ["pdf", "xlsx"]) == ()


def test_finds_a_near_name_among_ten_thousand() -> None:
    names = [f"skill-{number}" for number in range(10_000)]
    assert closest_names("pdf-form", [*names, "pdf-forms"]) == ("pdf-forms",)


@given(st.text(), st.integers(1, 30))
def test_clipped_text_is_never_longer_than_asked_for(text: str, length: int) -> None:
    """Text that fits is not changed; text that was cut says so."""
    clipped = truncate(text, length)
    assert len(clipped) <= length
    assert clipped == text if len(text) <= length else clipped.endswith("…")


def test_words_stay_whole_where_there_are_spaces() -> None:
    assert truncate_words("Review a migration before it runs.", 24) == "Review a migration…"
    assert truncate_words("Review a migration before it runs.", 34) == "Review a migration before it runs."
    assert truncate_words("审查迁移" * 9, 12) == "审查迁移" * 2 + "审查迁…"


@given(st.text("ab ", max_size=60), st.integers(2, 60))
def test_more_room_never_shows_fewer_words(text: str, length: int) -> None:
    less = truncate_words(text, length)
    assert len(less) <= length
    assert truncate_words(text, length + 1).startswith(less.removesuffix("…"))
