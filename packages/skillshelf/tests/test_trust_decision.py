"""The rule that decides which version of a skill the model may read, as a table."""

from itertools import product

import pytest

from skillshelf.trust._source import choose_version

USABLE = {"old", "older"}

TABLE = {
    "a new skill is not served": (("new", "", ""), ""),
    "files that cannot be read as a whole are not served": (("", "", ""), ""),
    "approved files are served": (("old", "", ""), "old"),
    "approved files are served even if another version was in use": (("old", "older", "older"), "old"),
    "a changed skill keeps its approved version": (("new", "old", "old"), "old"),
    "the version in use comes before the one noted last": (("new", "old", "older"), "old"),
    "in a new process, the version noted last is served": (("new", "", "older"), "older"),
    "a revoked version that was in use gives way to the one noted last": (("new", "revoked", "old"), "old"),
    "a revoked version is not served": (("revoked", "revoked", "revoked"), ""),
}


@pytest.mark.parametrize(("versions", "tree"), TABLE.values(), ids=TABLE.keys())
def test_the_version_to_serve(versions: tuple[str, str, str], tree: str) -> None:
    """The versions are those on disk, served at the moment, and in use last."""
    assert choose_version(versions, USABLE) == tree


def test_without_approvals_nothing_is_served() -> None:
    """This holds even for an empty hash in the set of approved ones."""
    for versions in product(("", "old", "new"), repeat=3):
        assert choose_version(versions, {""}) == ""
