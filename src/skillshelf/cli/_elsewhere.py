"""Skills of a name where the shelf does not look, and why it does not."""

import os
from collections.abc import Iterator
from dataclasses import dataclass

from skillshelf.cli._output import relative
from skillshelf.descriptor import Diagnostic
from skillshelf.files import NotPlainFile, open_folder, read_file, system
from skillshelf.skillmd import MAX_FILE, Unreadable, decode, read
from skillshelf.sources import IGNORE_FILE, SKIPPED_FOLDERS, VERSION_CONTROL_FOLDERS, FolderListing, IgnoreFile
from skillshelf.text import skeleton

_MAX_FOLDERS = 100_000
_MAX_DEPTH = 64


@dataclass(frozen=True, slots=True)
class Finding:
    """A place where a skill of the name is, or might be, and what is to be said of it."""

    path: str
    verdict: str
    reasons: tuple[str, ...] = ()
    source: str = ""


class Search:
    """One walk below a root, past every rule but that links are not followed. One use."""

    def __init__(self, root: str, name: str, known: dict[str, str], notes: tuple[Diagnostic, ...]) -> None:
        """`known`: the names of the skills on the shelf, by the path of their SKILL.md."""
        self.root, self.name, self.known = root, name, known
        self.look = skeleton(name)
        self.notes = notes
        self.folders = 0
        self.ignore = IgnoreFile(root)

    @property
    def cut_short(self) -> bool:
        return self.folders >= _MAX_FOLDERS

    def findings(self) -> Iterator[Finding]:
        try:
            fd = open_folder(self.root)
        except (OSError, NotPlainFile):
            return
        self.ignore.update(fd)
        yield from self._walk(fd, "", "", 0)

    def _walk(self, fd: int, key: str, owner: str, depth: int) -> Iterator[Finding]:
        """`owner`: the file of the skill whose folder this one lies in."""
        try:
            self.folders += 1
            entries = FolderListing(system.scandir(fd))
            yield from self._judge(key, entries, owner)
            file = entries.skill_file()
            inner_owner = owner or (f"{self._path(key)}/{file}" if file else "")
            for name in entries.folders:
                if name in VERSION_CONTROL_FOLDERS or depth >= _MAX_DEPTH or self.cut_short:
                    continue
                # A workspace that is itself a skill still keeps others in its dot-folders.
                owned = inner_owner if key or name[0] != "." else ""
                yield from self._enter(fd, f"{key}/{name}".lstrip("/"), name, owned, depth + 1)
        finally:
            system.close(fd)

    def _enter(self, fd: int, key: str, name: str, owner: str, depth: int) -> Iterator[Finding]:
        try:
            inner = open_folder(name, fd)
        except (OSError, NotPlainFile):
            if self._fits(name):
                yield Finding(self._path(key), "refused", tuple(self._said(key)) or ("it cannot be opened",))
            return
        yield from self._walk(inner, key, owner, depth)

    def _judge(self, key: str, entries: FolderListing, owner: str) -> Iterator[Finding]:
        for link in entries.links:
            if self._fits(link):
                path = f"{key}/{link}".lstrip("/")
                said = tuple(self._said(path)) or ("a symlink: what it leads to is found where it lies",)
                yield Finding(self._path(path), "link", said)
        file = entries.skill_file()
        named = bool(key) and self._fits(key.rpartition("/")[2])
        if not file:
            if named and not owner and not self._passed_over(key):
                yield Finding(self._path(key), "no skill", (_lacks_file(entries),))
            return
        location = f"{self._path(key)}/{file}"
        if location in self.known:
            if named and skeleton(self.known[location]) != self.look:
                yield Finding(location, "other name", (f"its SKILL.md names it {self.known[location]!r}",))
        elif named or self._name_in(key, file) == self.name:
            yield self._absent(key, location, owner)

    def _absent(self, key: str, location: str, owner: str) -> Finding:
        if passed := self._passed_over(key):
            return Finding(location, *passed)
        if owner:
            whose, where = self.known.get(owner, ""), relative(os.path.dirname(owner))
            reason = f"it lies inside the folder of another skill, {whose!r} ({where}), and belongs to it"
            return Finding(location, "nested", (reason, "move its folder out to make it a skill of its own"))
        said = [*self._said(key), *(note for file in ("SKILL.md", "skill.md") for note in self._said(f"{key}/{file}"))]
        return Finding(location, "refused", tuple(said) or ("`skillshelf check` may say why",))

    def _passed_over(self, key: str) -> tuple[str, tuple[str, ...]] | None:
        """The rule that keeps the shelf out of this folder or of one above it."""
        parts = key.split("/")
        for depth, name in enumerate(parts, 1):
            above = "/".join(parts[:depth])
            if name in SKIPPED_FOLDERS:
                return "skipped", (f"the shelf never looks into folders named {name!r}",)
            line = self.ignore.rules.match(above, True)
            if line is not None:
                rule = self.ignore.lines[line - 1].strip()
                return "ignored", (f"line {line} of {relative(self._path(IGNORE_FILE))} ignores it: {rule}",)
            if depth < len(parts) and (said := list(self._said(above))):
                return "out of reach", tuple(said)
        return None

    def _said(self, key: str) -> Iterator[str]:
        path = self._path(key)
        for note in self.notes:
            if note.path == path:
                yield f"{note.code}: {note.message}" + (f" ({note.fix})" if note.fix else "")

    def _fits(self, name: str) -> bool:
        return skeleton(name) == self.look

    def _name_in(self, key: str, file: str) -> str:
        try:
            data = read_file(self.root, f"{key}/{file}".lstrip("/").split("/"), 0, MAX_FILE + 1).data
            return read(decode(data), key.rpartition("/")[2]).name
        except (OSError, NotPlainFile, Unreadable):
            return ""

    def _path(self, key: str) -> str:
        return f"{self.root}/{key}" if key else self.root


def _lacks_file(entries: FolderListing) -> str:
    near = [name for name in entries.files if name.lower() in ("skill.md", "skills.md", "skill.txt", "skill.mdx")]
    if near:
        return f"the folder has {near[0]!r}, but the file must be called SKILL.md"
    return "the folder has no SKILL.md"
