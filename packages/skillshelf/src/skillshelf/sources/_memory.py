"""Skills in memory: for tests, demos and programs that make skills themselves."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from skillshelf.errors import ReferenceNotFoundError, SkillUnreadableError
from skillshelf.files import Page
from skillshelf.skillmd import SkillText, Unreadable, decode, read
from skillshelf.skills import Found, SkillDescriptor
from skillshelf.sources._names import find_named, is_case_file, is_in_reference_folder

Files = str | Mapping[str, str | bytes]


class MemorySource:
    """Skills as texts: `MemorySource({"pdf": "---\\nname: pdf\\n…"})`, or a mapping of file names to texts for each.

    Change it with `put` and `remove`; the shelf notices at its next reload.
    """

    def __init__(self, skills: Mapping[str, Files] | None = None, name: str = "memory") -> None:
        self.name = name
        self._skills: dict[str, dict[str, bytes]] = {}
        self._changed: set[str] = set()
        for key, files in (skills or {}).items():
            self.put(key, files)

    def put(self, key: str, files: Files) -> None:
        """Add or replace a skill. `key` stands for the folder's name."""
        if isinstance(files, str):
            files = {"SKILL.md": files}
        self._skills[key] = {path: data.encode() if isinstance(data, str) else data for path, data in files.items()}
        self._changed.add(key)

    def remove(self, key: str) -> None:
        """Remove a skill."""
        del self._skills[key]
        self._changed.add(key)

    def refresh(self, changed: Collection[str] | None = None) -> Mapping[str, Found | None]:
        keys = sorted(self._changed)
        # Before the texts are read: a skill that another thread puts from here on is reported the next time.
        self._changed.difference_update(keys)
        return {key: self._found(key, self._skills.get(key)) for key in keys}

    def _found(self, key: str, files: Mapping[str, bytes] | None) -> Found | None:
        if files is None:
            return None
        location = f"memory:{key}/SKILL.md"
        try:
            text = _read(key, files)
        except Unreadable as fault:
            return Found(None, (replace(fault.diagnostic, path=location),))

        references, more = choose_references(text, files)
        descriptor = text.describe(references=references, source=self.name, location=location, more_references=more)
        return Found(descriptor, tuple(replace(note, path=location) for note in text.diagnostics))

    def instructions(self, key: str, descriptor: SkillDescriptor) -> str:
        files = self._skills.get(key)
        if files is None:
            raise SkillUnreadableError(descriptor.name, "it was removed from its source")
        try:
            return _read(key, files).instructions
        except Unreadable as fault:
            raise SkillUnreadableError(descriptor.name, str(fault)) from None

    def reference(self, key: str, descriptor: SkillDescriptor, path: str, offset: int, limit: int) -> Page:
        data = self._skills.get(key, {}).get(path)
        if data is None:
            raise ReferenceNotFoundError(descriptor.name, path, descriptor.references)
        return Page(data[offset : offset + limit], offset, len(data))


def choose_references(text: SkillText, files: Iterable[str]) -> tuple[tuple[str, ...], int]:
    """Return the files of a skill that can be loaded, the main ones first, and the number of the others."""
    if text.optional.listed_references is not None:
        return text.optional.listed_references, 0
    paths = sorted(path for path in files if path != "SKILL.md")
    named = find_named(paths, text.instructions)
    main = [path for path in paths if path in named or is_in_reference_folder(path)]
    others = [path for path in paths if path not in main and not is_case_file(path)]
    return (*main, *others), len(others)


def _read(key: str, files: Mapping[str, bytes]) -> SkillText:
    return read(decode(files.get("SKILL.md", b"")), key)
