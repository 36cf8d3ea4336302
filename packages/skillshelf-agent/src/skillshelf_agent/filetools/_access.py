"""The paths of a workspace that the file tools may use, and the reasons they give for refusing others."""

import os
import posixpath
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase, translate

from skillshelf.errors import FileAccessError
from skillshelf.files import NotPlainFile, find_link, fold_name
from skillshelf.sources import VERSION_CONTROL_FOLDERS
from skillshelf.text import clean, replace_surrogates

PROTECTED_NAMES = (
    # Version control runs programs that its own files name: hooks, `core.fsmonitor`, filters.
    *sorted(VERSION_CONTROL_FOLDERS),
    ".env",
    ".env.*",
    "secrets*",
    "credentials",
    "credentials.*",
    ".credentials*",
    ".git-credentials",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    ".npmrc",
    ".yarnrc*",
    ".pypirc",
    ".netrc",
    "_netrc",
    ".pgpass",
    ".htpasswd",
    ".dockercfg",
    ".ssh",
    ".aws",
    ".azure",
    ".gcloud",
    ".gnupg",
    ".kube",
    ".docker",
)
"""The file tools write neither files of these names nor anything in folders of these names. The patterns are in lower
case, and are compared with each name on the path whatever its case."""

_MATCHES_SOME_PATTERN = re.compile("|".join(translate(pattern) for pattern in PROTECTED_NAMES)).match
"""Rules out most names at once: a checkpoint asks about every file."""

Parts = tuple[str, ...]
"""The names on the way from the workspace to a file."""


class FileAccess:
    """A workspace's files, as far as the tools may reach them."""

    def __init__(self, root: str, denied: Sequence[str] = ()) -> None:
        """`root` must be a real path. `denied` are folders that the tools neither show, read nor write."""
        self.root = root
        self._denied: list[Parts] = []
        for folder in denied:
            parts = self._parts_below(folder)
            if parts:
                self._denied.append(_fold(parts))

    def resolve(self, path: str) -> Parts:
        """Return the names on the way to a path that a model wrote. Raises FileAccessError if it may not be read."""
        parts = self._parts_below(path)
        if parts is None:
            raise FileAccessError(
                f"{show_path(path)!r} is outside the workspace. The file tools work inside it: use a relative path."
            )
        if self.is_denied(parts):
            raise FileAccessError(f"{show_path(path)!r} belongs to skillshelf itself and is not for the file tools.")
        return parts

    def resolve_target(self, path: str) -> Parts:
        """Return the names on the way to a file that a model wants to write. Raises FileAccessError if it may not."""
        parts = self.resolve(path)
        if not parts:
            raise FileAccessError(f"{show_path(path)!r} is the workspace itself. Give the path of a file in it.")
        for name in parts:
            pattern = find_protection(name)
            if pattern:
                raise FileAccessError(
                    f"{show_path(path)!r} is protected: the file tools do not write to {pattern!r}. "
                    "Ask the user to change it, if it must change."
                )
        return parts

    def is_denied(self, parts: Parts) -> bool:
        """Return True if a path is not for the tools at all."""
        if not self._denied:  # most workspaces, and each file of a search is checked
            return False
        folded = _fold(parts)
        return any(folded[: len(denied)] == denied for denied in self._denied)

    def real_path(self, parts: Parts) -> str:
        """Return the absolute path. It is the real one, since links are not followed."""
        return posixpath.join(self.root, *parts)

    @contextmanager
    def explain(self, path: str, parts: Parts) -> Iterator[None]:
        """Turn a failure of a file operation into a FileAccessError that a model can act on."""
        try:
            yield
        except FileNotFoundError:
            raise FileAccessError(f"{show_path(path)!r} does not exist.{self._explain_link(parts)}") from None
        except NotPlainFile as error:
            reason = self._explain_link(parts) or f" {error.reason[0].upper()}{error.reason[1:]}."
            raise FileAccessError(f"{show_path(path)!r} cannot be used.{reason}") from None
        except OSError as error:
            reason = error.strerror or "it cannot be opened"
            raise FileAccessError(f"{show_path(path)!r} cannot be used: {reason}.") from None

    def _explain_link(self, parts: Parts) -> str:
        """Return a sentence that names the link on a path and the path to use in its place, or an empty string."""
        link_and_target = None
        with suppress(OSError, NotPlainFile):
            link_and_target = find_link(self.root, parts)
        if link_and_target is None:
            return ""

        link, target = link_and_target
        depth = link.count("/")
        target_parts = self._parts_below(posixpath.join(self.root, *parts[:depth], target))
        refusal = f" {show_path(link)!r} is a link, and the file tools do not follow links."
        if target_parts is None or self.is_denied(target_parts):
            return f"{refusal} It leads outside the workspace."
        direct_path = "/".join((*target_parts, *parts[depth + 1 :])) or "."
        return f"{refusal} Use the path it leads to: {show_path(direct_path)!r}."

    def _parts_below(self, path: str) -> Parts | None:
        """Return the names between the workspace and a path, or None if it is not in the workspace."""
        if "\0" in path:
            return None
        try:
            os.fsencode(path)
        except UnicodeEncodeError:
            return None

        full_path = posixpath.normpath(posixpath.join(self.root, path))
        if full_path == self.root:
            return ()
        prefix = self.root.rstrip("/") + "/"
        if not full_path.startswith(prefix):
            return None
        return tuple(full_path.removeprefix(prefix).split("/"))


def _fold(parts: Parts) -> Parts:
    """Return names as a file system that ignores case compares them."""
    return tuple(fold_name(name) for name in parts)


def find_protection(name: str) -> str:
    """Return the pattern that protects files of this name from being written, or an empty string."""
    folded = fold_name(name)
    if not _MATCHES_SOME_PATTERN(folded):
        return ""
    for pattern in PROTECTED_NAMES:
        if fnmatchcase(folded, pattern):
            return pattern
    return ""


def show_path(path: str) -> str:
    """Return a path for a line of text: control characters written out, so that no name can pass for several lines."""
    return replace_surrogates(clean(path)).replace("\n", "<U+000A>").replace("\t", "<U+0009>")


def is_hidden(name: str) -> bool:
    """Return True for a name that begins with a dot, which the tools leave out unless a call names it."""
    return name.startswith(".")
