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


def test_sources_that_differ_only_in_order_can_both_be_reached() -> None:
    """Even with the same source name, key and location, each skill has a name of its own; the diagnostics give it."""
    shelf = Shelf([MemorySource({"a": skill("a", "First.")}), MemorySource({"a": skill("a", "Second.")})])
    first, second = shelf.catalog.candidates("a")
    assert (shelf.catalog.reach(first), shelf.catalog.reach(second)) == ("a", "a@1:a")
    assert shelf.catalog["a@1:a"].description == "Second."
    assert ["reach it as 'a@1:a'" in note.message for note in shelf.catalog.diagnostics] == [True]


def test_a_user_folder_that_is_a_link_to_another_comes_once(tmp_path: Path) -> None:
    """`~/.claude/skills -> ~/.agents/skills` shadows nothing and does not become a second source."""
    folder = Path.home() / ".agents" / "skills"
    (folder / "a").mkdir(parents=True)
    (folder / "a" / "SKILL.md").write_text(skill("a"))
    (Path.home() / ".claude").mkdir()
    (Path.home() / ".claude" / "skills").symlink_to(folder)
    shelf = Shelf.open(tmp_path)
    assert [source.name for source in shelf.sources] == ["app", "project", "user"]
    assert (shelf.catalog["a"].source, shelf.catalog.shadowed) == ("user", ())


def test_a_failing_source_does_not_lose_the_changes_of_others() -> None:
    """Its error is raised after the other sources, before and after it, have been refreshed."""
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
    """Adding them, finding the name that reaches each one, and removing them all take linear time."""
    source = MemorySource({f"k{number}": skill("same") for number in range(4000)})
    start = time.process_time()
    shelf = Shelf([source])
    assert len(shelf.catalog.diagnostics) == 3999
    assert len({shelf.catalog.reach(candidate) for candidate in shelf.catalog.candidates("same")}) == 4000
    for number in range(4000):
        source.remove(f"k{number}")
    assert shelf.reload().removed == ("same",)
    assert time.process_time() - start < 2


def test_a_skill_put_during_a_reload_is_found_by_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread may put a skill at the moment it is being read; the new version is not lost."""
    source = MemorySource({"a": skill("a", "Old.")})
    read = source._found

    def read_slowly(key: str, files: Mapping[str, bytes] | None) -> Found | None:
        old = read(key, files)
        monkeypatch.undo()
        source.put("a", skill("a", "New."))
        return old

    monkeypatch.setattr(source, "_found", read_slowly)
    shelf = Shelf([source])
    assert shelf.catalog["a"].description == "Old."
    assert shelf.reload().changed == ("a",)
    assert shelf.catalog["a"].description == "New."


def test_loading_a_removed_skill_explains_that_it_is_gone() -> None:
    """Until the next reload, the error is a sentence instead of a bare key."""
    source = MemorySource({"a": skill("a")})
    shelf = Shelf([source])
    source.remove("a")
    with pytest.raises(SkillUnreadableError, match="it was removed from its source"):
        shelf.instructions("a")


def test_a_catalog_is_a_mapping_like_others() -> None:
    """A missing name raises a KeyError whose text is a sentence."""
    catalog = Shelf([MemorySource({"a": skill("a")})]).catalog
    other = SkillDescriptor("b", "B.")
    assert ChainMap(catalog, {"b": other})["b"] is other  # type: ignore[arg-type]  # only ever written to: its first
    with pytest.raises(SkillNotFoundError) as error:
        catalog["b"]
    assert isinstance(error.value, KeyError)
    assert str(error.value).startswith("There is no skill named 'b'.")


def test_errors_survive_pickling() -> None:
    """An error from another process arrives with its attributes and its message."""
    for error in (
        SkillNotFoundError("pfd", ["pdf"]),
        ReferenceNotAllowedError("pdf", "../x", ("a.md",)),
        ReferenceUnreadableError("pdf", "a.md", "it is gone"),
    ):
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))
