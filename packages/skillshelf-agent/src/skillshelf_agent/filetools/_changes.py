"""A write that a tool is about to make: the file, the version it replaces, and the new content."""

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from skillshelf.errors import FileAccessError
from skillshelf.files import ABSENT, read_version, replace_below
from skillshelf.text import count_noun, decode_text
from skillshelf_agent.filetools._access import FileAccess, Parts, show_path
from skillshelf_agent.filetools._limits import MAX_CHANGED_BYTES, MAX_LINE_PAIRS

_CONTEXT_LINES = 3


@dataclass(frozen=True)
class Replacement:
    """An exact replacement: `old_text` must occur exactly once."""

    old_text: str
    new_text: str


@dataclass(frozen=True, slots=True)
class Change:
    """A file's new content, and the version that it replaces."""

    parts: Parts
    path: str
    """The real path of the file."""
    shown: str
    """The path as the model wrote it."""
    old: str | None
    """The text before; empty for a new file, None for a file that is not text."""
    new: str
    old_sha256: str
    """The hash of the content that is replaced; empty for a new file."""
    result: str
    """What the model gets when it is made."""

    @property
    def diff(self) -> str:
        """The change as a unified diff."""
        if self.old is None:
            name = show_path(self.shown)
            added = [f"+{line}" for line in _split_lines(self.new)]
            return "\n".join([f"--- a/{name} (not text)", f"+++ b/{name}", *added])
        return diff_texts(self.old, self.new, self.shown)


def propose_change(access: FileAccess, tool: str, arguments: dict[str, Any]) -> Change:
    """Return the change that a call of `write_file` or `edit_file` would make. Raises FileAccessError."""
    path = arguments["path"]
    if tool == "write_file":
        return _propose_write(access, path, arguments["content"])
    pairs = _collect_replacements(arguments.get("old_text"), arguments.get("new_text"), arguments.get("replacements"))
    return _propose_edit(access, path, pairs)


def _propose_write(access: FileAccess, path: str, content: str) -> Change:
    """Return the change that gives a file this content. Raises FileAccessError."""
    parts = access.resolve_target(path)
    _check_encodable(content)
    with access.explain(path, parts):
        version = read_version(access.root, parts, MAX_CHANGED_BYTES)

    return Change(
        parts=parts,
        path=access.real_path(parts),
        shown=path,
        old=decode_text(version.data),
        new=content,
        old_sha256=version.sha256,
        result=f"Wrote {len(content)} chars ({count_noun(_count_lines(content), 'line')}) to {path}.",
    )


def _propose_edit(access: FileAccess, path: str, replacements: Sequence[Replacement]) -> Change:
    """Return the change that makes these replacements in a file. Raises FileAccessError."""
    parts = access.resolve_target(path)
    with access.explain(path, parts):
        version = read_version(access.root, parts, MAX_CHANGED_BYTES)
        if version.sha256 == ABSENT:
            raise FileNotFoundError

    old = decode_text(version.data)
    if old is None:
        raise FileAccessError(f"{show_path(path)!r} is not a text file in UTF-8; edit_file edits only such files.")
    new = _replace_all(old, replacements, path)
    _check_encodable(new)

    return Change(
        parts=parts,
        path=access.real_path(parts),
        shown=path,
        old=old,
        new=new,
        old_sha256=version.sha256,
        result=f"Edited {path}.",
    )


def apply_change(access: FileAccess, change: Change) -> None:
    """Write the file, if it is still the version that the change replaces.

    Raises FileChanged if it is not, and FileAccessError if the write fails.
    """
    with access.explain(change.shown, change.parts):
        replace_below(
            access.root, change.parts, change.new.encode(), expected=change.old_sha256, limit=MAX_CHANGED_BYTES
        )


def _collect_replacements(
    old_text: str | None, new_text: str | None, replacements: Sequence[Replacement] | None
) -> Sequence[Replacement]:
    """Return the replacements of a call, which come as one pair or as a list. Raises FileAccessError."""
    if old_text is not None and new_text is not None and not replacements:
        return [Replacement(old_text=old_text, new_text=new_text)]
    if replacements and old_text is None and new_text is None:
        return replacements
    raise FileAccessError("Give either old_text and new_text, or a list of replacements.")


def _replace_all(text: str, replacements: Sequence[Replacement], path: str) -> str:
    for number, replacement in enumerate(replacements, 1):
        label = "old_text"
        if len(replacements) > 1:
            label = f"old_text of replacement {number}"
        old_text = replacement.old_text
        if not old_text:
            raise FileAccessError(f"{label} is empty. Give the exact text to replace.")

        count = text.count(old_text)
        if count == 0:
            hint = ""
            if "\r\n" in text and "\n" in old_text and "\r\n" not in old_text:
                hint = " The file's lines end in CRLF."
            raise FileAccessError(f"{label} not found in {show_path(path)}.{hint} No changes were written.")
        if count > 1:
            raise FileAccessError(
                f"{label} found {count} times in {show_path(path)}. Include more of the text around it, so that it is "
                "found once. No changes were written."
            )
        text = text.replace(old_text, replacement.new_text)
    return text


def _count_lines(text: str) -> int:
    lines = text.count("\n")
    return lines if text.endswith("\n") or not text else lines + 1


def _check_encodable(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise FileAccessError(
            "The text has half of a character pair (a lone surrogate), which no file can hold."
        ) from None


def diff_texts(old: str, new: str, path: str) -> str:
    """Return the difference between two texts of a file as a unified diff; an empty string if there is none."""
    return "\n".join(_diff_lines(_split_lines(old), _split_lines(new), show_path(path)))


def _split_lines(text: str) -> list[str]:
    """Split a text at line feeds only, and mark a last line that has none."""
    lines = text.split("\n")
    last = lines.pop()
    if last:
        lines.append(f"{last}\n\\ No newline at end of file")
    return lines


def _diff_lines(old: list[str], new: list[str], name: str) -> Iterator[str]:
    """Yield a unified diff. If the part that differs is too long to compare, all of it counts as replaced."""
    start = _count_common(old, new)
    common_end = _count_common(old[start:][::-1], new[start:][::-1])
    old_end = len(old) - common_end
    new_end = len(new) - common_end
    removed = old[start:old_end]
    added = new[start:new_end]
    if len(removed) * len(added) <= MAX_LINE_PAIRS:
        yield from difflib.unified_diff(old, new, f"a/{name}", f"b/{name}", lineterm="", n=_CONTEXT_LINES)
        return

    first = max(0, start - _CONTEXT_LINES)
    before = old[first:start]
    after = old[old_end : old_end + _CONTEXT_LINES]
    old_count = len(before) + len(removed) + len(after)
    new_count = len(before) + len(added) + len(after)

    yield f"--- a/{name}"
    yield f"+++ b/{name}"
    yield f"@@ -{first + 1},{old_count} +{first + 1},{new_count} @@"
    for line in before:
        yield f" {line}"
    for line in removed:
        yield f"-{line}"
    for line in added:
        yield f"+{line}"
    for line in after:
        yield f" {line}"


def _count_common(old: list[str], new: list[str]) -> int:
    """Return how many lines at the beginning are the same."""
    count = 0
    for old_line, new_line in zip(old, new, strict=False):
        if old_line != new_line:
            break
        count += 1
    return count
