"""How `auto` spends its budget: skill by skill, in an order that can be explained, and to the last entry."""

import functools
import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from skillshelf import BaseSkill, MemorySource, Shelf, tool
from skillshelf.listing import Listing, Shortened, parse
from skillshelf.sources import ObjectSource
from skillshelf.text import truncate_words
from skillshelf.text.tokens import count, estimate


def count_words(text: str) -> int:
    return len(text.split())


# Where the extra `tokens` is not installed, words are counted twice as often.
HAS_EXACT_COUNTS = importlib.util.find_spec("rs_bpe") is not None
COUNTERS = {"estimate": estimate, "exact": count if HAS_EXACT_COUNTS else count_words, "words": count_words}
OMITTED, NAME, SHORT, WHOLE, FULL = range(5)


@dataclass(frozen=True)
class Draft:
    """The skill of one example, by the length of its parts in words."""

    description: int
    body: int
    references: int = 0
    kind: str = "file"
    """`file`, `always` or `code`."""


def write_skill(name: str, draft: Draft) -> dict[str, str]:
    extra = "disclosure: always\n" if draft.kind == "always" else ""
    description = words(draft.description, name)
    files = {"SKILL.md": f"---\nname: {name}\ndescription: {description}\n{extra}---\n{words(draft.body, name)}\n"}
    return files | {f"references/page-{number}.md": "A page." for number in range(draft.references)}


def words(number: int, seed: str) -> str:
    vocabulary = ("review", "a", "migration", "before", "it", "runs", "on", "Friday", "42", seed)
    return " ".join(vocabulary[position % len(vocabulary)] for position in range(number)) + "."


def make_code_skill(skill_name: str, draft: Draft) -> BaseSkill:
    class Skill(BaseSkill):
        name = skill_name
        description = words(draft.description, skill_name)
        instructions = words(draft.body, skill_name)

        @tool(name=f"run_{skill_name.replace('-', '_')}")
        def run(self) -> str:
            """Run it."""
            return ""

    Skill.__qualname__ = skill_name  # a shelf knows a code skill by its class
    return Skill()


def open_shelf(drafts: list[Draft], counter: Callable[[str], int] = estimate, reverse: bool = False) -> Shelf:
    named = [(f"skill-{number:04}", draft) for number, draft in enumerate(drafts)]
    if reverse:
        named.reverse()
    files = {name: write_skill(name, draft) for name, draft in named if draft.kind != "code"}
    code = [make_code_skill(name, draft) for name, draft in named if draft.kind == "code"]
    return Shelf([ObjectSource(code), MemorySource(files)], counter=counter)


def levels_of(shelf: Shelf, listing: Listing) -> dict[str, int]:
    whole = {entry.name: entry for entry in shelf.listing("catalog").entries}
    levels = dict.fromkeys(shelf.catalog, OMITTED)
    for entry in listing.entries:
        if entry.instructions is not None:
            level = FULL
        elif entry == whole[entry.name]:
            level = WHOLE
        else:
            level = NAME if entry.is_bare else SHORT
        levels[entry.name] = level
    return levels


drafts = st.builds(
    Draft,
    description=st.integers(1, 60),
    body=st.one_of(st.integers(1, 30), st.integers(1, 900)),
    references=st.integers(0, 4),
    kind=st.sampled_from(["file"] * 6 + ["always", "code"]),
)
# One small list is drawn and repeated: most shelves are small, some have hundreds of skills.
shelves = st.tuples(st.lists(drafts, min_size=1, max_size=8), st.sampled_from([1] * 8 + [5, 40])).map(
    lambda drawn: drawn[0] * drawn[1]
)
budgets = st.one_of(st.integers(0, 600), st.integers(0, 6_000))
counters = st.sampled_from(sorted(COUNTERS))

ONE_SENTENCE = Draft(description=16, body=120)
PARAGRAPH = Draft(description=90, body=700, references=3)


@settings(max_examples=80, deadline=None)
@given(shelves, budgets, counters)
@example([ONE_SENTENCE] * 150, 4_000, "estimate")
@example([ONE_SENTENCE] * 250, 4_000, "estimate")
@example([PARAGRAPH] * 150, 4_000, "exact")
@example([ONE_SENTENCE] * 1_000, 4_000, "words")
@example([PARAGRAPH, ONE_SENTENCE] * 500, 30_000, "estimate")
@example([ONE_SENTENCE] * 5_000, 4_000, "estimate")
@example([ONE_SENTENCE] * 5_000, 60_000, "exact")
@example([Draft(16, 20, kind="always")] * 300, 4_000, "estimate")
@example([Draft(16, 5_000, kind="always"), *[ONE_SENTENCE] * 90], 4_000, "estimate")
def test_the_budget_is_kept_and_no_more_than_one_entry_is_left_over(
    drawn: list[Draft], budget: int, counter_name: str
) -> None:
    """The section fits as its counter counts it, reads back exactly, and reports every skill it does not show whole."""
    counter = COUNTERS[counter_name]
    shelf = open_shelf(drawn, counter)
    listing = shelf.listing(budget=budget)

    assert listing.tokens == counter(listing.text) <= budget
    assert parse(listing.text) == list(listing.entries)
    levels = levels_of(shelf, listing)
    assert {each.name for each in listing.shortened if each.what == "omitted"} == pick(levels, OMITTED)
    assert {each.name for each in listing.shortened if each.what == "description"} <= pick(levels, NAME, SHORT)
    assert set(listing.full) == pick(levels, FULL)

    if not listing.introduction.endswith(": `search_skills(query)` finds them.\n") and listing.text:
        full = {entry.name: counter(entry.render()) for entry in shelf.listing("full").entries}
        prices = [full[name] for name, level in levels.items() if level < FULL]
        assert not prices or budget - listing.tokens <= max(prices) + 1  # a price is rounded


def pick(levels: Mapping[str, int], *wanted: int) -> set[str]:
    return {name for name, level in levels.items() if level in wanted}


@settings(max_examples=80, deadline=None)
@given(shelves, budgets, budgets, counters)
@example([ONE_SENTENCE] * 250, 1_300, 4_000, "estimate")
@example([PARAGRAPH, ONE_SENTENCE] * 75, 3_000, 8_000, "words")
@example([ONE_SENTENCE] * 1_000, 3_000, 60_000, "exact")
def test_a_larger_budget_never_shows_less_of_a_skill(
    drawn: list[Draft], first: int, second: int, counter_name: str
) -> None:
    """Only a skill with a claim, whose instructions fit now, takes room from others."""
    small, large = sorted((first, second))
    shelf = open_shelf(drawn, COUNTERS[counter_name])
    less = levels_of(shelf, shelf.listing(budget=small))
    more = levels_of(shelf, shelf.listing(budget=large))

    claims = find_claims(shelf)
    met_before = [less[name] if less[name] >= WHOLE else OMITTED for name in claims]
    met_now = [more[name] if more[name] >= WHOLE else OMITTED for name in claims]
    assert met_now >= met_before  # the first claim that is met differently is met better
    if met_now == met_before:
        assert {name: more[name] for name in more if more[name] < less[name]} == {}
        lengths = {entry.name: len(entry.description) for entry in shelf.listing(budget=large).entries}
        for entry in shelf.listing(budget=small).entries:
            assert len(entry.description) <= lengths[entry.name]


@settings(max_examples=80, deadline=None)
@given(shelves, budgets, counters)
@example([ONE_SENTENCE] * 150, 4_000, "estimate")
@example([PARAGRAPH, ONE_SENTENCE] * 60, 4_000, "exact")
def test_descriptions_are_truncated_to_a_common_length(drawn: list[Draft], budget: int, counter_name: str) -> None:
    """A skill has no description at all only if not everyone can have 40 characters."""
    shelf = open_shelf(drawn, COUNTERS[counter_name])
    entries = [entry for entry in shelf.listing(budget=budget).entries if entry.name not in find_claims(shelf)]
    described = [(entry.description, shelf.catalog[entry.name].description) for entry in entries if not entry.is_bare]

    def have_length(length: int) -> bool:
        allowed = (length, length + 1)  # the last tokens may do for one more character of some
        return all(shown in [truncate_words(whole, each) for each in allowed] for shown, whole in described)

    if len(described) < len(entries):
        assert all(shown == truncate_words(whole, 40) for shown, whole in described)
    else:
        assert any(have_length(length) for length in range(40, 1_024))


def find_claims(shelf: Shelf) -> list[str]:
    """Return the skills with a claim in their order: `always` skills, then code skills, by source and name."""
    always = [name for name in shelf.catalog if shelf.catalog[name].disclosure == "always"]
    return always + [name for name in shelf.catalog if shelf.catalog[name].tools]


@settings(max_examples=40, deadline=None)
@given(shelves, budgets)
@example([ONE_SENTENCE] * 250, 4_000)
def test_the_same_skills_make_the_same_bytes(drawn: list[Draft], budget: int) -> None:
    """The order in which the skills were found, and earlier listings, change nothing."""
    shelf = open_shelf(drawn)
    shelf.listing(budget=budget + 1)
    assert shelf.listing(budget=budget).text == open_shelf(drawn, reverse=True).listing(budget=budget).text


@pytest.mark.parametrize("size", [20, 120, 250, 1_000])
def test_one_more_skill_changes_few_entries(size: int) -> None:
    """A new skill takes its room from the last skills in the order, so most of the section stays as it was."""
    before = open_shelf([ONE_SENTENCE] * size)
    after = open_shelf([ONE_SENTENCE] * size)
    source = after.sources[1]
    assert isinstance(source, MemorySource)
    source.put("skill-0007-b", write_skill("skill-0007-b", ONE_SENTENCE))
    after.reload()
    old = levels_of(before, before.listing())
    new = levels_of(after, after.listing())
    assert len([name for name in old if new[name] != old[name]]) <= 5


def shelf_of_kinds(others: int = 300) -> Shelf:
    """An `always` skill and a code skill among many others, both late in the alphabet."""
    always = {"zz-always": write_skill("zz-always", Draft(8, 40, kind="always"))}
    files = {f"skill-{number:03}": write_skill(f"skill-{number:03}", ONE_SENTENCE) for number in range(others)}
    return Shelf([ObjectSource([make_code_skill("zz-code", Draft(8, 40))]), MemorySource(always | files)])


@pytest.mark.parametrize("budget", [600, 1_000, 2_000, 4_000])
def test_always_and_code_skills_come_first_and_in_full(budget: int) -> None:
    """However many other skills there are, their instructions are in the section."""
    assert shelf_of_kinds().listing(budget=budget).full == ("zz-always", "zz-code")


def test_if_one_claim_fits_it_is_the_always_skill() -> None:
    """Code skills come after skills that ask to be shown in full."""
    full = {entry.name: estimate(entry.render()) for entry in shelf_of_kinds().listing("full").entries}
    shelf = shelf_of_kinds()
    budget = next(budget for budget in range(100, 600) if shelf.listing(budget=budget).full)
    assert shelf.listing(budget=budget).full == ("zz-always",)
    assert shelf.listing(budget=budget + full["zz-code"] + 1).full == ("zz-always", "zz-code")


def test_a_claim_that_does_not_fit_is_reported_and_leaves_the_room_to_others() -> None:
    """Its description is shown whole; the smaller skills get the rest."""
    shelf = open_shelf([Draft(8, 30_000, kind="always"), Draft(8, 30_000, kind="code"), *[Draft(8, 40)] * 5])
    listing = shelf.listing()
    assert listing.full == ("skill-0002", "skill-0003", "skill-0004", "skill-0005", "skill-0006")
    assert listing.shortened == (Shortened("skill-0000", "instructions"), Shortened("skill-0001", "instructions"))
    assert levels_of(shelf, listing)["skill-0000"] == WHOLE


def test_names_come_before_descriptions_and_descriptions_before_instructions() -> None:
    """As the budget grows, every skill is named, then described, then shown with its references, then in full."""
    shelf = open_shelf([PARAGRAPH] * 12)
    seen = [
        sorted(set(levels_of(shelf, shelf.listing(budget=budget)).values()))
        for budget in (100, *range(101, 3_000, 20), *range(3_000, 20_000, 500))
    ]
    steps = [step for at, step in enumerate(seen) if at == 0 or step != seen[at - 1]]
    assert steps == [
        [OMITTED],
        [OMITTED, NAME],
        [NAME],
        [NAME, SHORT],
        [SHORT],
        [SHORT, WHOLE],
        [WHOLE],
        [WHOLE, FULL],
        [FULL],
    ]


def test_a_ranking_decides_who_comes_first() -> None:
    """Skills that it names are shown before the others; unknown names and repetitions in it do no harm."""
    shelf = open_shelf([ONE_SENTENCE] * 250)
    ranking = ["skill-0200", "gone", "skill-0100", "skill-0200"]
    listing = shelf.listing(budget=2_000, ranking=ranking)
    levels = levels_of(shelf, listing)
    assert {name for name in levels if levels[name] == WHOLE} >= {"skill-0200", "skill-0100"}
    assert levels["skill-0249"] == NAME
    assert [entry.name for entry in listing.entries if not entry.is_bare] == sorted(pick(levels, SHORT, WHOLE))
    assert shelf.listing(budget=2_000).text != listing.text

    few = open_shelf([PARAGRAPH] * 5)
    budget = few.listing("catalog").tokens + 1_500
    assert few.listing(budget=budget).full == ("skill-0000",)
    assert few.listing(budget=budget, ranking=["skill-0003"]).full == ("skill-0003",)


def test_descriptions_go_by_source_and_not_by_the_alphabet() -> None:
    """The first source's skills keep theirs; among those of the last, the cheapest do, so that many have one."""
    own = {f"z-{number}": write_skill(f"z-{number}", ONE_SENTENCE) for number in range(5)}
    others = {f"a-{number:03}": write_skill(f"a-{number:03}", ONE_SENTENCE) for number in range(300)}
    short = {f"b-{number:03}": write_skill(f"b-{number:03}", Draft(2, 20)) for number in range(5)}
    shelf = Shelf([MemorySource(own, name="project"), MemorySource(others | short, name="user")])
    levels = levels_of(shelf, shelf.listing())
    assert pick(levels, NAME) < others.keys()
    assert {levels[name] for name in short} == {WHOLE}


def test_a_skill_without_description_but_with_references_reads_back() -> None:
    """An empty description does not make a name of an entry that has more to show."""
    from skillshelf.listing import Entry
    from skillshelf.listing._markup import render

    entries = [Entry("a", "", ("x.md",)), Entry("b", "", more=3), Entry("c", "", instructions="Do it."), Entry("d", "")]
    assert parse(render(entries)) == entries


@functools.cache
def one_sentence_shelf(size: int) -> Shelf:
    return open_shelf([ONE_SENTENCE] * size)


@pytest.mark.parametrize("size", [100, 150, 200, 250, 300, 400])
def test_four_thousand_tokens_are_spent_whatever_the_number_of_skills(size: int) -> None:
    """No number of skills empties the section: the whole budget goes into names and descriptions."""
    listing = one_sentence_shelf(size).listing()
    next_step = 300 if size == 100 else 50  # the instructions of a skill, or the rest of a description
    assert 4_000 - next_step <= listing.tokens <= 4_000
    assert len(listing.entries) == size
