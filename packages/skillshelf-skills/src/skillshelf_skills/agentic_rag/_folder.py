"""Documents below a folder, cut into passages and kept in the index that `search` has."""

import asyncio
import math
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import NamedTuple

from skillshelf.files import NotPlainFile, TreeEntry, file_stamp, make_lock, open_below, read_file, system, walk
from skillshelf.search import SearchText, TextSearch
from skillshelf.sources import SKIPPED_FOLDERS
from skillshelf.text import clean_line, count_noun, decode_text, unify_lines
from skillshelf_skills.agentic_rag._errors import RagError, SourceFailedError, WorkerEndedError
from skillshelf_skills.agentic_rag._isolated import PageParser
from skillshelf_skills.agentic_rag._passages import cut_into_passages
from skillshelf_skills.agentic_rag._sources import Passage

_TEXTS = (".md", ".markdown", ".mdx", ".txt", ".text", ".rst", ".adoc", ".org")
_PAGES = (".html", ".htm")
_MEGABYTE = 1_000_000
_MAX_HELD_UP = 3
"""Pages that may hold up the parser before the others wait for the next question."""
_REST_SECONDS = 600.0
"""For which pages that the parser did not finish are left alone."""
_MAX_NAMED = 3


class FolderLimits(NamedTuple):
    """How much of a folder is read."""

    files: int = 5_000
    file_megabytes: int = 5
    total_megabytes: int = 50
    entries: int = 100_000
    """Names that are looked at while searching for documents."""
    passages: int = 50_000


class _Problem(NamedTuple):
    """Why a document is not in the index."""

    reason: str
    retry_after: float = math.inf
    """Seconds after which it is tried again, although the file is the same."""
    needed: int = 0
    """The number of its passages, if there was no room for them. It is tried again when there is."""


_WAITS = _Problem("other pages held up the parser, so it waits for the next question", retry_after=0)


class _FolderDocument(NamedTuple):
    """A document that was read."""

    stamp: tuple[int, ...]
    read_at: float
    ids: Sequence[int] = ()
    """Of its passages in the index."""
    problem: _Problem | None = None


class _Listed(NamedTuple):
    path: str
    stamp: tuple[int, ...]
    size: int


class DocumentFolder:
    """Markdown, text and HTML files below a folder. They are read at the first question, and again if they change.

    Links are not followed; hidden folders and those of dependencies are left out.
    """

    def __init__(self, folder: str, *, name: str = "documents", limits: FolderLimits | None = None) -> None:
        self.name = name
        self._folder = os.path.realpath(folder)
        self._limits = limits or FolderLimits()
        self._lock = make_lock()
        self._index: TextSearch | None = None
        self._documents: dict[str, _FolderDocument] = {}
        self._passages: dict[int, Passage] = {}
        self.remarks: list[str] = []

    async def search(self, question: str, limit: int) -> Sequence[Passage]:
        if not question.strip():
            raise RagError("There is nothing to look for.")
        return await asyncio.to_thread(self._search, question, limit)

    def _search(self, question: str, limit: int) -> list[Passage]:
        with self._lock:
            index = self._index or TextSearch()
            with PageParser() as parser:
                self._update(index, parser)
            self._index = index
            return [self._passages[match.id] for match in index.search(question, limit)]

    def _update(self, index: TextSearch, parser: PageParser) -> None:
        """Bring the index up to date with the folder. If this fails, everything stays as it was."""
        remarks: list[str] = []
        listed = {each.path: each for each in self._list(remarks)}
        changed = [each for each in listed.values() if self._is_changed(each)]
        outdated = {path for path in self._documents if path not in listed} | {each.path for each in changed}
        removed = [number for path in outdated if path in self._documents for number in self._documents[path].ids]

        now = time.monotonic()
        documents = {path: document for path, document in self._documents.items() if path not in outdated}
        added: list[tuple[_Listed, list[Passage]]] = []
        room = self._count_room() + len(removed)
        for each, text in self._read(changed, parser):
            if isinstance(text, _Problem):
                documents[each.path] = _FolderDocument(each.stamp, now, problem=text)
                continue
            has_lines = not each.path.lower().endswith(_PAGES)
            passages = cut_into_passages(self.name, each.path, each.path, text, has_lines=has_lines)
            if len(passages) > room:
                problem = _Problem("there are too many passages before it", needed=len(passages))
                documents[each.path] = _FolderDocument(each.stamp, now, problem=problem)
                continue
            room -= len(passages)
            added.append((each, passages))

        texts = [SearchText(passage.title, passage.text) for _, passages in added for passage in passages]
        ids = iter(index.change(removed=removed, added=texts) if removed or texts else ())
        for number in removed:
            del self._passages[number]
        for each, passages in added:
            numbers = [next(ids) for _ in passages]
            documents[each.path] = _FolderDocument(each.stamp, now, numbers)
            self._passages.update(zip(numbers, passages, strict=True))
        self._documents = documents
        self.remarks = [*remarks, *self._describe_problems()]

    def _is_changed(self, listed: _Listed) -> bool:
        """Return True if a document is new, has changed, or may be readable by now."""
        document = self._documents.get(listed.path)
        if document is None or document.stamp != listed.stamp:
            return True
        problem = document.problem
        if problem is None:
            return False
        if problem.needed:
            return problem.needed <= self._count_room()
        return time.monotonic() - document.read_at >= problem.retry_after

    def _count_room(self) -> int:
        """Return how many passages the index can still take."""
        return self._limits.passages - len(self._passages)

    def _describe_problems(self) -> list[str]:
        problems = {path: document.problem for path, document in sorted(self._documents.items()) if document.problem}
        if not problems:
            return []
        shown = [f"{clean_line(path)} ({problem.reason})" for path, problem in list(problems.items())[:_MAX_NAMED]]
        more = "" if len(problems) <= _MAX_NAMED else f" and {len(problems) - _MAX_NAMED:,} more"
        return [f"{self.name}: {count_noun(len(problems), 'file')} could not be read: {', '.join(shown)}{more}."]

    # -- listing ------------------------------------------------------------------------------------------------------

    def _list(self, remarks: list[str]) -> Iterator[_Listed]:
        """Yield the documents below the folder, within the limits. Say in `remarks` what is beyond them."""
        files = 0
        total = 0
        with ExitStack() as stack:
            try:
                top = stack.enter_context(open_below(self._folder, ()))
            except (OSError, NotPlainFile):
                raise SourceFailedError(self.name, "the folder is gone, or cannot be read.") from None
            for looked_at, entry in enumerate(walk(top, _is_entered), 1):
                if looked_at > self._limits.entries:
                    remarks.append(f"{self.name}: only the first {self._limits.entries:,} entries were looked at.")
                    return
                if entry.kind != "file" or not entry.name.lower().endswith(_TEXTS + _PAGES):
                    continue
                if clean_line(entry.path) != entry.path:  # a locator must be readable
                    remark = f"{self.name}: files with control or hidden characters in their paths were left out."
                    if remark not in remarks:
                        remarks.append(remark)
                    continue
                try:
                    info = system.stat(entry.name, dir_fd=entry.folder, follow_symlinks=False)
                except OSError:  # removed meanwhile
                    continue
                if info.st_size <= self._limits.file_megabytes * _MEGABYTE:
                    total += info.st_size
                files += 1
                if files > self._limits.files or total > self._limits.total_megabytes * _MEGABYTE:
                    remarks.append(
                        f"{self.name}: only the first {count_noun(files - 1, 'file')} were read. Attach a smaller "
                        f"folder to have the rest."
                    )
                    return
                yield _Listed(entry.path, file_stamp(info), info.st_size)

    # -- reading ------------------------------------------------------------------------------------------------------

    def _read(self, listed: Sequence[_Listed], parser: PageParser) -> Iterator[tuple[_Listed, str | _Problem]]:
        """Yield the text of each document.

        After several pages that hold up the parser, the others wait for the next question, so that this one has its
        answer.
        """
        held_up = 0
        for each in listed:
            text = self._read_text(each)
            if isinstance(text, _Problem) or not each.path.lower().endswith(_PAGES):
                yield each, text
                continue
            if held_up == _MAX_HELD_UP:
                yield each, _WAITS
                continue
            try:
                yield each, _extract(parser, text)
            except WorkerEndedError as error:
                held_up += 1
                yield each, _Problem(error.reason, _REST_SECONDS)

    def _read_text(self, listed: _Listed) -> str | _Problem:
        limit = self._limits.file_megabytes * _MEGABYTE
        if listed.size > limit:
            return _Problem(f"{listed.size / _MEGABYTE:,.0f} MB; at most {self._limits.file_megabytes} are read")
        try:
            data = read_file(self._folder, listed.path.split("/"), 0, limit).data
        except (OSError, NotPlainFile):
            return _Problem("it cannot be opened", retry_after=0)
        text = decode_text(data)
        return _Problem("not UTF-8 text") if text is None else unify_lines(text)


def _extract(parser: PageParser, html: str) -> str | _Problem:
    """Return the text of a page, under its title, or why there is none. Raises WorkerEndedError."""
    try:
        page = parser.extract(html)
    except WorkerEndedError:
        raise
    except RagError as error:
        return _Problem(error.reason)
    if page is None:
        return _Problem("no text in it")
    if page.title and not page.text.startswith("# "):
        return f"# {page.title}\n\n{page.text}"
    return page.text


def _is_entered(entry: TreeEntry) -> bool:
    return not entry.name.startswith(".") and entry.name not in SKIPPED_FOLDERS
