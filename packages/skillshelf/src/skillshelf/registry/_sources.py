"""The kinds of SOURCE, in the order in which they are asked whether a SOURCE is theirs."""

import os
from contextlib import AbstractContextManager

from skillshelf.errors import RegistryError
from skillshelf.registry._git import GitSource
from skillshelf.registry._local import ArchiveSource, FolderSource
from skillshelf.registry._lock import Origin, Pin
from skillshelf.registry._package import Package, SourceKind
from skillshelf.registry._pypi import PypiSource
from skillshelf.registry._web import WebSource

_PATH_STARTS = (".", "/", "~")
KINDS: tuple[SourceKind, ...] = (ArchiveSource(), PypiSource(), GitSource(), WebSource(), FolderSource())


def parse_source(text: str, asked: str, place: str, *, anywhere: bool) -> Origin:
    """Return what the user means by SOURCE. Raises RegistryError.

    `place` is the folder of the lock, to which paths become relative. `anywhere`: they may lead out of it.
    """
    kinds = KINDS
    if text.startswith(_PATH_STARTS):
        kinds = (ArchiveSource(), FolderSource())
    for kind in kinds:
        origin = kind.parse(text, asked, place)
        if origin:
            _check_origin(origin, anywhere=anywhere)
            return origin
    if text.startswith(_PATH_STARTS):
        raise RegistryError(f"There is no folder {text!r:.200}.")
    raise RegistryError(
        f"{text!r:.200} is not a source. Give owner/repo, the URL of a Git repository (git+https://… if it has no "
        f".git), the https address of a site with skills, pypi:package, a folder such as ./skills, or a .zip or "
        f".tar.gz file."
    )


def open_source(origin: Origin, pin: Pin, place: str, *, anywhere: bool) -> AbstractContextManager[Package]:
    """Fetch a source: exactly the pinned version, or the one that was asked for. Raises RegistryError."""
    _check_origin(origin, anywhere=anywhere)
    for kind in KINDS:
        if kind.name == origin.kind:
            return kind.open(origin, pin, place)
    raise RegistryError(f"This version of skillshelf has no sources of the kind {origin.kind!r:.40}.")


def _check_origin(origin: Origin, *, anywhere: bool) -> None:
    """Refuse what a lock cannot have, and a path that is not in the repository.

    On another machine, that would be missing or something else.
    """
    if not "".join(origin).isprintable():
        raise RegistryError(f"{origin.address!r:.200} has characters that no source can have.")
    if anywhere or not origin.is_local:
        return
    if os.path.isabs(origin.address) or origin.address.split("/")[0] == "..":
        raise RegistryError(
            f"{origin.address} is outside the workspace, where nobody else has it. Copy it into the workspace, or "
            f"install it for yourself with --user."
        )
