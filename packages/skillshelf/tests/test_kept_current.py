"""A shelf that was reloaded knows exactly what a new shelf finds, whatever happened in between."""

import shutil
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from skillshelf import DirectorySource, Shelf

FOLDERS = ["a", "a/b", "a/b/c", "env", "node_modules/x", ".claude/d", "a/references"]
LINKS = ["l1", "a/l2", ".claude/l3", "node_modules/l4"]

STEPS = st.one_of(
    st.tuples(st.just("write"), st.sampled_from(FOLDERS), st.sampled_from(["one", "two"])),
    st.tuples(st.just("break"), st.sampled_from(FOLDERS), st.just("")),
    st.tuples(st.just("unlink"), st.sampled_from(FOLDERS), st.just("")),
    st.tuples(st.just("remove"), st.sampled_from(FOLDERS), st.just("")),
    st.tuples(st.just("link"), st.sampled_from(LINKS), st.sampled_from([*FOLDERS, "..", "nowhere"])),
    st.tuples(st.just("unlink-link"), st.sampled_from(LINKS), st.just("")),
    st.tuples(st.just("ignore"), st.sampled_from(["a/b", ".claude/", "l1", ""]), st.just("")),
    st.tuples(st.just("look"), st.just(""), st.just("")),
)


def take(root: Path, step: tuple[str, str, str]) -> None:
    kind, where, what = step
    path = root / where
    if kind == "write":
        path.mkdir(parents=True, exist_ok=True)
        (path / "SKILL.md").write_text(f"---\nname: {path.name}\ndescription: {what}\n---\nDo {what}.\n")
    elif kind == "break" and path.is_dir():
        (path / "SKILL.md").write_bytes(b"\xff")
    elif kind == "unlink":
        (path / "SKILL.md").unlink(missing_ok=True)
    elif kind == "remove":
        shutil.rmtree(path, ignore_errors=True)
    elif kind == "link" and path.parent.is_dir() and not path.exists() and not path.is_symlink():
        path.symlink_to(root / what if what in FOLDERS else what)
    elif kind == "unlink-link" and path.is_symlink():
        path.unlink()
    elif kind == "ignore":
        (root / ".skillshelfignore").write_text(where + "\n")


def known(shelf: Shelf) -> tuple[object, object]:
    """Return skills and diagnostics, without broken files: only an old shelf has a last good version of them."""
    notes = shelf.catalog.diagnostics
    broken = {Path(note.path).parent for note in notes if note.code in ("kept-last-good", "not-utf8")}

    def concerned(path: str) -> bool:
        return not broken.isdisjoint(Path(path).parents)

    skills = {one.location: one for one in (*shelf.catalog.values(), *shelf.catalog.shadowed)}
    said = {
        (note.code, note.path) for note in notes if not (concerned(note.path) or (broken and note.code == "shadowed"))
    }
    return {place: one for place, one in skills.items() if not concerned(place)}, said


@settings(max_examples=150, deadline=None)
@given(st.lists(STEPS, min_size=2, max_size=14))
def test_a_reloaded_shelf_equals_a_new_one(steps: list[tuple[str, str, str]]) -> None:
    """Skills and diagnostics are the same after any writes, removals, links, ignore rules and reloads."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        shelf = Shelf([DirectorySource(root, "project", cache=False)])
        for step in steps:
            if step[0] == "look":
                shelf.reload()
            else:
                take(root, step)
        shelf.reload()
        assert known(shelf) == known(Shelf([DirectorySource(root, "project", cache=False)]))
        generation = shelf.catalog.generation
        assert not shelf.reload()
        assert shelf.catalog.generation == generation
