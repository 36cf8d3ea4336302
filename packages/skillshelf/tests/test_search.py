"""Search: words in their fields, spelling, other scripts, copies, hostile text, reasons, and changes of the shelf."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillshelf import MemorySource, Shelf
from skillshelf.search import Match, SkillSearch, show_score, spell_words
from skillshelf.skills import Candidate

SKILLS = {
    "pdf-forms": "Fill in PDF forms and flatten them.",
    "deploy-site": "Deploy the web site, with rollback.",
    "platform-notes": "Notes on the platform team's habits.",
    "invoices": "Create invoices as PDF for customers.",
    "归档": "将扫描件转换为文本。",
}
TOPICS = ("weight", "size", "sender", "address", "stamp", "label", "route", "customs", "price", "insurance", "return")


def skill(name: str, description: str, body: str = "") -> str:
    return f"---\nname: {name}\ndescription: {description}\n---\n{body}"


def make_shelf(skills: dict[str, str], **bodies: str) -> Shelf:
    return Shelf([MemorySource({name: skill(name, text, bodies.get(name, "")) for name, text in skills.items()})])


def names(matches: list[Match]) -> list[str]:
    return [match.name for match in matches]


def search_words(shelf: Shelf, query: str, limit: int = 5) -> list[Match]:
    """Search without similarity of meaning, as a shelf does without the extra."""

    def read(candidate: Candidate) -> str:
        return shelf.sources[candidate.place.source].instructions(candidate.place.key, candidate.descriptor)

    return SkillSearch(read, with_similarity=False).search(shelf.catalog, query, limit)


@pytest.fixture(scope="module")
def shelf() -> Shelf:
    return make_shelf(SKILLS)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("pdf", ["pdf-forms", "invoices"]),
        ("deploying sites", ["deploy-site"]),
        ("deploySite", ["deploy-site"]),
        ("deploy_site", ["deploy-site"]),
        ("form", ["pdf-forms"]),
        ("customers", ["invoices"]),
        ("扫描", ["归档"]),
        ("the of and", []),
        ("xylophone", []),
        ("", []),
    ],
)
def test_words_find_skills_best_first(shelf: Shelf, query: str, expected: list[str]) -> None:
    """A name counts more than a description, forms of a word match, and `form` is not found in `platform`."""
    assert names(search_words(shelf, query)) == expected


def test_words_in_the_instructions_are_found() -> None:
    """A search reads the whole skill, not only its card."""
    shelf = make_shelf({"office": "Paperwork.", "garden": "Plants."}, office="# Stamps\n\nFrank each envelope.\n")
    assert names(search_words(shelf, "envelope")) == ["office"]
    assert [str(word) for word in search_words(shelf, "envelope")[0].words] == ["envelope in instructions"]


@pytest.mark.parametrize("typo", ["invocies", "invoces", "invoicess", "invoixes"])
def test_one_typo_in_a_long_word_is_forgiven(shelf: Shelf, typo: str) -> None:
    """The reason says how the word was read."""
    match = search_words(shelf, typo)[0]
    assert match.name == "invoices"
    assert match.words[0].corrected == "invoic"
    assert match.words[0].word == typo


def test_a_match_says_why(shelf: Shelf) -> None:
    """It names each word that was found and its field."""
    assert shelf.search("site rollback")[0].why[:2] == ("site in name", "rollback in description")
    match = search_words(shelf, "pdf forms")[0]
    assert match.why == ("pdf in name", "forms in name")
    assert sum(word.share for word in match.words) == pytest.approx(1, abs=0.01)
    assert 0 <= match.next_score < match.score <= 1


def test_the_limit_holds(shelf: Shelf) -> None:
    """Only the best matches are returned, and the last one still has the score of the next."""
    matches = search_words(shelf, "pdf", limit=1)
    assert names(matches) == ["pdf-forms"]
    assert matches[0].next_score > 0
    assert search_words(shelf, "pdf", limit=0) == []


def test_a_description_is_searched_as_far_as_it_is_shown() -> None:
    """Nothing behind the first 1,024 characters counts."""
    shelf = make_shelf({"a": f"Early {'xab' * 15_000} late"})
    assert [len(search_words(shelf, word)) for word in ("early", "late")] == [1, 0]


# -- copies -----------------------------------------------------------------------------------------------------------

BODY = "\n".join(
    f"Step {word}: look at the {word} and write down its {word}." for word in "ink paper seal date".split()
)


def test_copies_are_folded_into_the_best_of_them() -> None:
    """A copy under another name is named, and takes no place of its own."""
    descriptions = {"letters": "Write formal letters.", "letters-2": "Write formal letters.", "memos": "Write memos."}
    shelf = make_shelf(descriptions, **{"letters": BODY, "letters-2": BODY})
    matches = search_words(shelf, "formal letters")
    assert names(matches) == ["letters"]
    assert matches[0].copies == ("letters-2",)


def test_a_changed_copy_does_not_make_a_skill_less_likely() -> None:
    """A fork of the right skill is not another answer to the request."""
    lines = [f"Step {number}: check the {topic} of the parcel." for number, topic in enumerate(TOPICS)]
    skills = {name: f"Handles {name}." for name in ("letters", "invoices", "contracts", "meetings", "weather", "music")}
    skills["parcels"] = "Track parcels and tell where they are."
    body = "\n".join(lines)
    alone = make_shelf(skills, parcels=body)
    changed = "\n".join(lines[4:])
    forked = make_shelf(skills | {"shipments": skills["parcels"]}, parcels=body, shipments=changed)

    score = search_words(alone, "where are my parcels")[0].score
    match = search_words(forked, "where are my parcels")[0]
    assert match.name == "parcels"
    assert match.score > 0.8 * score


def test_words_that_a_skill_says_it_is_not_for_count_against_it() -> None:
    """The match names them."""
    shelf = make_shelf(
        {
            "bikes": "Repair bikes and their chains. Do not use for cars.",
            "garage": "Repair cars.",
            "letters": "Write letters.",
        }
    )
    best, *others = shelf.search("repair cars", min_score=0)
    assert best.name == "garage"
    assert best.excluded_words == ()
    [bikes] = [match for match in others if match.name == "bikes"]
    assert bikes.excluded_words == ("cars",)
    assert bikes.why[-1] == "says it is not for cars"


def test_a_skill_is_found_by_its_name_whatever_it_says_it_is_not_for() -> None:
    """An exclusion often repeats what the skill is about."""
    shelf = make_shelf(
        {
            **SKILLS,
            "reverse-engineer": "Draw plans of an object in a photo. Do not use for reverse engineering of software.",
        }
    )
    assert names(search_words(shelf, "reverse engineer this")) == ["reverse-engineer"]


@pytest.mark.parametrize(
    ("query", "spellings"),
    [
        ("hotWire", ["hot", "wire", "hotwire"]),
        ("appStores", ["app", "stores", "appstores"]),
        ("merge PDFs", ["merge", "pdfs"]),
        ("Prüfung der Größe", ["prüfung", "der", "größe"]),
        ("Código", ["código"]),
    ],
)
def test_words_are_shown_as_the_query_spells_them(query: str, spellings: list[str]) -> None:
    """Neither endings nor letters with accents are cut off, and the plural of an acronym is one word."""
    assert spell_words(query) == spellings


# -- hostile text -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "stuffing",
    [
        "invoices " * 100,
        "pdf invoice customer bill payment forms deploy site rollback notes platform team " * 12,
    ],
)
def test_stuffed_keywords_do_not_win(stuffing: str) -> None:
    """Repeated words hardly count, and a word counts less among many others."""
    shelf = make_shelf({**SKILLS, "bait": stuffing})
    for query, expected in [("create pdf invoices for customers", "invoices"), ("fill in a pdf form", "pdf-forms")]:
        assert names(search_words(shelf, query))[0] == expected
    assert names(search_words(shelf, "deploy the web site"))[0] == "deploy-site"


def test_hidden_characters_change_nothing() -> None:
    """A word with an invisible character in it is the word that a reader sees."""
    shelf = make_shelf({**SKILLS, "hidden": "Tools."}, hidden="Sharpen k\u200bni\u00adves and \uff53cissors.")
    assert names(search_words(shelf, "sharpen knives")) == ["hidden"]
    assert names(search_words(shelf, "kni\u2060ves")) == ["hidden"]
    assert names(search_words(shelf, "scissors")) == ["hidden"]


@settings(max_examples=50, deadline=None)
@given(query=st.text(max_size=200))
def test_any_text_is_a_query(shelf: Shelf, query: str) -> None:
    """Scores lie between 0 and 1 and fall from match to match."""
    scores = [match.score for match in shelf.search(query)]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


# -- changes ----------------------------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(changes=st.lists(st.tuples(st.sampled_from(sorted(SKILLS)), st.sampled_from([*SKILLS.values(), None]))))
def test_after_changes_a_search_finds_the_same_as_on_a_new_shelf(changes: list[tuple[str, str | None]]) -> None:
    """Whatever was added, changed or removed, and searched in between."""
    source = MemorySource()
    shelf = Shelf([source])
    for name, description in changes:
        if description is None:
            if name in shelf.catalog:
                source.remove(name)
        else:
            source.put(name, skill(name, description))
        shelf.reload()
        shelf.search("pdf")

    fresh = Shelf([MemorySource({name: skill(name, shelf.catalog[name].description) for name in shelf.catalog})])
    for query in ("pdf forms", "deploy", "notes for customers", "文本"):
        found = {match.name: match.descriptor.description for match in shelf.search(query)}
        assert found == {match.name: match.descriptor.description for match in fresh.search(query)}


def test_only_changed_skills_are_read_again() -> None:
    """A reload that changes one of many skills reads no other."""
    source = MemorySource({f"skill-{number}": skill(f"skill-{number}", "Paint.") for number in range(50)})
    shelf = Shelf([source])
    read: list[str] = []

    def count(candidate: Candidate) -> str:
        read.append(candidate.place.key)
        return source.instructions(candidate.place.key, candidate.descriptor)

    search = SkillSearch(count)
    search.search(shelf.catalog, "paint")
    assert len(read) == 50
    source.put("skill-7", skill("skill-7", "Draw with ink."))
    shelf.reload()
    assert names(search.search(shelf.catalog, "draw"))[0] == "skill-7"
    assert set(read[50:]) == {"skill-7"}


def test_preparing_announces_how_many_skills_will_be_indexed() -> None:
    """Nothing is announced if the index is up to date."""
    source = MemorySource({name: skill(name, description) for name, description in SKILLS.items()})
    shelf = Shelf([source])
    announced: list[int] = []
    shelf.prepare_search(announced.append)
    shelf.prepare_search(announced.append)
    assert announced == [len(SKILLS)]

    source.put("invoices", skill("invoices", "Bill customers."))
    shelf.reload()
    shelf.prepare_search(announced.append)
    assert announced == [len(SKILLS), 1]


def test_skills_for_the_user_alone_are_left_out() -> None:
    """`disclosure: manual` hides a skill from search."""
    hidden = "---\nname: secret\ndescription: Paint walls.\ndisclosure: manual\n---\n"
    assert Shelf([MemorySource({"secret": hidden})]).search("paint walls") == []


# -- similarity of meaning --------------------------------------------------------------------------------------------


def test_similar_meanings_find_skills_without_a_common_word() -> None:
    """The match says how much of its score that is."""
    pytest.importorskip("wordllama")
    shelf = make_shelf({"physician": "Medical advice for patients in hospital.", "garage": "Repair engines of cars."})
    match = shelf.search("doctor")[0]
    assert match.name == "physician"
    assert match.similarity_share == 1
    assert match.why == ("similar meaning alone",)
    assert search_words(shelf, "doctor") == []


@pytest.mark.parametrize(
    ("query", "is_clear"),
    [
        ("haiku", True),
        ("seventeen syllables", True),
        ("syllables", False),
        ("count them on paper", False),
        ("count on paper with pencil lines", True),
    ],
)
def test_a_match_is_clear_by_one_word_of_the_name_two_of_the_description_or_four_of_the_text(
    query: str, is_clear: bool
) -> None:
    text = "---\nname: haiku\ndescription: Poems of seventeen syllables.\n---\nCount with pencil lines on paper.\n"
    other = "---\nname: tax\ndescription: Returns for the office.\n---\nAdd the numbers.\n"
    match = Shelf([MemorySource({"haiku": text, "tax": other})]).search(query)[0]
    assert match.name == "haiku"
    assert match.is_clear == is_clear


@pytest.mark.parametrize("query", ["quantum physics", "bake a chocolate cake"])
def test_a_request_about_something_else_has_weak_matches_on_a_tiny_shelf(query: str) -> None:
    """The least bad of two skills is not an answer."""
    shelf = make_shelf({"pdf": "Fill in PDF forms.", "deploy": "Ship the site to production."})
    assert all(match.is_weak for match in shelf.search(query))


def test_a_weak_score_is_not_rounded_up() -> None:
    """A reader is not told that 0.08 is weak and is not."""
    assert [show_score(score) for score in (0.0, 0.0768, 0.08, 0.949, 1.0)] == ["0.00", "0.07", "0.08", "0.95", "1.00"]
