"""Which skills a listing describes first for a message, and when that choice changes."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillshelf import MemorySource, Shelf
from skillshelf.listing import Listing
from skillshelf.shelf.routing import MAX_KEPT, MAX_LOADED, MAX_MATCHES, ROTATING, Route

SUBJECTS = ("invoice", "migration", "haiku", "kubernetes", "spreadsheet", "podcast", "passport", "garden")
TASKS = ("review", "draft", "translate", "archive", "compare", "publish")


def write_skill(number: int, extra: str = "", subject: str = "", task: str = "") -> str:
    subject = subject or f"{SUBJECTS[number % len(SUBJECTS)]}{number}"
    task = task or TASKS[number % len(TASKS)]
    return (
        f"---\nname: skill-{number:03}\ndescription: Helps to {task} a {subject} step by step, and says what to do if "
        f"something about the {subject} is missing.\n{extra}---\n\nFirst look at the {subject}.\n"
    )


def open_shelf(size: int, **special: str) -> Shelf:
    files = {f"skill-{number:03}": write_skill(number) for number in range(size)}
    for name, text in special.items():
        files[name.replace("_", "-")] = text
    return Shelf([MemorySource(files)])


def describes(listing: Listing, name: str) -> bool:
    return any(entry.name == name and entry.description for entry in listing.entries)


def message_for(number: int) -> str:
    return f"Please {TASKS[number % len(TASKS)]} my {SUBJECTS[number % len(SUBJECTS)]}{number}."


@pytest.fixture(scope="module")
def crowded() -> Shelf:
    return open_shelf(300)


BUDGET = 2_000


def test_a_skill_that_fits_the_message_is_described(crowded: Shelf) -> None:
    """Without a route, the budget goes to the first skills by name."""
    assert not describes(crowded.listing(budget=BUDGET), "skill-250")
    route = crowded.route(message_for(250), budget=BUDGET)
    assert describes(route.listing, "skill-250")
    assert route.skills[0].name == "skill-250"
    assert route.listing is crowded.listing(budget=BUDGET, ranking=route.ranking)


def test_a_route_says_why_a_skill_comes_where_it_comes(crowded: Shelf) -> None:
    """A skill without a place of its own follows in the usual order."""
    first = crowded.route(message_for(250), budget=BUDGET)
    route = crowded.route(message_for(120), previous=first, loaded=["skill-090"], budget=BUDGET)
    pinned = route.find("skill-090")
    assert (pinned.rank, pinned.reason, pinned.match) == (1, "pinned", None)
    matched = route.find("skill-120")
    assert (matched.rank, matched.reason) == (2, "matched")
    assert matched.match is not None
    assert "invoice120 in description" in matched.match.why
    assert route.find("skill-250").reason == "kept"
    assert [skill.reason for skill in route.skills].count("rotated") == ROTATING
    unplaced = route.find("skill-299")
    assert (unplaced.rank, unplaced.reason) == (None, "usual")


@pytest.mark.parametrize("budget", [60_000, 12_000])
def test_nothing_changes_if_every_description_fits(budget: int) -> None:
    """No search is made, either: the listing is the same object."""
    shelf = open_shelf(40)
    route = shelf.route(message_for(30), loaded=["skill-020"], budget=budget)
    assert route.listing is shelf.listing(budget=budget)
    assert route.ranking == ()
    assert route.matches == ()


@pytest.mark.parametrize("disclosure", ["catalog", "full"])
def test_nothing_changes_in_a_form_without_a_budget(crowded: Shelf, disclosure: str) -> None:
    route = crowded.route(message_for(250), disclosure=disclosure)  # type: ignore[arg-type]
    assert route.listing is crowded.listing(disclosure)  # type: ignore[arg-type]


def test_the_choice_stays_while_it_describes_what_fits_best(crowded: Shelf) -> None:
    """Another message about the same skill, small talk and a load leave the bytes as they are."""
    first = crowded.route(message_for(250), budget=BUDGET)
    for text in (message_for(250), "haiku250, once more", "thanks!", ""):
        second = crowded.route(text, previous=first, loaded=["skill-111"], budget=BUDGET)
        assert second.is_kept
        assert second.listing is first.listing
    other = crowded.route(message_for(120), previous=first, budget=BUDGET)
    assert not other.is_kept
    assert other.rotation == first.rotation
    assert describes(other.listing, "skill-120")
    assert describes(other.listing, "skill-250")


def test_the_choice_is_made_anew_if_there_is_no_cache_to_lose(crowded: Shelf) -> None:
    """Skills loaded since then are pinned, and the rotation goes on."""
    first = crowded.route(message_for(250), budget=BUDGET)
    second = crowded.route("thanks!", previous=first, loaded=["skill-111"], keep=False, budget=BUDGET)
    assert not second.is_kept
    assert second.find("skill-111").reason == "pinned"
    assert second.rotation != first.rotation


def test_the_choice_stays_if_another_one_could_not_describe_the_skill_either(crowded: Shelf) -> None:
    """With a tiny budget a change would cost the cache and gain nothing."""
    first = crowded.route(message_for(250), budget=110)
    second = crowded.route(message_for(120), previous=first, budget=110)
    assert second.listing is first.listing


def test_a_skill_that_the_user_wants_by_name_only_changes_nothing() -> None:
    files = {f"skill-{number:03}": write_skill(number) for number in range(200)}
    shelf = Shelf([MemorySource(files)], choices={"skill-150": "name", "skill-151": "manual"})
    for number in (150, 151):
        first = shelf.route("hello", budget=BUDGET)
        second = shelf.route(message_for(number), previous=first, budget=BUDGET)
        assert f"skill-{number}" not in second.ranking


def test_always_skills_are_pinned_and_come_first() -> None:
    extra = "disclosure: always\n"
    shelf = open_shelf(200, zebra=write_skill(7, extra).replace("skill-007", "zebra"))
    route = shelf.route(message_for(150), budget=BUDGET)
    assert route.find("zebra").reason == "pinned"
    assert "zebra" in route.listing.full
    assert describes(route.listing, "skill-150")


def test_descriptions_of_chosen_skills_come_before_names() -> None:
    """With so many skills that not all names fit, the skill that fits is described all the same."""
    shelf = open_shelf(1_000)
    assert not any(entry.description for entry in shelf.listing(budget=BUDGET).entries)
    route = shelf.route(message_for(900), budget=BUDGET)
    assert describes(route.listing, "skill-900")
    assert sum(entry.is_bare for entry in route.listing.entries) > 100


def test_every_skill_is_described_within_a_bounded_number_of_choices() -> None:
    """A third as many choices as there are skills are enough."""
    shelf = open_shelf(100)
    shown: set[str] = set()
    route: Route | None = None
    for _ in range(100 // ROTATING + 1):
        route = shelf.route("hello", previous=route, keep=False, budget=800)
        shown |= {entry.name for entry in route.listing.entries if entry.description}
    assert shown == set(shelf.catalog)


def test_a_route_does_not_grow_with_the_conversation_or_the_collection() -> None:
    """It holds a bounded number of skills after many messages and loads."""
    shelf = open_shelf(400)
    route: Route | None = None
    loaded: list[str] = []
    for number in range(0, 400, 9):
        route = shelf.route(message_for(number), previous=route, loaded=loaded, budget=BUDGET)
        loaded.append(f"skill-{number:03}")
        assert len(route.skills) <= MAX_LOADED + MAX_MATCHES + MAX_KEPT + ROTATING


def test_one_search_is_made_for_a_message(crowded: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    queries: list[str] = []
    search = crowded.search

    def count(query: str, limit: int = 5) -> object:
        queries.append(query)
        return search(query, limit)

    monkeypatch.setattr(crowded, "search", count)
    route = crowded.route(message_for(200), budget=BUDGET)
    crowded.route(message_for(10), previous=route, budget=BUDGET)
    assert queries == [message_for(200), message_for(10)]


def test_a_route_survives_a_reload() -> None:
    """Skills that are gone drop out, and the new listing has today's descriptions."""
    source = MemorySource({f"skill-{number:03}": write_skill(number) for number in range(200)})
    shelf = Shelf([source])
    first = shelf.route(message_for(150), budget=BUDGET)
    source.remove("skill-150")
    source.put("skill-151", write_skill(151, subject="zeppelin"))
    shelf.reload()
    second = shelf.route(message_for(150), previous=first, budget=BUDGET)
    assert not describes(second.listing, "skill-150")
    third = shelf.route("Draft my zeppelin.", previous=second, budget=BUDGET)
    assert "zeppelin" in third.listing.text
    assert "skill-150" not in third.ranking


turns = st.lists(
    st.tuples(st.integers(0, 149), st.lists(st.integers(0, 149), max_size=4), st.booleans()), min_size=1, max_size=5
)


def follow(shelf: Shelf, drawn: Sequence[tuple[int, list[int], bool]], budget: int) -> list[Route]:
    routes: list[Route] = []
    for number, loads, keep in drawn:
        previous = routes[-1] if routes else None
        loaded = [f"skill-{load:03}" for load in loads]
        routes.append(shelf.route(message_for(number), loaded=loaded, previous=previous, keep=keep, budget=budget))
    return routes


@settings(max_examples=40, deadline=None)
@given(turns, st.integers(0, 4_000))
def test_a_routed_listing_keeps_to_the_budget_and_shows_what_is_pinned(
    drawn: list[tuple[int, list[int], bool]], budget: int
) -> None:
    shelf = open_shelf(150)
    routes = follow(shelf, drawn, budget)
    for route, (_, loads, _) in zip(routes, drawn, strict=True):
        assert shelf.counter(route.listing.text) <= budget
        if route.is_kept:
            continue
        pinned = [f"skill-{load:03}" for load in dict.fromkeys(reversed(loads))][:MAX_LOADED]
        if route.skills:
            assert list(route.ranking[: len(pinned)]) == pinned
        described = [describes(route.listing, name) for name in route.ranking]
        assert described == sorted(described, reverse=True)  # the first of them come first
        if budget >= 1_500:
            assert all(described)


@settings(max_examples=20, deadline=None)
@given(turns, st.integers(200, 3_000))
def test_the_same_messages_make_the_same_bytes(drawn: list[tuple[int, list[int], bool]], budget: int) -> None:
    texts = [[route.listing.text for route in follow(open_shelf(150), drawn, budget)] for _ in range(2)]
    assert texts[0] == texts[1]
