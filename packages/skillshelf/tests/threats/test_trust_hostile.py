"""TRUST, HOSTILE: workspaces that try to be trusted, or to change after they were."""

import os
import shutil
import threading
import time
from pathlib import Path

import pytest

from skillshelf import DirectorySource, Shelf, SkillError
from skillshelf.errors import TrustError
from skillshelf.trust import Trust, TrustedSource, review_text
from threats.workspace import CANARY, GOOD, Workspace, collect_output


def make_source(root: Path) -> TrustedSource:
    source = TrustedSource(DirectorySource(root, "project", cache=False), Trust.open())
    source.refresh()
    return source


@pytest.fixture
def trusted(workspace: Workspace) -> TrustedSource:
    """Return the source of a workspace whose only skill is approved."""
    source = make_source(workspace.root)
    source.approve(source.pending)
    return source


@pytest.mark.parametrize("place", [".skillshelf/trust", ".local/state/skillshelf/trust", "trust", "good", ".git"])
def test_a_record_that_the_repository_ships_has_no_effect(place: str, workspace: Workspace, tmp_path: Path) -> None:
    """W06: a perfect trust store inside the workspace approves nothing."""
    forged = Trust(str(tmp_path / "forge"))
    source = TrustedSource(DirectorySource(workspace.root, "project", cache=False), forged)
    source.refresh()
    source.approve(source.pending)
    shutil.copytree(forged.path, workspace.root / place, dirs_exist_ok=True)
    for name in (".env", "skillshelf.toml", ".skillshelf.json"):
        (workspace.root / name).write_text(f"XDG_STATE_HOME={workspace.root}\n")
    now = make_source(workspace.root)
    assert now.served == {}
    assert GOOD in [skill.name for skill in now.pending]


@pytest.mark.parametrize("linked", [False, True])
def test_a_store_inside_the_workspace_is_not_used(
    linked: bool, workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W06: nothing is trusted if the state home lies in the workspace, directly or through a link."""
    outside = tmp_path / "forge"
    forged = Trust(str(outside / "skillshelf"))
    source = TrustedSource(DirectorySource(workspace.root, "project", cache=False), forged)
    source.refresh()
    source.approve(source.pending)
    state = workspace.root / ".state"
    if linked:
        state.symlink_to(outside)
    else:
        shutil.copytree(outside, state)
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    now = make_source(workspace.root)
    assert now.served == {}
    good = next(skill for skill in now.pending if skill.key == GOOD)
    assert "inside the workspace" in good.blocked
    with pytest.raises(TrustError, match="XDG_STATE_HOME"):
        now.approve([good])


def test_trust_is_never_for_a_parent_folder(trusted: TrustedSource, workspace: Workspace) -> None:
    """W07: a skill added beside an approved one is pending like any other; no path is trusted."""
    workspace.skill("late")
    trusted.refresh()
    assert (set(trusted.served), [skill.name for skill in trusted.pending]) == ({GOOD}, ["late"])


def test_a_link_to_a_trusted_path_is_not_trusted(trusted: TrustedSource, workspace: Workspace) -> None:
    """W06: a link to an approved file or to its copy brings no bytes in, and is shown as a link."""
    skill = workspace.skill("linker", files={"references/own.md": "Own."})
    copies = Path(trusted.trust.path) / "trees"
    (skill / "references/copy.md").symlink_to(next(copies.rglob("guide.md")))
    (skill / "references/outside.md").symlink_to(workspace.secret)
    (workspace.root / "whole").symlink_to(copies)
    trusted.refresh()
    [pending] = trusted.pending
    assert pending.name == "linker"
    review = review_text(pending)
    assert f"references/outside.md -> {workspace.secret} (a link, not followed)" in review
    assert CANARY not in review.replace(str(workspace.secret), "")
    trusted.approve([pending])
    shelf = Shelf([trusted])
    assert shelf.catalog["linker"].references == ("references/own.md",)
    assert CANARY not in collect_output(shelf)


def test_a_skill_folder_swapped_for_a_link_is_not_followed(trusted: TrustedSource, workspace: Workspace) -> None:
    """P06: if the folder of an approved skill becomes a link to the outside, nothing is read from there."""
    shelf = Shelf([trusted])
    shutil.rmtree(workspace.root / GOOD)
    (workspace.root / GOOD).symlink_to(workspace.outside / "stolen")
    shelf.reload()
    assert CANARY not in collect_output(shelf)
    assert CANARY not in "".join(map(review_text, trusted.pending))


def test_unapproved_bytes_are_never_served_while_files_flip(workspace: Workspace) -> None:
    """X02: while files, links and folders flip between approved and hostile, every load is an approved text."""
    good = workspace.root / GOOD
    (good / "SKILL.md").write_text("---\nname: good\ndescription: d\n---\nApproved.\n")
    source = make_source(workspace.root)
    source.approve(source.pending)
    shelf = Shelf([source])
    hostile = "---\nname: good\ndescription: hostile\n---\nHostile.\n"
    stop, wrong, loads, refused = threading.Event(), [], 0, 0
    approved = {"SKILL.md": (good / "SKILL.md").read_text(), "references/guide.md": "Good guide."}

    def flip() -> None:
        scratch, number = workspace.outside / "scratch", 0
        while not stop.is_set():
            number += 1
            for name, text in approved.items():
                evil = hostile if name == "SKILL.md" else "Hostile."
                for data in (evil, text):
                    if number % 3:
                        (good / name).write_text(data)
                    else:
                        scratch.symlink_to(workspace.secret) if data == evil else scratch.write_text(data)
                        scratch.replace(good / name)

    thread = threading.Thread(target=flip)
    thread.start()
    deadline = time.monotonic() + 3
    try:
        while time.monotonic() < deadline:
            for reference, expected in (("", "Approved.\n"), ("guide.md", "Good guide.")):
                loads += 1
                try:
                    text = shelf.turn().load(GOOD, reference).text
                except SkillError:
                    refused += 1
                    continue
                if text != expected:
                    wrong.append(text)
            if "hostile" in shelf.listing("full").text.lower():
                wrong.append("listing")
    finally:
        stop.set()
        thread.join()
    assert wrong == []
    assert loads > 50
    assert refused < loads


def test_an_approval_while_files_flip_approves_what_was_shown_or_nothing(workspace: Workspace) -> None:
    """X02: the copy that an approval makes has exactly the bytes of the review, however the files race."""
    good = workspace.root / GOOD
    texts = [f"---\nname: good\ndescription: d\n---\nVersion {number}.\n" for number in range(4)]
    stop = threading.Event()

    def flip() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            scratch = workspace.outside / "scratch"
            scratch.write_text(texts[number % 4])
            scratch.replace(good / "SKILL.md")

    source = make_source(workspace.root)
    thread = threading.Thread(target=flip)
    thread.start()
    agreed = failed = 0
    try:
        for _ in range(100):
            source.refresh()
            for pending in source.pending:
                review = review_text(pending)
                try:
                    source.approve([pending])
                except TrustError:
                    failed += 1
                    continue
                copy = source.trust.copy(pending.tree)
                assert copy is not None
                text = copy.read("SKILL.md", 0, 1000).data.decode()
                if "changed since you looked at it" not in review:
                    assert text.splitlines()[-1] in review
                agreed += 1
                source.trust.revoke([pending.tree])
    finally:
        stop.set()
        thread.join()
    assert agreed + failed > 0


def test_trust_does_not_widen_what_a_skill_may_do(workspace: Workspace) -> None:
    """W09: after the approval, `allowed-tools` and embedded commands are still only text."""
    workspace.raw("wide", "---\nname: wide\ndescription: d\nallowed-tools: Bash(*)\n---\n!`touch owned`\n")
    source = make_source(workspace.root)
    source.approve(source.pending)
    shelf = Shelf([source])
    assert shelf.catalog["wide"].allowed_tools == ("Bash(*)",)
    assert shelf.turn().load("wide").text == "!`touch owned`\n"
    assert shelf.tools() == ()
    assert not os.path.exists("owned")
