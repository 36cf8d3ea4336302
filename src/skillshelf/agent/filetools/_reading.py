"""Reading a file a page at a time. However large the file is, a page takes little memory."""

import mimetypes
from dataclasses import dataclass

from skillshelf.agent.filetools._access import FileAccess, show_path
from skillshelf.errors import FileAccessError
from skillshelf.files import open_file_below, read_at, system

MAX_LINES = 2000
MAX_CHARS = 50_000
MAX_MEDIA = 5_000_000
"""The strictest limit for an image among the large providers."""
_MAX_SCAN = 256 * 1024 * 1024
"""How far into a file lines are counted: a quarter of a second. What lies behind can be searched, but not paged."""
_CHUNK = 1024 * 1024
_SAMPLE = 8192
_HEX_BYTES = 64
_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
)


@dataclass(frozen=True, slots=True)
class Media:
    """An image or a PDF, which a model looks at as it is."""

    header: str
    data: bytes
    media_type: str


@dataclass(frozen=True, slots=True)
class _LineCount:
    """The lines of a file, counted as far as _MAX_SCAN."""

    lines: int
    whole: bool
    """All of the file was counted."""
    position: int | None
    """Where the line that was looked for begins; None if the file has fewer."""


def read_page(access: FileAccess, path: str, offset: int = 0, limit: int | None = None) -> str | Media:
    """Return lines of a text file with their numbers, an image or PDF as it is, or a description of another file.

    `offset` counts lines from 0. Raises FileAccessError.
    """
    if offset < 0 or (limit is not None and limit < 1):
        raise FileAccessError("offset must be 0 or more, and limit 1 or more.")
    parts = access.resolve(path)
    if not parts:
        raise FileAccessError(f"{show_path(path)!r} is a folder. Use list_directory.")
    with access.explain(path, parts), open_file_below(access.root, parts) as (fd, info):
        sample = system.pread(fd, _SAMPLE, 0)
        media_type = _sniff_media_type(sample)
        if media_type or is_binary(sample):
            return _describe_binary(fd, path, info.st_size, media_type, sample)
        return _read_lines(fd, path, info.st_size, offset, min(limit or MAX_LINES, MAX_LINES))


def is_binary(data: bytes) -> bool:
    """Return True if data does not look like text: it has a NUL near its beginning."""
    return b"\0" in data[:_SAMPLE]


def _read_lines(fd: int, path: str, size: int, offset: int, limit: int) -> str:
    counted = _count_lines(fd, offset)
    if size == 0:
        return f"[{show_path(path)} | 0 lines]\n(empty file)\n"
    if counted.position is None:
        if counted.whole:
            raise FileAccessError(
                f"Offset {offset} is behind the end of {show_path(path)!r}: it has {counted.lines} lines."
            )
        raise FileAccessError(
            f"Line {offset} of {show_path(path)!r} lies behind its first {_MAX_SCAN:,} bytes, and only those are read "
            "by line. A command can look further, if the user allows it."
        )

    # Four bytes are the most that a character takes, so this holds a page whatever it is made of.
    data = system.pread(fd, 4 * MAX_CHARS, counted.position)
    shown = _number_lines(data, offset, limit)
    remaining = counted.lines - offset - len(shown.lines)

    count = f"{counted.lines} lines" if counted.whole else f"more than {counted.lines} lines"
    partly = offset > 0 or remaining > 0 or shown.cut
    header = f"[{show_path(path)} | {count}{f' | {size} bytes' if partly else ''}]\n"
    body = "".join(shown.lines)
    if not body.endswith("\n"):
        body += "\n"
    if shown.cut:
        body += (
            f"... (Line {offset + 1} is too long to be shown whole. "
            f"Use offset={offset + 1} to continue behind it, or search_files to look into it.)\n"
        )
    elif remaining > 0:
        more = f"{remaining} more lines" if counted.whole else "more lines"
        body += f"... ({more}. Use offset={offset + len(shown.lines)} to continue reading.)\n"
    return header + body


@dataclass(slots=True)
class _NumberedLines:
    lines: list[str]
    cut: bool = False
    """The only line is too long for a page."""


def _number_lines(data: bytes, offset: int, limit: int) -> _NumberedLines:
    """Return the lines at the beginning of some data that fit on a page."""
    page = _NumberedLines([])
    room = MAX_CHARS
    text = data.decode(errors="replace")
    start = 0
    while start < len(text) and len(page.lines) < limit:
        end = text.find("\n", start) + 1 or len(text)
        line = f"{offset + len(page.lines) + 1:>6}\t{text[start:end]}"
        if len(line) > room:
            if not page.lines:
                page.lines.append(line[:room])
                page.cut = True
            break
        page.lines.append(line)
        room -= len(line)
        start = end
    return page


def _count_lines(fd: int, line: int) -> _LineCount:
    """Count the lines of a file, and find where one of them begins."""
    newlines = 0
    read = 0
    position = 0 if line == 0 else None
    last = b""
    while read < _MAX_SCAN:
        chunk = system.pread(fd, _CHUNK, read)
        if not chunk:
            unfinished = 1 if last not in (b"", b"\n") else 0
            lines = newlines + unfinished
            return _LineCount(lines, True, position if line < lines else None)
        count = chunk.count(b"\n")
        if position is None and newlines + count >= line:
            position = read + _end_of_line(chunk, line - newlines)
        newlines += count
        read += len(chunk)
        last = chunk[-1:]
    return _LineCount(newlines, False, position)


def _end_of_line(chunk: bytes, number: int) -> int:
    """Return the position behind the nth newline."""
    position = 0
    for _ in range(number):
        position = chunk.index(b"\n", position) + 1
    return position


def _sniff_media_type(sample: bytes) -> str:
    """Return the type of an image or PDF by its first bytes. Its name may say anything."""
    if sample.startswith(b"RIFF") and sample[8:12] == b"WEBP":
        return "image/webp"
    return next((media_type for signature, media_type in _SIGNATURES if sample.startswith(signature)), "")


def _describe_binary(fd: int, path: str, size: int, media_type: str, sample: bytes) -> str | Media:
    shown_type = media_type or mimetypes.guess_type(path)[0] or "application/octet-stream"
    header = f"[{show_path(path)} | {shown_type} | {size} bytes]\n"
    if not media_type:
        head = sample[:_HEX_BYTES]
        rows = [f"{at:08x}  {head[at : at + 16].hex(' ')}\n" for at in range(0, len(head), 16)]
        more = f"... ({size - len(head)} more bytes)\n" if size > len(head) else ""
        return f"{header}Binary file; the first bytes in hex:\n{''.join(rows)}{more}"
    if size > MAX_MEDIA:
        return f"{header}Too large to view: the limit is {MAX_MEDIA} bytes.\n"
    return Media(header, read_at(fd, 0, MAX_MEDIA, size), media_type)
