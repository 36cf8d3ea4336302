"""Test which skill wins if several in one source have the same name."""

import unicodedata
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from skillshelf import DirectorySource, MemorySource, Shelf

SKILL = "---\nname: {name}\ndescription: In {key}.\n---\n\nDo it.\n"
NAMES = ["good", "evil", "a", "z", "café"]
KEYS = st.lists(st.sampled_from([*NAMES, "cafe\u0301", "b"]), min_size=1, max_size=3).map("/".join)
SHELVES = st.dictionaries(KEYS, st.sampled_from(NAMES), max_size=8)


def expected_keys(skills: dict[str, str]) -> dict[str, list[str]]:
    """Return the keys that claim each name, the winner first, by the documented rule."""
    keys_by_name: dict[str, list[str]] = {}
    for key, name in skills.items():
        keys_by_name.setdefault(name, []).append(key)
    for name, keys in keys_by_name.items():
        named = [key for key in keys if unicodedata.normalize("NFKC", key.split("/")[-1]) == name]
        others = [key for key in keys if key not in named]
        keys_by_name[name] = [
            *sorted(named, key=lambda key: (key.count("/"), key)),
            *sorted(others, key=lambda key: (key.count("/"), key)),
        ]
    return keys_by_name


def read_keys(shelf: Shelf) -> dict[str, list[str]]:
    return {name: [candidate.place.key for candidate in shelf.catalog.candidates(name)] for name in shelf.catalog}


@given(st.lists(SHELVES, min_size=1, max_size=4))
@settings(max_examples=150, deadline=None)
@example([{"evil": "good", "good": "good"}, {"evil": "good"}, {"evil": "good", "good": "good"}])
@example([{"a/b/good": "good", "a": "good"}])
def test_a_folder_of_that_name_wins_then_the_less_deep_one(states: list[dict[str, str]]) -> None:
    """This holds after every reload, whatever was added, renamed or removed."""
    source = MemorySource()
    shelf = Shelf([source])
    before: dict[str, str] = {}
    for skills in states:
        for key in before.keys() - skills.keys():
            source.remove(key)
        for key, name in skills.items():
            if before.get(key) != name:
                source.put(key, SKILL.format(name=name, key=key))
        shelf.reload()
        fresh = Shelf([MemorySource({key: SKILL.format(name=name, key=key) for key, name in skills.items()})])
        assert read_keys(shelf) == read_keys(fresh) == expected_keys(skills)
        before = skills


def test_a_folder_cannot_take_the_name_of_its_neighbour(tmp_path: Path) -> None:
    """N01: `evil` sorts before `good` and is less deep, but the name stays with the folder that has it."""
    for key in ("evil", "team/good"):
        (tmp_path / key).mkdir(parents=True)
        (tmp_path / key / "SKILL.md").write_text(SKILL.format(name="good", key=key))
    shelf = Shelf([DirectorySource(tmp_path, "project", cache=False)])
    assert shelf.catalog["good"].description == "In team/good."
    assert shelf.catalog["good@project:evil"].description == "In evil."

    (tmp_path / "team/good/SKILL.md").unlink()
    shelf.reload()
    assert shelf.catalog["good"].description == "In evil."


def test_a_skill_that_is_the_whole_source_is_named_by_its_folder(tmp_path: Path) -> None:
    root = tmp_path / "good"
    root.mkdir()
    (root / "SKILL.md").write_text(SKILL.format(name="good", key="root"))
    shelf = Shelf([DirectorySource(root, "project", cache=False)])
    [candidate] = shelf.catalog.candidates("good")
    assert candidate.is_named_by_folder()
