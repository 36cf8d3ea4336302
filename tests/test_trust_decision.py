"""The rules that decide which version of a skill the model may read, as tables."""

from itertools import product

import pytest

from skillshelf.trust._decision import OwnContent, Versions, applies_unasked, choose_version

USABLE = {"old", "older"}

TABLE = {
    "a new skill is not served": (Versions("new"), ""),
    "files that cannot be read as a whole are not served": (Versions(""), ""),
    "approved files are served": (Versions("old"), "old"),
    "approved files are served even if another version was in use": (
        Versions("old", serving="older", last_in_use="older"),
        "old",
    ),
    "a changed skill keeps its approved version": (Versions("new", serving="old", last_in_use="old"), "old"),
    "the version in use comes before the one noted last": (Versions("new", serving="old", last_in_use="older"), "old"),
    "in a new process, the version noted last is served": (Versions("new", last_in_use="older"), "older"),
    "a revoked version that was in use gives way to the one noted last": (
        Versions("new", serving="revoked", last_in_use="old"),
        "old",
    ),
    "a revoked version is not served": (Versions("revoked", serving="revoked", last_in_use="revoked"), ""),
}


@pytest.mark.parametrize(("versions", "tree"), TABLE.values(), ids=TABLE.keys())
def test_the_version_to_serve(versions: Versions, tree: str) -> None:
    assert choose_version(versions, USABLE) == tree


def test_without_approvals_nothing_is_served() -> None:
    """This holds even for an empty hash in the set of approved ones."""
    for on_disk, serving, last in product(("", "old", "new"), repeat=3):
        assert choose_version(Versions(on_disk, serving, last), {""}) == ""


@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize("foreign", [True, False])
def test_own_content_applies_unless_something_speaks_against_it(complete: bool, held: bool, foreign: bool) -> None:
    content = OwnContent(is_complete=complete, is_held=held, is_foreign=foreign)
    assert applies_unasked(content) == (complete and not held and not foreign)
