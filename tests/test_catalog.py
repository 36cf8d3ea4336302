"""The shelf and its catalog: namesakes, sources that fail, threads, and the contract of a mapping."""

import pickle
import time
from collections import ChainMap
from collections.abc import Collection, Mapping
from pathlib import Path

import pytest

from skillshelf import (
    MemorySource,
    ReferenceNotAllowedError,
    ReferenceUnreadableError,
    Shelf,
    SkillDescriptor,
    SkillNotFoundError,
    SkillUnreadableError,
)
from skillshelf.descriptor import FrozenMap
from skillshelf.sources import Found, Page


def skill(name: str, description: str = "Does it.") -> str:
    return f"---\nname: {name}\ndescription: {description}\n---\nDo it.\n"


class BreakingSource:
    """Has no skills, and fails while `broken`."""

    name = "breaking"
    broken = False

    def refresh(self, changed: Collection[str] | None = None) -> Mapping[str, Found | None]:
        if self.broken:
            raise OSError("the share is gone")
        return {}

    def instructions(self, key: str, descriptor: SkillDescriptor) -> str:
        raise NotImplementedError

    def reference(self, key: str, descriptor: SkillDescriptor, path: str, offset: int, limit: int) -> Page:
        raise NotImplementedError


def test_sources_that_are_alike_in_all_but_their_order_are_told_apart() -> None:
    """Same source name, key and location: each skill still has a name that leads to it, and the diagnostics say it."""
    shelf = Shelf([MemorySource({"a": skill("a", "First.")}), MemorySource({"a": skill("a", "Second.")})])
    first, second = shelf.catalog.candidates("a")
    assert (shelf.catalog.reach(first), shelf.catalog.reach(second)) == ("a", "a@1:a")
    assert shelf.catalog["a@1:a"].description == "Second."
    assert ["reach it as 'a@1:a'" in note.message for note in shelf.catalog.diagnostics] == [True]


def test_a_user_folder_that_is_a_link_to_another_comes_once(tmp_path: Path) -> None:
    """`~/.claude/skills -> ~/.agents/skills` shadows nothing and is no second source."""
    folder = Path.home() / ".agents" / "skills"
    (folder / "a").mkdir(parents=True)
    (folder / "a" / "SKILL.md").write_text(skill("a"))
    (Path.home() / ".claude").mkdir()
    (Path.home() / ".claude" / "skills").symlink_to(folder)
    shelf = Shelf.open(tmp_path)
    assert [source.name for source in shelf.sources] == ["project", "user", "bundled"]
    assert (shelf.catalog["a"].source, shelf.catalog.shadowed) == ("user", ())


def test_a_source_that_fails_costs_the_others_nothing() -> None:
    """What it raises is raised once the others have told what they had to, before it and after it."""
    before, breaking, after = MemorySource(), BreakingSource(), MemorySource()
    shelf = Shelf([before, breaking, after])
    before.put("a", skill("a"))
    after.put("b", skill("b"))
    breaking.broken = True
    with pytest.raises(OSError, match="the share is gone"):
        shelf.reload()
    assert list(shelf.catalog) == ["a", "b"]
    breaking.broken = False
    assert not shelf.reload()


def test_thousands_of_one_name_take_no_longer_than_thousands_of_names() -> None:
    """Putting them on the shelf, telling each how to reach it, and taking them off again."""
    source = MemorySource({f"k{number}": skill("same") for number in range(4000)})
    start = time.process_time()
    shelf = Shelf([source])
    assert len(shelf.catalog.diagnostics) == 3999
    assert len({shelf.catalog.reach(one) for one in shelf.catalog.candidates("same")}) == 4000
    for number in range(4000):
        source.remove(f"k{number}")
    assert shelf.reload().removed == ("same",)
    assert time.process_time() - start < 2


def test_what_is_put_while_a_reload_reads_is_seen_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """A put from another thread, just when its skill is being read, is not forgotten."""
    source = MemorySource({"a": skill("a", "Old.")})
    read = source._found

    def read_slowly(key: str, files: Mapping[str, bytes] | None) -> Found | None:
        found = read(key, files)
        monkeypatch.undo()
        source.put("a", skill("a", "New."))
        return found

    monkeypatch.setattr(source, "_found", read_slowly)
    shelf = Shelf([source])
    assert shelf.catalog["a"].description == "Old."
    assert shelf.reload().changed == ("a",)
    assert shelf.catalog["a"].description == "New."


def test_a_skill_that_was_removed_says_so_until_the_reload() -> None:
    """In words, not as a bare key."""
    source = MemorySource({"a": skill("a")})
    shelf = Shelf([source])
    source.remove("a")
    with pytest.raises(SkillUnreadableError, match="it was removed from its source"):
        shelf.instructions("a")


def test_a_catalog_is_a_mapping_like_others() -> None:
    """What it does not have is a KeyError, whose text is a sentence."""
    catalog = Shelf([MemorySource({"a": skill("a")})]).catalog
    other = SkillDescriptor("b", "B.")
    assert ChainMap(catalog, {"b": other})["b"] is other  # type: ignore[arg-type]  # only ever written to: its first
    with pytest.raises(SkillNotFoundError) as error:
        catalog["b"]
    assert isinstance(error.value, KeyError)
    assert str(error.value).startswith("There is no skill named 'b'.")


def test_frontmatter_of_ten_thousand_fields_is_compared_at_once() -> None:
    """Equal to any mapping with the same items, in whatever order, and hashed alike."""
    fields = {f"key-{number}": str(number) for number in range(10_000)}
    start = time.process_time()
    one, other = FrozenMap(fields), FrozenMap(dict(reversed(fields.items())))
    assert one == other == fields
    assert hash(one) == hash(other)
    assert (dict(one.items()), list(one.values())) == (fields, list(fields.values()))
    assert one != FrozenMap()
    assert one != "key-1"
    assert time.process_time() - start < 1


def test_errors_survive_pickling() -> None:
    """What another process raised arrives with its facts and its message."""
    for error in (
        SkillNotFoundError("pfd", ["pdf"]),
        ReferenceNotAllowedError("pdf", "../x", ("a.md",)),
        ReferenceUnreadableError("pdf", "a.md", "it is gone"),
    ):
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))
