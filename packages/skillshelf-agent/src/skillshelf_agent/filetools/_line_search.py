"""Searching the lines of many files for a pattern, within limits that hold for any pattern and any file.

A pattern without special characters is found in linear time here. Anything else is matched by a worker (`_matcher.py`),
because `re` can take exponential time, holds the interpreter meanwhile, and only a process can be ended in the middle
of a match. The limit per file counts processor time, so it does not depend on how busy the machine is.
"""

import math
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from skillshelf.sandbox import Worker, WorkerError, WorkerLimits
from skillshelf_agent.filetools import _matcher
from skillshelf_agent.filetools._limits import MAX_LINE, MAX_PATTERN, MAX_SHOWN_LINE, MAX_SLOW_FILES
from skillshelf_agent.filetools._matcher import show_part

_LITERAL_PATTERN = re.compile(r"[^\\.^$*+?{}\[\]|()\r\n]+")

_BATCH_BYTES = 1024 * 1024
_BATCH_FILES = 200

SearchedFile = tuple[str, bytes]
"""The path and the content of a file."""


class PatternError(ValueError):
    """The pattern cannot be used: it is not a regular expression, too long, or takes too long on most files."""


class MatchingLine(NamedTuple):
    """A line that matches a pattern."""

    path: str
    number: int
    """Counted from 1."""
    text: str
    """The line, or a part of it if it is long."""


@dataclass(slots=True)
class SearchResult:
    """The lines that match a pattern, and a record of those that were not searched."""

    matches: list[MatchingLine] = field(default_factory=list)
    has_more: bool = False
    """There are more matches than the limit."""
    timed_out: bool = False
    """The time was up before all files were searched."""
    slow_files: list[str] = field(default_factory=list)
    """Files on which the pattern took too long."""
    cut_lines: int = 0
    """How many lines were searched in their beginning only."""


def search_lines(
    files: Iterable[SearchedFile],
    pattern: str,
    *,
    limit: int,
    seconds: float,
    file_seconds: float = 1.0,
) -> SearchResult:
    """Search files for lines that match a regular expression.

    The result has at most `limit` lines. The search ends after `seconds`; a file that takes more than `file_seconds` of
    processor time is left out. Raises PatternError.
    """
    if len(pattern) > MAX_PATTERN:
        raise PatternError(f"it has {len(pattern):,} characters, and at most {MAX_PATTERN:,} are allowed")

    deadline = time.monotonic() + seconds
    if _LITERAL_PATTERN.fullmatch(pattern):
        return _search_literal(files, pattern, limit, deadline)
    with Worker(_matcher.__file__, WorkerLimits(cpu_seconds=math.ceil(seconds))) as matcher:
        search = _PatternSearch(matcher, pattern, limit, deadline, file_seconds)
        for batch in _group(files):
            search.search(batch)
            if search.is_over:
                break
        return search.result


def _search_literal(files: Iterable[SearchedFile], text: str, limit: int, deadline: float) -> SearchResult:
    """Search for a text that is not a pattern. A line with several matches is one result."""
    result = SearchResult()
    needle = text.encode(errors="surrogatepass")
    for path, data in files:
        if time.monotonic() > deadline:
            result.timed_out = True
            break

        number = 1
        counted_to = 0
        position = data.find(needle)
        while position >= 0:
            if len(result.matches) >= limit:
                result.has_more = True
                return result

            number += data.count(b"\n", counted_to, position)
            counted_to = position
            start = data.rfind(b"\n", 0, position) + 1
            end = data.find(b"\n", position)
            if end < 0:
                end = len(data)

            # Four bytes are the most that a character takes.
            before = data[start:position].decode(errors="replace")
            after = data[position : min(end, position + 4 * MAX_SHOWN_LINE)].decode(errors="replace")
            line = (before + after).removesuffix("\r")
            result.matches.append(MatchingLine(path, number, show_part(line, len(before), MAX_SHOWN_LINE)))

            position = data.find(needle, end)
    return result


def _group(files: Iterable[SearchedFile]) -> Iterator[list[SearchedFile]]:
    """Yield the files in batches: an answer for each single file would cost more than most matches."""
    batch: list[SearchedFile] = []
    size = 0
    for path, data in files:
        batch.append((path, data))
        size += len(data)
        if size >= _BATCH_BYTES or len(batch) >= _BATCH_FILES:
            yield batch
            batch = []
            size = 0
    if batch:
        yield batch


class _PatternSearch:
    """A search for a regular expression, by a worker that may end over a file."""

    def __init__(self, matcher: Worker, pattern: str, limit: int, deadline: float, file_seconds: float) -> None:
        self.result = SearchResult()
        self._matcher = matcher
        self._limit = limit
        self._deadline = deadline
        self._options = {
            "pattern": pattern,
            "seconds": file_seconds,
            "max_line": MAX_LINE,
            "max_shown": MAX_SHOWN_LINE,
        }

    @property
    def is_over(self) -> bool:
        """True if no further file needs to be searched."""
        return self.result.has_more or self.result.timed_out

    def search(self, batch: Sequence[SearchedFile]) -> None:
        """Search files. If the worker ends over one of them, each is searched on its own. Raises PatternError."""
        room = self._limit - len(self.result.matches)
        seconds = self._deadline - time.monotonic()
        request = {**self._options, "max_matches": room}
        try:
            answer = self._matcher.ask(request, [data for _, data in batch], seconds=max(0.0, seconds))
        except WorkerError as error:
            if time.monotonic() >= self._deadline:
                self.result.timed_out = True
            elif error.kind == "crash":
                raise PatternError(f"the process that matches it failed: {error}") from None
            elif len(batch) == 1:
                self._add_slow_file(batch[0][0])
            else:
                for file in batch:
                    if not self.is_over:
                        self.search([file])
            return

        if "fault" in answer:
            raise PatternError(f"it is not a regular expression: {answer['fault']}")
        for index, number, text in answer["matches"][:room]:
            self.result.matches.append(MatchingLine(batch[index][0], number, text))
        self.result.has_more = len(answer["matches"]) > room
        self.result.cut_lines += answer["cut_lines"]

    def _add_slow_file(self, path: str) -> None:
        self.result.slow_files.append(path)
        if len(self.result.slow_files) >= MAX_SLOW_FILES:
            raise PatternError("it takes too long to match; write a simpler one, without repetition inside repetition")
