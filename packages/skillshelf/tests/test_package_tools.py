"""Tools of code skills: of packages that are constructed, of those that cannot be, and of skills attached later."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from importable import PACKAGES, importable
from skillshelf import (
    BaseSkill,
    Delta,
    DirectorySource,
    InvalidSkillError,
    MemorySource,
    PackageSource,
    PolicyError,
    Shelf,
    SourceError,
    tool,
)
from skillshelf.adapters.openai import dispatch
from skillshelf.sources import ObjectSource


@pytest.fixture(autouse=True)
def shop() -> Iterator[None]:
    """The package `shop_skills`: one skill needs nothing, the others cannot be constructed or have no tools."""
    with importable(PACKAGES / "installed"):
        yield


class TillSkill(BaseSkill):
    name = "till"
    description = "Counts money. Use when asked for the day's takings."
    instructions = "Call `count_money`."

    @tool
    def count_money(self) -> str:
        """Count the money."""
        return "twelve"


class RivalSkill(BaseSkill):
    name = "rival"
    description = "Greets, too. Use when greeting."
    instructions = "Call `greet` and `wave`."

    @tool
    def greet(self) -> str:
        """Greet otherwise."""
        return "Hi."

    @tool
    def wave(self) -> str:
        """Wave."""
        return "waved"


class FindingSkill(BaseSkill):
    name = "finding"
    description = "Finds skills. Use never."

    @tool
    def search_skills(self) -> str:
        """Search."""
        return ""


class RawSkill(BaseSkill):
    name = "raw-skill"
    description = "Changes things. Use with care."
    category = "raw"

    @tool
    def change(self) -> str:
        """Change."""
        return "changed"


def tool_names(shelf: Shelf) -> list[str]:
    return [each.name for each in shelf.tools()]


def notes_of(shelf: Shelf, code: str) -> dict[str, tuple[str, str]]:
    return {note.path: (note.message, note.fix) for note in shelf.catalog.diagnostics if note.code == code}


# -- skills of packages -----------------------------------------------------------------------------------------------


def test_a_skill_whose_constructor_needs_nothing_has_its_tools() -> None:
    """The model can call them, and nothing had to be passed."""
    shelf = Shelf([PackageSource("shop_skills")])
    assert tool_names(shelf) == ["greet"]
    assert dispatch(shelf, "greet", {"name": "Ada"}) == "Good morning, Ada."


def test_a_raw_skill_whose_class_has_a_policy_has_its_tools(tmp_path: Path) -> None:
    """The package's author wrote it, and its user installed the package."""
    package = tmp_path / "ruled_skills" / "changing"
    package.mkdir(parents=True)
    (package / "skill.py").write_text(
        "from skillshelf import tool\nfrom test_package_tools import RawSkill\n\n\n"
        "class Changing(RawSkill):\n    name = 'changing'\n    policy = {'change': 'ask'}\n"
    )
    with importable(tmp_path):
        shelf = Shelf([PackageSource("ruled_skills")])
        assert [(each.name, each.permission) for each in shelf.tools()] == [("change", "ask")]
        assert notes_of(shelf, "tools-missing") == {}


def test_a_skill_that_cannot_be_constructed_is_reported_with_what_to_do() -> None:
    """One needs an argument, one raises, one is raw. One without tools needs no instance, whatever its constructor."""
    shelf = Shelf([PackageSource("shop_skills")])
    assert sorted(shelf.catalog) == ["clock", "greeting", "orders", "shop-guide", "terminal"]
    assert notes_of(shelf, "tools-missing") == {
        "shop_skills.clock.skill:ClockSkill": (
            "the model does not have its tools: ClockSkill() raises RuntimeError: SHOP_CLOCK is not set",
            "make ClockSkill() work, or construct it and pass it: Shelf.open(skills=[ClockSkill()])",
        ),
        "shop_skills.orders.skill:OrdersSkill": (
            "the model does not have its tools: its constructor needs 'database'",
            "construct it and pass it: Shelf.open(skills=[OrdersSkill(database=…)]), "
            "or give its arguments default values",
        ),
        "shop_skills.terminal.skill:TerminalSkill": (
            "the model does not have its tools: it is raw, and a raw skill has tools only under a policy",
            "write a `policy` in the class, or construct it and pass it with one: "
            "Shelf.open(skills=[TerminalSkill().with_policy({…})])",
        ),
    }


def test_a_skill_that_fails_while_its_tools_are_made_does_not_take_the_others_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever an author's code raises is reported for that skill alone, at every reload once."""
    from shop_skills.greeting.skill import GreetingSkill  # type: ignore[import-not-found]

    def leave(self: object) -> None:
        raise SystemExit("no greetings today")

    monkeypatch.setattr(GreetingSkill, "tools", leave)
    shelf = Shelf([ObjectSource([TillSkill()]), PackageSource("shop_skills")])
    assert tool_names(shelf) == ["count_money"]
    message, _ = notes_of(shelf, "tools-missing")["shop_skills.greeting.skill:GreetingSkill"]
    assert message.endswith("GreetingSkill() raises SystemExit: no greetings today")


def test_the_model_is_told_which_tools_it_does_not_have() -> None:
    """Before the instructions that speak of them, in the listing and in a load alike. Other skills have no note."""
    shelf = Shelf([PackageSource("shop_skills")])
    note = "Note: these tools are not available here: `find_order`."
    assert shelf.turn().load("orders").text.startswith(note)
    assert note in shelf.listing("full").text
    assert shelf.turn().load("greeting").text.startswith("Call `greet`")
    assert not shelf.turn().load("shop-guide").text.startswith("Note")


def test_passing_an_instance_settles_it() -> None:
    """The diagnostic is gone, and the instance's tools are there, though the package still has the class."""
    from shop_skills.orders.skill import OrdersSkill  # type: ignore[import-not-found]

    shelf = Shelf([ObjectSource([OrdersSkill({"7": "a kettle"})]), PackageSource("shop_skills")])
    assert "shop_skills.orders.skill:OrdersSkill" not in notes_of(shelf, "tools-missing")
    assert dispatch(shelf, "find_order", {"number": "7"}) == "a kettle"
    assert shelf.turn().load("orders").text == "Call `find_order` with the order's number."


def test_a_skill_is_constructed_once_and_only_if_it_has_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shadowed skill is not; when the other one goes, it is, and its tools appear."""
    from shop_skills.greeting.skill import GreetingSkill

    made: list[str] = []
    monkeypatch.setattr(GreetingSkill, "__init__", lambda self: made.append("greeting"))
    memory = MemorySource({"greeting": "---\nname: greeting\ndescription: Another. Use it.\n---\nSay hi.\n"})
    shelf = Shelf([memory, PackageSource("shop_skills")])
    assert (tool_names(shelf), made) == ([], [])
    assert "`greet`" in shelf.turn().load("greeting@shop_skills").text

    memory.remove("greeting")
    shelf.reload()
    shelf.reload()
    assert (tool_names(shelf), made) == (["greet"], ["greeting"])
    assert shelf.turn().load("greeting").text.startswith("Call `greet`")


def test_the_first_of_two_tools_of_one_name_wins_and_the_other_is_reported() -> None:
    """Between sources this is nobody's mistake in the program, so nothing is raised."""
    shelf = Shelf([ObjectSource([RivalSkill()]), PackageSource("shop_skills")])
    assert tool_names(shelf) == ["greet", "wave"]
    assert dispatch(shelf, "greet", {}) == "Hi."
    assert notes_of(shelf, "tool-taken") == {
        "shop_skills.greeting.skill:GreetingSkill": (
            "the model does not have its tool 'greet': the skill 'rival' has a tool of that name",
            'give it another name: @tool(name="…")',
        )
    }
    assert shelf.turn().load("greeting").text.startswith("Note: these tools are not available here: `greet`.")


def test_a_host_keeps_the_names_of_its_own_tools() -> None:
    """The skill's other tools stay."""
    shelf = Shelf([ObjectSource([RivalSkill()])])
    shelf.reserve_tools(["greet"])
    assert tool_names(shelf) == ["wave"]
    assert "belongs to the program itself" in next(iter(notes_of(shelf, "tool-taken").values()))[0]


def test_the_tools_stay_the_same_tuple_until_they_change() -> None:
    """A host need not make its own tools of them again after every edit of a file."""
    memory = MemorySource()
    shelf = Shelf([ObjectSource([TillSkill()]), memory])
    before = shelf.tools()
    memory.put("a", "---\nname: a\ndescription: A. Use it.\n---\nText.\n")
    assert shelf.reload().added == ("a",)
    assert shelf.tools() is before


# -- attaching --------------------------------------------------------------------------------------------------------


def test_a_code_skill_can_be_attached_to_an_open_shelf(tmp_path: Path) -> None:
    """It is in the next listing, its tools can be called, and it comes before all others of its name."""
    shelf = Shelf.open(tmp_path, packages=["shop_skills"])
    generation = shelf.catalog.generation
    assert shelf.attach(TillSkill()) == Delta(added=("till",))
    assert shelf.catalog.generation == generation + 1
    assert shelf.catalog["till"].source == "app"
    assert "count_money" in tool_names(shelf)
    assert "Call `count_money`." in shelf.listing("full").text
    assert dispatch(shelf, "count_money", {}) == "twelve"


def test_one_package_may_be_given_as_text(tmp_path: Path) -> None:
    """A text is a sequence of texts, too, and its letters would be looked for as packages."""
    assert "greeting" in Shelf.open(tmp_path, packages="shop_skills").catalog


def test_an_attached_skill_replaces_the_one_of_a_package() -> None:
    """So a program can give arguments to a skill that the package only announced."""
    from shop_skills.orders.skill import OrdersSkill

    shelf = Shelf([ObjectSource(), PackageSource("shop_skills")])
    assert shelf.attach(OrdersSkill({})).changed == ("orders",)
    assert tool_names(shelf) == ["find_order", "greet"]
    assert "shop_skills.orders.skill:OrdersSkill" not in notes_of(shelf, "tools-missing")


@pytest.mark.parametrize(
    ("skill", "error"),
    [
        (TillSkill(), InvalidSkillError),
        (TillSkill, InvalidSkillError),
        (FindingSkill(), InvalidSkillError),
        (RawSkill(), PolicyError),
    ],
    ids=["its name is taken", "a class", "a tool that every shelf has", "raw without a policy"],
)
def test_a_skill_that_is_refused_leaves_the_shelf_as_it_was(skill: BaseSkill, error: type[Exception]) -> None:
    """The same faults are refused as by `Shelf.open(skills=…)`."""
    shelf = Shelf([ObjectSource([TillSkill()])])
    with pytest.raises(error):
        shelf.attach(skill)
    assert (list(shelf.catalog), tool_names(shelf)) == (["till"], ["count_money"])


def test_a_shelf_without_a_source_for_objects_says_what_it_needs() -> None:
    """The program decides which sources its shelf has, and in which order."""
    with pytest.raises(SourceError, match=r"Shelf\(\[ObjectSource\(\), …\]\)"):
        Shelf([DirectorySource("/nonexistent")]).attach(TillSkill())


def test_a_server_lists_the_tools_of_a_skill_that_was_attached_while_it_runs() -> None:
    """A client that asks for the tools again gets them, and can call them."""
    mcp = pytest.importorskip("mcp")
    from skillshelf.mcp import make_server

    shelf = Shelf([ObjectSource()])

    async def use() -> tuple[list[str], list[str], str]:
        async with mcp.Client(make_server(shelf)) as client:
            before = [each.name for each in (await client.list_tools()).tools]
            shelf.attach(TillSkill())
            after = [each.name for each in (await client.list_tools()).tools]
            result = await client.call_tool("count_money", {})
            return before, after, result.content[0].text

    before, after, result = asyncio.run(use())
    assert set(after) - set(before) == {"count_money"}
    assert result == "twelve"


def test_skills_attached_by_many_threads_are_all_there() -> None:
    """Readers and reloads go on meanwhile."""
    shelf = Shelf([ObjectSource()])
    skills = [type(f"Made{n}", (BaseSkill,), {"name": f"made-{n}", "description": "Made."})() for n in range(40)]
    barrier = threading.Barrier(4)

    def work(part: int) -> None:
        barrier.wait()
        for skill in skills[part::4]:
            shelf.attach(skill)
            shelf.reload()
            shelf.listing()

    threads = [threading.Thread(target=work, args=(part,)) for part in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(shelf.catalog) == sorted(skill.name for skill in skills)
