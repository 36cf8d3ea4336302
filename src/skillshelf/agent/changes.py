"""A write that a tool is about to do: which file it means, and what it would make of it."""

import difflib
import os
from dataclasses import dataclass
from typing import Any

from skillshelf.files import NotPlainFile, read_file

_MAX_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class Change:
    """What is known before the write happens."""

    path: str
    """The real path of the file, links followed; empty for what is no path."""
    shown: str = ""
    """The path as the model wrote it."""
    old: str = ""
    new: str | None = None
    """The text afterwards; None where it cannot be told."""

    @property
    def diff(self) -> str:
        if self.new is None:
            return ""
        old, new = self.old.splitlines(), self.new.splitlines()
        return "\n".join(difflib.unified_diff(old, new, f"a/{self.shown}", f"b/{self.shown}", lineterm=""))


def change_of(root: str, tool: str, arguments: dict[str, Any]) -> Change:
    """For a call of `write_file` or `edit_file`. Nothing outside the root is read, and no link is followed to read."""
    shown = str(arguments.get("path", ""))
    try:
        path = os.path.realpath(os.path.join(root, shown))
    except ValueError:  # a NUL: the tool itself says so
        return Change("", shown)
    if not path.startswith(root.rstrip("/") + "/"):
        return Change(path, shown)
    old = _current(root, path)
    if old is None:
        return Change(path, shown)
    new = arguments.get("content") if tool == "write_file" else _edited(old, arguments)
    return Change(path, shown, old, new if isinstance(new, str) else None)


def _current(root: str, path: str) -> str | None:
    """The text of a file, empty where there is none; None for what is no text, or no plain file."""
    try:
        data = read_file(root, path[len(root.rstrip("/")) + 1 :].split("/"), 0, _MAX_BYTES).data
        return data.decode()
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except (OSError, NotPlainFile, UnicodeDecodeError):
        return None


def _edited(text: str, arguments: dict[str, Any]) -> str | None:
    for pair in arguments.get("replacements") or [arguments]:
        old, new = (pair.get(key) if isinstance(pair, dict) else getattr(pair, key, None) for key in _PAIR)
        if not isinstance(old, str) or not isinstance(new, str) or text.count(old) != 1:
            return None
        text = text.replace(old, new)
    return text


_PAIR = ("old_text", "new_text")
