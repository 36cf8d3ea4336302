"""The lock file: what is written is what was read, and a file that cannot be used says why."""

import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillshelf.errors import SkillsLockError
from skillshelf.registry import LockedSkill, Origin, Pin, SkillsLock, dump_lock, parse_lock, read_lock
from skillshelf.trust import Snapshot, SnapshotEntry


def make_skill(name: str = "pdf-forms", *paths: str) -> LockedSkill:
    entries = tuple(
        SnapshotEntry(path, len(path), hashlib.sha256(path.encode()).hexdigest(), path.endswith(".py"))
        for path in sorted(paths or ("SKILL.md",))
    )
    return LockedSkill(
        Origin("git", "acme/skills", f"skills/{name}", "v1"), Pin(commit="a" * 40), Snapshot(name, entries)
    )


def test_a_lock_reads_as_people_expect() -> None:
    """Merges work line by line, so each file has its own."""
    lock = SkillsLock().with_skills(make_skill("pdf-forms", "SKILL.md", "scripts/fill.py"))
    skill = lock.skills["pdf-forms"]
    one, two = (entry.sha256 for entry in skill.snapshot.entries)
    assert dump_lock(lock).decode().splitlines()[1:] == [
        "version = 1",
        "",
        "[skills.pdf-forms]",
        'source = { kind = "git", address = "acme/skills", path = "skills/pdf-forms" }',
        'asked = "v1"',
        f'commit = "{"a" * 40}"',
        f'tree = "{skill.tree}"',
        "",
        "[skills.pdf-forms.files]",
        f'"SKILL.md" = {{ sha256 = "{one}", size = 8 }}',
        f'"scripts/fill.py" = {{ sha256 = "{two}", size = 15, executable = true }}',
    ]


def test_the_order_does_not_depend_on_the_order_of_adding() -> None:
    one, two = make_skill("one"), make_skill("two")
    assert dump_lock(SkillsLock().with_skills(one, two)) == dump_lock(SkillsLock().with_skills(two, one))


PATHS = st.text(min_size=1, max_size=20).filter(
    lambda path: path.isprintable() and "/" not in path and "\\" not in path and path.lower() not in (".", "..", ".git")
)


@given(st.sets(PATHS, min_size=1))
def test_a_lock_survives_a_round_trip(paths: set[str]) -> None:
    """Whatever characters the names of files have, as long as they can be printed."""
    lock = SkillsLock().with_skills(make_skill("odd", *paths))
    assert parse_lock(dump_lock(lock)) == lock


def test_unknown_fields_are_kept() -> None:
    """A later version may add some, at each level and of each type."""
    text = dump_lock(SkillsLock().with_skills(make_skill("kept"))).decode()
    text = text.replace("version = 1\n", 'version = 1\nmade = 2026-01-02T03:04:05Z\n"odd key" = [1, 2.5, true]\n')
    text = text.replace('address = "acme', 'mirror = "b\\u007f", address = "acme')
    text = text.replace("size = 8 }", 'size = 8, note = { a = "b" } }')
    text = text.replace("\n[skills.kept.files]", 'scan = { tool = "x", levels = ["a"] }\n\n[skills.kept.files]')
    lock = parse_lock(text.encode())
    once = dump_lock(lock.with_skills(make_skill("another")))
    for part in ("made = 2026-01-02T03:04:05+00:00", '"odd key" = [1, 2.5, true]', 'mirror = "b\\u007f"'):
        assert part in once.decode()
    assert 'note = { a = "b" }' in once.decode()
    assert 'scan = { tool = "x", levels = ["a"] }' in once.decode()
    assert dump_lock(parse_lock(once)) == once


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("version = 1", "version = 2", "written by a newer skillshelf"),
        ("version = 1", "version = true", "the version is True"),
        ("[skills.x]", "<<<<<<< HEAD\n[skills.x]", "line 4: a merge left conflict markers"),
        ("[skills.x]", "[skills.x", "is damaged"),
        ("size = 8", "size = 9", "tree does not match the list of files"),
        ("size = 8", "size = '8'", "is missing or not a int"),
        ('"SKILL.md"', '"../SKILL.md"', "is not a file of a skill"),
        ('"SKILL.md"', '"a/.git/config"', "is not a file of a skill"),
        ("skills.x", 'skills."../x"', "is not the name of a skill"),
        ("skills.x", 'skills."Skill.md"', "is not the name of a skill"),
        ('kind = "git", ', "", "has no kind"),
        ('kind = "git"', 'kind = "\\u001b[2J"', "has control characters"),
        ("tree =", ".".join("a" * 2000) + " = 1\ntree =", "a line has more than 500 dots"),
        ("tree =", "deep = " + "[" * 5000 + "]" * 5000 + "\ntree =", "is damaged"),
    ],
)
def test_a_lock_that_cannot_be_used_says_why(tmp_path: Path, before: str, after: str, reason: str) -> None:
    path = tmp_path / "skills.lock"
    text = dump_lock(SkillsLock().with_skills(make_skill("x"))).decode()
    assert before in text
    path.write_text(text.replace(before, after))
    with pytest.raises(SkillsLockError, match=reason) as caught:
        read_lock(str(path))
    assert str(path) in str(caught.value)


def test_a_missing_lock_is_empty_and_a_link_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "skills.lock"
    assert read_lock(str(path)) == SkillsLock()
    path.symlink_to("/etc/passwd")
    with pytest.raises(SkillsLockError, match="symlink"):
        read_lock(str(path))
