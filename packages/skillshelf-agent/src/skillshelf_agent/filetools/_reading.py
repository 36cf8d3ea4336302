"""Reading a file a page at a time. However large the file is, a page takes little memory."""

import mimetypes
from dataclasses import dataclass

from skillshelf.errors import FileAccessError
from skillshelf.files import open_file_below, read_at, system
from skillshelf_agent.filetools._access import FileAccess, show_path
from skillshelf_agent.filetools._limits import MAX_CHARS, MAX_COUNTED_BYTES, MAX_LINES, MAX_MEDIA_BYTES

_CHUNK_BYTES = 1024 * 1024
_SAMPLE_BYTES = 8192
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


def read_page(access: FileAccess, path: str, offset: int = 0, limit: int | None = None) -> str | Media:
    """Return lines of a text file with their numbers, an image or PDF as it is, or a description of another file.

    `offset` counts lines from 0. Raises FileAccessError.
    """
    if offset < 0 or (limit is not None and limit < 1):
        raise FileAccessError("offset must be 0 or more, and limit 1 or more.")
    parts = access.resolve(path)
    if not parts:
        raise FileAccessError(f"{show_path(path)!r} is a folder. Use list_directory.")

    max_lines = min(limit or MAX_LINES, MAX_LINES)
    with access.explain(path, parts), open_file_below(access.root, parts) as (fd, info):
        sample = system.pread(fd, _SAMPLE_BYTES, 0)
        media_type = sniff_media_type(sample)
        if media_type:
            return _read_media(fd, path, info.st_size, media_type)
        if is_binary(sample):
            return _describe_binary(path, info.st_size)
        return _read_lines(fd, path, info.st_size, offset, max_lines)


def is_binary(data: bytes) -> bool:
    """Return True if data does not look like text: it has a NUL near its beginning."""
    return b"\0" in data[:_SAMPLE_BYTES]


def _read_lines(fd: int, path: str, size: int, offset: int, max_lines: int) -> str:
    if size == 0:
        return f"[{show_path(path)} | 0 lines]\n(empty file)\n"
    counted = _count_lines(fd, offset)
    if counted.position is None:
        if counted.is_whole:
            raise FileAccessError(
                f"Offset {offset} is past the end of {show_path(path)!r}: it has {counted.lines} lines."
            )
        raise FileAccessError(
            f"Line {offset} of {show_path(path)!r} is beyond its first {MAX_COUNTED_BYTES:,} bytes, and only those "
            "are read by line. A command can look further, if the user allows it."
        )

    # Four bytes are the most that a character takes, so this holds a page whatever it is made of.
    data = system.pread(fd, 4 * MAX_CHARS, counted.position)
    page = _number_lines(data.decode(errors="replace"), offset, max_lines)
    next_offset = offset + len(page.lines)
    remaining = counted.lines - next_offset

    header = f"{show_path(path)} | "
    if not counted.is_whole:
        header += "more than "
    header += f"{counted.lines} lines"
    if offset > 0 or remaining > 0 or page.is_cut:
        header += f" | {size} bytes"

    body = "".join(page.lines)
    if not body.endswith("\n"):
        body += "\n"
    if page.is_cut:
        body += (
            f"... (Line {offset + 1} is too long to be shown whole. "
            f"Use offset={offset + 1} to continue after it, or search_files to look into it.)\n"
        )
    elif remaining > 0:
        count = f"{remaining} more" if counted.is_whole else "more"
        body += f"... ({count} lines. Use offset={next_offset} to continue reading.)\n"
    return f"[{header}]\n{body}"


@dataclass(slots=True)
class _NumberedLines:
    lines: list[str]
    is_cut: bool = False
    """The only line is too long for a page."""


def _number_lines(text: str, offset: int, max_lines: int) -> _NumberedLines:
    """Return the lines at the beginning of a text that fit on a page, with their numbers."""
    page = _NumberedLines([])
    room = MAX_CHARS
    start = 0
    while start < len(text) and len(page.lines) < max_lines:
        end = text.find("\n", start) + 1
        if end == 0:
            end = len(text)
        number = offset + len(page.lines) + 1
        line = f"{number:>6}\t{text[start:end]}"

        if len(line) > room:
            if not page.lines:
                page.lines.append(line[:room])
                page.is_cut = True
            break
        page.lines.append(line)
        room -= len(line)
        start = end
    return page


@dataclass(frozen=True, slots=True)
class _LineCount:
    """The lines of a file, counted as far as MAX_COUNTED_BYTES."""

    lines: int
    is_whole: bool
    """All of the file was counted."""
    position: int | None
    """Where the wanted line begins; None if fewer lines were counted."""


def _count_lines(fd: int, line: int) -> _LineCount:
    """Count the lines of a file, and find where the line with this number begins, counted from 0."""
    newlines = 0
    bytes_read = 0
    last_byte = b"\n"
    position = 0 if line == 0 else None

    while bytes_read < MAX_COUNTED_BYTES:
        chunk = system.pread(fd, _CHUNK_BYTES, bytes_read)
        if not chunk:
            lines = newlines
            if last_byte != b"\n":  # the last line has no newline
                lines += 1
            if line >= lines:
                position = None
            return _LineCount(lines, True, position)

        count = chunk.count(b"\n")
        if position is None and newlines + count >= line:
            position = bytes_read + _end_of_line(chunk, line - newlines)
        newlines += count
        bytes_read += len(chunk)
        last_byte = chunk[-1:]

    return _LineCount(newlines, False, position)


def _end_of_line(chunk: bytes, number: int) -> int:
    """Return the position after the nth newline."""
    position = 0
    for _ in range(number):
        position = chunk.index(b"\n", position) + 1
    return position


def sniff_media_type(sample: bytes) -> str:
    """Return the type of an image or PDF by its first bytes, or an empty string. Its name may say anything."""
    if sample.startswith(b"RIFF") and sample[8:12] == b"WEBP":
        return "image/webp"
    for signature, media_type in _SIGNATURES:
        if sample.startswith(signature):
            return media_type
    return ""


def _read_media(fd: int, path: str, size: int, media_type: str) -> str | Media:
    header = f"[{show_path(path)} | {media_type} | {size} bytes]\n"
    if size > MAX_MEDIA_BYTES:
        return f"{header}Too large to view: the limit is {MAX_MEDIA_BYTES} bytes.\n"
    return Media(header, read_at(fd, 0, MAX_MEDIA_BYTES, size), media_type)


def _describe_binary(path: str, size: int) -> str:
    media_type = mimetypes.guess_type(path)[0] or "application/octet-stream"
    return f"[{show_path(path)} | {media_type} | {size} bytes]\nBinary file.\n"
