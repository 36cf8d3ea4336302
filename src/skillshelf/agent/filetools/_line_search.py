"""Searching the lines of many files for a pattern, within limits that hold for any pattern and any file.

A pattern without special characters is found in linear time here. Anything else is matched by a process of its own
(`_matcher.py`), because `re` can take exponential time, holds the interpreter meanwhile, and only a process can be
ended in the middle of a match. The limit per file counts processor time, so it does not depend on how busy the machine
is. Starting the process takes about 20 ms.
"""

import json
import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from skillshelf.agent.filetools._matcher import show_part

_MATCHER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_matcher.py")
_LITERAL_PATTERN = re.compile(r"[^\\.^$*+?{}\[\]|()\r\n]+")
_MAX_PATTERN = 1000
_MAX_LINE = 10_000
"""Longer lines are searched in their beginning only: `\\s+$` takes quadratic time, some 0.1 s for this many spaces."""
_MAX_SHOWN = 500
"""The most characters of a line that a result holds."""
_MAX_SLOW_FILES = 2
"""After this many files on which the pattern took too long, the pattern is to blame and not the files."""

_BATCH_BYTES = 1024 * 1024
_BATCH_FILES = 200
_READ_BYTES = 64 * 1024

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
    if len(pattern) > _MAX_PATTERN:
        raise PatternError(f"it has {len(pattern):,} characters, and at most {_MAX_PATTERN:,} are allowed")

    deadline = time.monotonic() + seconds
    if _LITERAL_PATTERN.fullmatch(pattern):
        return _search_literal(files, pattern, limit, deadline)
    with _MatcherSearch(pattern, limit, deadline, file_seconds) as search:
        for batch in _group(files):
            search.search_batch(batch)
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
            after = data[position : min(end, position + 4 * _MAX_SHOWN)].decode(errors="replace")
            line = (before + after).removesuffix("\r")
            result.matches.append(MatchingLine(path, number, show_part(line, len(before), _MAX_SHOWN)))

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


class _TimeUp(Exception):
    """The search may take no longer."""


class _MatcherSearch:
    """A search by a matcher process, which is started again if the kernel ended it over a file."""

    def __init__(self, pattern: str, limit: int, deadline: float, file_seconds: float) -> None:
        self.result = SearchResult()
        self._limit = limit
        self._deadline = deadline
        self._options = {
            "pattern": pattern,
            "seconds": file_seconds,
            "max_line": _MAX_LINE,
            "max_shown": _MAX_SHOWN,
            "max_matches": limit,
        }
        self._matcher: subprocess.Popen[bytes] | None = None
        self._unread = b""

    def __enter__(self) -> "_MatcherSearch":
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    @property
    def is_over(self) -> bool:
        """True if no further file needs to be searched."""
        return self.result.has_more or self.result.timed_out

    def search_batch(self, batch: list[SearchedFile]) -> None:
        """Search a batch of files. Raises PatternError."""
        try:
            while batch and not self.is_over:
                if self._matcher is None:
                    self._start()
                searched = self._match_files(batch)
                if searched < len(batch):
                    # The matcher ended at this file. Another one goes on after it.
                    self._stop()
                    slow_file, _ = batch[searched]
                    self._add_slow_file(slow_file)
                batch = batch[searched + 1 :]
        except _TimeUp:
            self.result.timed_out = True

    def _match_files(self, batch: list[SearchedFile]) -> int:
        """Have files matched. Returns how many were: fewer than given if the matcher ended at one of them."""
        try:
            self._write_line([len(data) for _, data in batch])
            for _, data in batch:
                self._write(data)
        except BrokenPipeError:
            return 0

        for index, (path, _) in enumerate(batch):
            answer = self._read_line()
            if answer is None:
                return index
            matches, cut_lines = answer
            self._add_matches(path, matches)
            self.result.cut_lines += cut_lines
            if self.is_over:
                break
        return len(batch)

    def _add_matches(self, path: str, matches: list[tuple[int, str]]) -> None:
        room = self._limit - len(self.result.matches)
        for number, text in matches[:room]:
            self.result.matches.append(MatchingLine(path, number, text))
        self.result.has_more = len(matches) > room

    def _add_slow_file(self, path: str) -> None:
        self.result.slow_files.append(path)
        if len(self.result.slow_files) >= _MAX_SLOW_FILES:
            raise PatternError("it takes too long to match; write a simpler one, without repetition inside repetition")

    def _start(self) -> None:
        """Start the matcher. Raises PatternError if it does not accept the pattern."""
        self._unread = b""
        self._matcher = subprocess.Popen(
            # -I -S: neither the environment, nor the working folder, nor site-packages choose what it imports.
            [sys.executable, "-I", "-S", _MATCHER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={},
            bufsize=0,
            start_new_session=True,  # Ctrl+C is for the agent
        )
        assert self._matcher.stdin is not None
        os.set_blocking(self._matcher.stdin.fileno(), False)

        self._write_line(self._options)
        problem = self._read_line()
        if problem is None:
            raise PatternError("it takes too long to compile; write a simpler one")
        if problem:
            raise PatternError(f"it is not a regular expression: {problem}")

    def _stop(self) -> None:
        matcher = self._matcher
        if matcher is None:
            return
        self._matcher = None
        matcher.kill()
        for pipe in (matcher.stdin, matcher.stdout):
            if pipe:
                pipe.close()
        matcher.wait()

    def _write_line(self, value: Any) -> None:
        self._write(json.dumps(value).encode() + b"\n")

    def _write(self, data: bytes) -> None:
        assert self._matcher is not None
        assert self._matcher.stdin is not None
        fd = self._matcher.stdin.fileno()
        unwritten = memoryview(data)
        while unwritten:
            self._wait(fd, select.POLLOUT)
            written = os.write(fd, unwritten)
            unwritten = unwritten[written:]

    def _read_line(self) -> Any:
        """Return the next answer, or None if the matcher has ended."""
        assert self._matcher is not None
        assert self._matcher.stdout is not None
        fd = self._matcher.stdout.fileno()
        while b"\n" not in self._unread:
            self._wait(fd, select.POLLIN)
            data = os.read(fd, _READ_BYTES)
            if not data:
                return None
            self._unread += data
        line, _, self._unread = self._unread.partition(b"\n")
        return json.loads(line)

    def _wait(self, fd: int, event: int) -> None:
        """Wait until a pipe is ready. Raises _TimeUp if the search may take no longer."""
        poll = select.poll()
        poll.register(fd, event)
        seconds_left = max(0.0, self._deadline - time.monotonic())
        if not poll.poll(seconds_left * 1000):
            raise _TimeUp
