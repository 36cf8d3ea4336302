"""The places where a skill with a name is, or might be, and what the shelf does with each."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from skillshelf.explain._reasons import (
    describe_listing,
    describe_review,
    explain_missing_tools,
    explain_off,
    explain_usability,
)
from skillshelf.files import NotPlainFile, TreeEntry, open_folder, read_file, system, walk
from skillshelf.listing import Listing
from skillshelf.skillmd import MAX_FILE, Unreadable, decode, read
from skillshelf.skills import Candidate, Diagnostic, SkillDescriptor
from skillshelf.sources import (
    IGNORE_FILE,
    SKILL_FILES,
    SKIPPED_FOLDERS,
    VERSION_CONTROL_FOLDERS,
    DirectorySource,
    IgnoreFile,
)
from skillshelf.sources.workspace import relative
from skillshelf.text import skeleton

if TYPE_CHECKING:
    from skillshelf.shelf import Shelf

_MAX_FOLDERS = 100_000
_EXPLAIN_MODULE = (
    "a code skill is on the shelf with the package that it is in: install that, then name it with --package, in your "
    "settings or in an entry point"
)
_SKILL_FILE_LOOKALIKES = ("skill.md", "skills.md", "skill.txt", "skill.mdx")


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A place where a skill with the name is, or might be, and what the shelf does with it."""

    path: str
    status: str
    reasons: tuple[str, ...] = ()
    source: str = ""


# --- on the shelf ---


def explain_candidate(shelf: "Shelf", candidate: Candidate, listing: Listing, budget: int) -> Occurrence:
    """Explain a skill that the shelf found: used, shadowed or off."""
    skill = candidate.descriptor
    if candidate in shelf.chosen.off:
        return Occurrence(skill.location, "off", (str(explain_off("it", shelf.chosen.key_for(skill))),), skill.source)

    reasons: list[str] = []
    status = "shadowed"
    if candidate == shelf.catalog.find(skill.name):
        status = "taken"
        if skill.disclosure != "manual":
            reasons += describe_listing(shelf, skill, listing, budget)
        reasons += map(str, explain_missing_tools(shelf, skill))
    reasons += map(str, explain_usability(shelf, candidate))
    review = describe_review(shelf, candidate)
    if review is not None and review.code == "approved":
        reasons.append(review.message)
    reasons += _list_faults(skill, shelf.catalog.diagnostics)
    return Occurrence(skill.location, status, tuple(reasons), skill.source)


def _list_faults(skill: SkillDescriptor, notes: Sequence[Diagnostic]) -> Iterator[str]:
    """Yield the diagnostics about a skill's SKILL.md and the other files of its folder."""
    folder = os.path.dirname(skill.location)
    for note in notes:
        if note.code == "shadowed":
            continue
        text = f"{note.code}: {note.message}"
        if note.line:
            text = f"line {note.line}, {text}"
        if note.fix and note.path == skill.location and not os.path.isabs(skill.location):
            text += f" ({note.fix})"  # `check` gives the fixes for files
        if note.path == skill.location:
            yield text
        elif folder and note.path.startswith(f"{folder}/"):
            yield f"{relative(note.path)}, {text}"


# --- elsewhere on disk ---


def search_elsewhere(shelf: "Shelf", name: str) -> tuple[list[Occurrence], list[str]]:
    """Return skills with the name that the shelf left out, and notes about the search."""
    catalog = shelf.catalog
    candidates = list(shelf.chosen.off)
    for each in catalog:
        candidates += catalog.candidates(each)
    known = {candidate.descriptor.location: candidate.descriptor.name for candidate in candidates}
    occurrences: list[Occurrence] = []
    notes: list[str] = []
    roots = dict.fromkeys(source.root for source in shelf.sources if isinstance(source, DirectorySource))
    for root in roots:
        search = _DiskSearch(root, name, known, catalog.diagnostics)
        occurrences += search.find()
        if search.is_cut_short:
            notes.append(f"only the first {_MAX_FOLDERS:,} folders of {relative(root)} were searched")
    occurrences += _find_broken_modules(catalog.diagnostics, name)
    return occurrences, notes


def _find_broken_modules(notes: tuple[Diagnostic, ...], name: str) -> Iterator[Occurrence]:
    """Yield code skills with the name that could not be imported or have faults. Their paths begin at the package."""
    reasons: dict[str, list[str]] = {}
    for note in notes:
        parts = note.path.removesuffix(".py").split("/")
        if not note.path.startswith("/") and skeleton(name) in map(skeleton, parts):
            reasons.setdefault(note.path, []).append(f"{note.code}: {note.message}")
    for path, messages in reasons.items():
        yield Occurrence(path, "refused", tuple(messages))


@dataclass(slots=True)
class _Folder:
    """A folder that the search came through, with the names in it that matter."""

    skill_files: list[str] = field(default_factory=list)
    """SKILL.md and similar names."""
    links: list[str] = field(default_factory=list)
    has_module: bool = False
    """True if there is a skill.py, in which a code skill has its class."""
    is_readable: bool = True

    @property
    def skill_file(self) -> str:
        return next((name for name in SKILL_FILES if name in self.skill_files), "")


class _DiskSearch:
    """A search for a name in all folders below a root, including those that the shelf passes over.

    Links are not followed, and folders of version control are left out.
    """

    def __init__(self, root: str, name: str, known: dict[str, str], notes: tuple[Diagnostic, ...]) -> None:
        """`known` holds the names of the skills on the shelf by the path of their SKILL.md."""
        self.is_cut_short = False
        self._root = root
        self._name = name
        self._skeleton = skeleton(name)
        self._known = known
        self._notes = notes
        self._ignore = IgnoreFile(root)

    def find(self) -> list[Occurrence]:
        """Return every place with the name that is not on the shelf under it."""
        folders = self._read_folders()
        owners: dict[str, str] = {}  # the SKILL.md of the skill that each folder belongs to
        occurrences: list[Occurrence] = []
        for key, folder in folders.items():
            owner = ""
            if key:
                owner = self._find_owner(key, folders, owners)
            owners[key] = owner
            occurrences += self._judge_folder(key, folder, owner)
        return occurrences

    def _read_folders(self) -> dict[str, _Folder]:
        """Return the folders by their key, each after the one above it."""
        folders = {"": _Folder()}

        def enter(entry: TreeEntry) -> bool:
            if entry.name in VERSION_CONTROL_FOLDERS:
                return False
            if len(folders) >= _MAX_FOLDERS:
                self.is_cut_short = True
                return False
            folders[entry.path] = _Folder()
            return True

        def report(path: str, reason: str) -> None:
            if path in folders:
                folders[path].is_readable = False

        try:
            top = open_folder(self._root)
        except (OSError, NotPlainFile):
            return {}
        try:
            self._ignore.update(top)
            for entry in walk(top, enter, report):
                folder = folders[os.path.dirname(entry.path)]
                if entry.kind == "file" and entry.name == "skill.py":
                    folder.has_module = True
                if entry.kind == "link":
                    folder.links.append(entry.name)
                is_lookalike = entry.kind == "file" and entry.name.lower() in _SKILL_FILE_LOOKALIKES
                # A link or a folder called SKILL.md is a fault of the skill, not of its absence.
                if is_lookalike or entry.name in SKILL_FILES:
                    folder.skill_files.append(entry.name)
        finally:
            system.close(top)
        return folders

    def _find_owner(self, key: str, folders: dict[str, _Folder], owners: dict[str, str]) -> str:
        """Return the SKILL.md of the skill whose folder this one is in, or an empty string."""
        parent, _, name = key.rpartition("/")
        # A workspace that is itself a skill still has others in its dot-folders.
        if not parent and name.startswith("."):
            return ""
        if owners[parent]:
            return owners[parent]
        skill_file = folders[parent].skill_file
        if not skill_file:
            return ""
        return f"{self._path(parent)}/{skill_file}"

    def _judge_folder(self, key: str, folder: _Folder, owner: str) -> Iterator[Occurrence]:
        has_name = bool(key) and self._fits(os.path.basename(key))
        if not folder.is_readable:
            if has_name:
                yield Occurrence(self._path(key), "refused", self._diagnostics_for(key) or ("it cannot be opened",))
            return
        for link in folder.links:
            if self._fits(link):
                path = f"{key}/{link}".lstrip("/")
                reasons = self._diagnostics_for(path) or ("a symlink: only its target can be on the shelf",)
                yield Occurrence(self._path(path), "link", reasons)

        if not folder.skill_file:
            if not has_name or owner or self._explain_exclusion(key):
                return
            if folder.has_module:
                yield Occurrence(f"{self._path(key)}/skill.py", "code skill", (_EXPLAIN_MODULE,))
            else:
                yield Occurrence(self._path(key), "no skill", (_explain_missing_file(folder),))
            return
        location = f"{self._path(key)}/{folder.skill_file}"
        if location in self._known:
            known_name = self._known[location]
            if has_name and skeleton(known_name) != self._skeleton:
                yield Occurrence(location, "other name", (f"its SKILL.md names it {known_name!r}",))
        elif has_name or self._read_name(key, folder.skill_file) == self._name:
            yield self._explain_absence(key, location, owner)

    def _explain_absence(self, key: str, location: str, owner: str) -> Occurrence:
        """Explain why the SKILL.md at `location` is not on the shelf."""
        exclusion = self._explain_exclusion(key)
        if exclusion:
            status, reasons = exclusion
            return Occurrence(location, status, reasons)
        if owner:
            owner_name = self._known.get(owner, "")
            owner_folder = relative(os.path.dirname(owner))
            reason = f"it is inside the folder of another skill, {owner_name!r} ({owner_folder}), and belongs to it"
            return Occurrence(location, "nested", (reason, "move its folder out to make it a skill of its own"))
        reasons = self._diagnostics_for(key)
        for file in SKILL_FILES:
            reasons += self._diagnostics_for(f"{key}/{file}")
        return Occurrence(location, "refused", reasons or ("`skillshelf check` may explain it",))

    def _explain_exclusion(self, key: str) -> tuple[str, tuple[str, ...]] | None:
        """Return the status and reasons that keep the shelf out of this folder or one above it, or None."""
        parts = key.split("/")
        for depth, name in enumerate(parts, 1):
            above = "/".join(parts[:depth])
            if name in SKIPPED_FOLDERS:
                return "skipped", (f"the shelf never looks into folders named {name!r}",)
            line = self._ignore.rules.match(above, True)
            if line is not None:
                rule = self._ignore.lines[line - 1].strip()
                return "ignored", (f"line {line} of {relative(self._path(IGNORE_FILE))} ignores it: {rule}",)
            if depth < len(parts):
                reasons = self._diagnostics_for(above)
                if reasons:
                    return "out of reach", reasons
        return None

    def _diagnostics_for(self, key: str) -> tuple[str, ...]:
        path = self._path(key)
        reasons = []
        for note in self._notes:
            if note.path != path:
                continue
            reason = f"{note.code}: {note.message}"
            if note.fix:
                reason += f" ({note.fix})"
            reasons.append(reason)
        return tuple(reasons)

    def _read_name(self, key: str, file: str) -> str:
        """Return the name that a SKILL.md gives its skill, or an empty string if it cannot be read."""
        parts = f"{key}/{file}".lstrip("/").split("/")
        try:
            data = read_file(self._root, parts, 0, MAX_FILE + 1).data
            return read(decode(data), os.path.basename(key)).name
        except (OSError, NotPlainFile, Unreadable):
            return ""

    def _fits(self, name: str) -> bool:
        return skeleton(name) == self._skeleton

    def _path(self, key: str) -> str:
        return f"{self._root}/{key}" if key else self._root


def _explain_missing_file(folder: _Folder) -> str:
    if folder.skill_files:
        return f"the folder has {folder.skill_files[0]!r}, but the file must be called SKILL.md"
    return "the folder has no SKILL.md"
