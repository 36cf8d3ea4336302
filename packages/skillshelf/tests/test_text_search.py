"""The index for texts that are not skills."""

import math

import pytest

from skillshelf.search import SearchText, TextSearch, embed_texts

TEXTS = [
    SearchText("Refunds", "Customers get their money back within five working days."),
    SearchText("Deploying", "The site is deployed by the release robot every Tuesday at noon, after all tests passed."),
    SearchText("Holidays", "The office is closed between Christmas and New Year."),
]


def find(index: TextSearch, query: str, limit: int = 5) -> list[int]:
    return [match.id for match in index.search(query, limit)]


def test_texts_are_found_by_their_words_and_titles() -> None:
    """Endings and case do not matter."""
    index = TextSearch(with_similarity=False)
    refunds, deploying, holidays = index.change(added=TEXTS)
    assert find(index, "who deploys the SITE?") == [deploying]
    assert find(index, "refund") == [refunds]
    assert find(index, "closed at Christmas") == [holidays]
    assert find(index, "xylophone") == []
    assert find(index, "the of and") == []
    assert find(index, "site", limit=0) == []


def test_texts_can_be_changed() -> None:
    """A text that was taken out is not found any more, and an id is never used again."""
    index = TextSearch(with_similarity=False)
    first = index.change(added=TEXTS)
    (changed,) = index.change(removed=first[:1], added=[SearchText("Refunds", "Refunds take ten working days.")])
    assert changed not in first
    assert len(index) == 3
    assert find(index, "refunds working days") == [changed]
    index.change(removed=[changed, *first[1:]])
    assert find(index, "refunds") == []


def test_copies_are_folded() -> None:
    """The best of them stands for all."""
    index = TextSearch(with_similarity=False)
    text = TEXTS[1].text
    ids = index.change(added=[*TEXTS, SearchText("Deploying again", text), SearchText("Notes", f"{text} Really.")])
    (match,) = index.search("deploying by the release robot", 5)
    assert {match.id, *match.copies} == {ids[1], ids[3], ids[4]}


def test_meaning_counts_with_the_extra() -> None:
    """A question need not have the words of the text."""
    pytest.importorskip("wordllama", reason="the extra search is not installed")
    index = TextSearch()
    refunds, *_ = index.change(added=TEXTS)
    assert index.has_similarity
    assert find(index, "reimbursement of purchases by clients")[0] == refunds


def test_vectors_can_be_stored_elsewhere() -> None:
    """Each has 256 numbers and the length one."""
    pytest.importorskip("wordllama", reason="the extra search is not installed")
    vectors = embed_texts([text.text for text in TEXTS])
    assert [len(vector) for vector in vectors] == [256] * 3
    assert math.isclose(sum(number * number for number in vectors[0]), 1.0, abs_tol=1e-3)
