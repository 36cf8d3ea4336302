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
from typing import Any

from skillshelf.agent.filetools._matcher import show_part

_MATCHER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_matcher.py")
_LITERAL = re.compile(r"[^\\.^$*+?{}\[\]|()\r\n]+")
_BATCH_BYTES = 1024 * 1024
_BATCH_FILES = 200
_MAX_PATTERN = 1000
_LONGEST_LINE = 10_000
"""Longer lines are searched in their beginning only: `\\s+$` takes quadratic time, some 0.1 s for this many spaces."""
_SHOWN_LINE = 500
_SLOW_FILES = 2
"""After this many files on which the pattern took too long, the pattern is to blame and not the files."""


class PatternError(ValueError):
    """The pattern cannot be used: it is not a regular expression, too long, or takes too long on most files."""


@dataclass(slots=True)
class SearchResult:
    """The lines that match a pattern, and what was not searched."""

    lines: list[tuple[str, int, str]] = field(default_factory=list)
    """Path, line number from 1, and the line's text, cut if it is long."""
    more: bool = False
    """There are more matches than were asked for."""
    timed_out: bool = False
    """The time was up before all files were searched."""
    slow: list[str] = field(default_factory=list)
    """Files on which the pattern took too long."""
    long_lines: int = 0
    """How many lines were searched in their beginning only."""


def search_lines(
    files: Iterable[tuple[str, bytes]],
    pattern: str,
    *,
    limit: int,
    seconds: float,
    file_seconds: float = 1.0,
) -> SearchResult:
    """Search files, given by path and content, for lines that match a regular expression.

    At most `limit` lines are returned. The search ends after `seconds`; a file that takes more than `file_seconds` of
    processor time is left out. Raises PatternError.
    """
    if len(pattern) > _MAX_PATTERN:
        raise PatternError(f"it has {len(pattern):,} characters, and at most {_MAX_PATTERN:,} are allowed")
    deadline = time.monotonic() + seconds
    if _LITERAL.fullmatch(pattern):
        return _search_literal(files, pattern, limit, deadline)
    with _Search(pattern, limit, deadline, file_seconds) as search:
        for batch in _batches(files):
            search.add(batch)
            if search.is_over:
                break
        return search.result


def _search_literal(files: Iterable[tuple[str, bytes]], text: str, limit: int, deadline: float) -> SearchResult:
    result = SearchResult()
    needle = text.encode(errors="surrogatepass")
    for path, data in files:
        if time.monotonic() > deadline:
            result.timed_out = True
            break
        number = 1
        counted = 0
        found = data.find(needle)
        while found >= 0:
            if len(result.lines) >= limit:
                result.more = True
                return result
            number += data.count(b"\n", counted, found)
            start = data.rfind(b"\n", 0, found) + 1
            end = data.find(b"\n", found)
            if end < 0:
                end = len(data)
            before = data[start:found].decode(errors="replace")
            after = data[found : min(end, found + 4 * _SHOWN_LINE)].decode(errors="replace")
            line = (before + after).removesuffix("\r")
            result.lines.append((path, number, show_part(line, len(before), _SHOWN_LINE)))
            counted = found
            found = data.find(needle, end)
    return result


def _batches(files: Iterable[tuple[str, bytes]]) -> Iterator[list[tuple[str, bytes]]]:
    """Yield the files in groups: an answer for each single file would cost more than most matches."""
    batch: list[tuple[str, bytes]] = []
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


class _Search:
    """One search by a matcher process, which is started again if a file made the kernel end it."""

    def __init__(self, pattern: str, limit: int, deadline: float, file_seconds: float) -> None:
        self.result = SearchResult()
        self._limit = limit
        self._deadline = deadline
        self._options = {
            "pattern": pattern,
            "seconds": file_seconds,
            "line": _LONGEST_LINE,
            "shown": _SHOWN_LINE,
            "matches": limit,
        }
        self._matcher: subprocess.Popen[bytes] | None = None
        self._unread = b""

    def __enter__(self) -> "_Search":
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    @property
    def is_over(self) -> bool:
        return self.result.more or self.result.timed_out

    def add(self, batch: list[tuple[str, bytes]]) -> None:
        """Search a group of files."""
        try:
            while batch and not self.is_over:
                if self._matcher is None:
                    self._start()
                searched = self._send(batch)
                if searched < len(batch):
                    self._stop()
                    self._blame(batch[searched][0])
                batch = batch[searched + 1 :]
        except _TimeUp:
            self.result.timed_out = True

    def _send(self, batch: list[tuple[str, bytes]]) -> int:
        """Have files matched. Return how many were: fewer than given if the matcher ended at one of them."""
        try:
            self._write(json.dumps([len(data) for _, data in batch]).encode() + b"\n")
            for _, data in batch:
                self._write(data)
        except BrokenPipeError:
            return 0
        for done, (path, _) in enumerate(batch):
            answer = self._read()
            if answer is None:
                return done
            self._take(path, *answer)
            if self.is_over:
                break
        return len(batch)

    def _take(self, path: str, matches: list[tuple[int, str]], cut: int) -> None:
        room = self._limit - len(self.result.lines)
        self.result.lines += [(path, number, text) for number, text in matches[:room]]
        self.result.more = len(matches) > room
        self.result.long_lines += cut

    def _blame(self, path: str) -> None:
        self.result.slow.append(path)
        if len(self.result.slow) >= _SLOW_FILES:
            raise PatternError("it takes too long to match; write a simpler one, without repetition inside repetition")

    def _start(self) -> None:
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
        self._write(json.dumps(self._options).encode() + b"\n")
        problem = self._read()
        if problem:
            raise PatternError(f"it is not a regular expression: {problem}")
        if problem is None:
            raise PatternError("it takes too long to compile; write a simpler one")

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

    def _write(self, data: bytes) -> None:
        assert self._matcher is not None
        assert self._matcher.stdin is not None
        fd = self._matcher.stdin.fileno()
        left = memoryview(data)
        while left:
            self._wait(fd, select.POLLOUT)
            left = left[os.write(fd, left) :]

    def _read(self) -> Any:
        """Return the next answer, or None if the matcher has ended."""
        assert self._matcher is not None
        assert self._matcher.stdout is not None
        fd = self._matcher.stdout.fileno()
        while b"\n" not in self._unread:
            self._wait(fd, select.POLLIN)
            data = os.read(fd, 65536)
            if not data:
                return None
            self._unread += data
        line, _, self._unread = self._unread.partition(b"\n")
        return json.loads(line)

    def _wait(self, fd: int, event: int) -> None:
        poll = select.poll()
        poll.register(fd, event)
        if not poll.poll(max(0.0, self._deadline - time.monotonic()) * 1000):
            raise _TimeUp
