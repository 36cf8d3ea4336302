"""Plain word search."""

import pytest

from skillshelf import MemorySource, Shelf


@pytest.fixture(scope="module")
def shelf() -> Shelf:
    skills = {
        "pdf-forms": "Fill in PDF forms and flatten them.",
        "deploy-site": "Deploy the web site, with rollback.",
        "platform-notes": "Notes on the platform team's habits.",
        "invoices": "Create invoices as PDF for customers.",
        "归档": "将扫描件转换为文本。",
    }
    return Shelf(
        [MemorySource({name: f"---\nname: {name}\ndescription: {text}\n---\n" for name, text in skills.items()})]
    )


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("pdf", ["pdf-forms", "invoices"]),
        ("deploying sites", ["deploy-site"]),
        ("form", ["pdf-forms"]),
        ("customers", ["invoices"]),
        ("扫描", ["归档"]),
        ("the of and", []),
        ("", []),
    ],
)
def test_words_find_skills_best_first(shelf: Shelf, query: str, names: list[str]) -> None:
    """A name counts more than a description, forms of a word match, and `form` is not found in `platform`."""
    assert [match.descriptor.name for match in shelf.search(query)] == names


def test_a_match_says_why(shelf: Shelf) -> None:
    """It names each word that was found and its field."""
    assert shelf.search("site rollback")[0].why == ("site in name", "rollback in description")
    assert shelf.search("pdf forms")[0].why == ("pdf in name", "forms in name")


def test_the_limit_holds(shelf: Shelf) -> None:
    """Only the best matches are returned."""
    assert [match.descriptor.name for match in shelf.search("pdf", limit=1)] == ["pdf-forms"]


def test_a_description_is_searched_as_far_as_it_is_shown() -> None:
    """Tens of thousands of almost-matches cost no more than a long sentence."""
    text = "xab" * 15_000
    shelf = Shelf([MemorySource({"a": f"---\nname: a\ndescription: Early {text} late\n---\n"})])
    assert [len(shelf.search(word)) for word in ("early", "late", "ab b ba bx")] == [1, 0, 0]
