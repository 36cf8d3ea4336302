"""The rule that decides which version of a skill the model may read, as a table."""

import pytest

from skillshelf.trust._decision import Decision, Versions, choose_version

APPROVED = {"old", "older", "base"}
NOTHING = Decision("nothing")

TABLE = {
    "a new skill is not served": (Versions("new"), NOTHING),
    "files that cannot be read as a whole are not served": (Versions(""), NOTHING),
    "approved files are served": (Versions("old"), Decision("on_disk", "old", ends_session=True)),
    "approved files are served even if another version was in use": (
        Versions("old", serving="older", last_approved="older"),
        Decision("on_disk", "old", ends_session=True),
    ),
    "approved files replace what the agent wrote": (
        Versions("old", in_session="edit", session_base="base", serving="edit"),
        Decision("on_disk", "old", ends_session=True),
    ),
    "what the agent wrote is served": (Versions("edit", in_session="edit"), Decision("in_session", "edit")),
    "what the agent wrote is served while someone else's edit waits": (
        Versions("evil", in_session="edit", serving="edit"),
        Decision("in_session", "edit"),
    ),
    "what the agent wrote on an approved version comes before that version": (
        Versions("edit", in_session="edit", session_base="base", last_approved="base"),
        Decision("in_session", "edit"),
    ),
    "what the agent wrote goes with the version it was written on": (
        Versions("edit", in_session="edit", session_base="revoked", serving="edit"),
        Decision("nothing", ends_session=True),
    ),
    "after that, an older approved version is served": (
        Versions("edit", in_session="edit", session_base="revoked", serving="edit", last_approved="old"),
        Decision("approved_copy", "old", ends_session=True),
    ),
    "a changed skill keeps its approved version": (
        Versions("new", serving="old", last_approved="old"),
        Decision("approved_copy", "old"),
    ),
    "the version in use comes before the one noted last": (
        Versions("new", serving="old", last_approved="older"),
        Decision("approved_copy", "old"),
    ),
    "in a new process, the version noted last is served": (
        Versions("new", last_approved="older"),
        Decision("approved_copy", "older"),
    ),
    "a revoked version that was in use gives way to the one noted last": (
        Versions("new", serving="revoked", last_approved="old"),
        Decision("approved_copy", "old"),
    ),
    "a revoked version is not served": (Versions("revoked", serving="revoked", last_approved="revoked"), NOTHING),
}


@pytest.mark.parametrize(("versions", "decision"), TABLE.values(), ids=TABLE.keys())
def test_the_version_to_serve(versions: Versions, decision: Decision) -> None:
    assert choose_version(versions, APPROVED) == decision


@pytest.mark.parametrize("versions", [versions for versions, _ in TABLE.values()], ids=TABLE.keys())
def test_nothing_is_served_that_the_user_has_neither_approved_nor_confirmed(versions: Versions) -> None:
    decision = choose_version(versions, APPROVED)
    assert decision.tree in {*APPROVED, versions.in_session, ""}
    assert choose_version(versions, ()).serve in ("nothing", "in_session")
