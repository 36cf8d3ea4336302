"""Completion at the prompt: the pure function's candidates as a menu, and the files of the workspace."""

import os
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from prompt_toolkit.application.current import get_app_or_none
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.utils import get_cwidth

from skillshelf.slash import Candidate, Commands, Files, complete
from skillshelf.text import clean_line

_LABEL_CELLS, _LEAST_CELLS, _META_CELLS = 40, 12, 80
# Blanks around both columns of the menu, and its scroll bar. Without room, the menu would cut off the cost.
_FRAME_CELLS = 6
_MAX_FILES = 50
# A folder of a million files must not stop the typing.
_MAX_SEEN = 5_000


class SlashCompleter(Completer):
    """Commands, their arguments, and files after `@`."""

    def __init__(self, commands: Commands[Any], files: Files | None = None) -> None:
        self.commands = commands
        self.files = files

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        candidates = complete(self.commands, document.text_before_cursor, files=self.files)
        app = get_app_or_none()
        columns = app.output.get_size().columns if app else 80
        cells = max(_LEAST_CELLS, min(_LABEL_CELLS, columns // 2))
        labels = [shorten(clean_line(candidate.label or candidate.text), cells) for candidate in candidates]
        room = columns - max(map(get_cwidth, labels), default=0) - _FRAME_CELLS
        for candidate, label in zip(candidates, labels, strict=True):
            yield Completion(
                candidate.text, candidate.start, display=label, display_meta=meta(candidate, min(room, _META_CELLS))
            )


def meta(candidate: Candidate, cells: int = _META_CELLS) -> str:
    """What the menu says beside a candidate: its description, as much as there is room for, and what it costs."""
    cost = "" if candidate.cost is None else f"~{tokens(candidate.cost)} tokens"
    room = cells - len(cost) - 2
    about = shorten(clean_line(candidate.meta), room) if room > 1 else ""
    return "  ".join(filter(None, (about, cost)))


def tokens(count: int) -> str:
    """`950`, `1.2k`, `38k`."""
    if count < 1000:
        return str(count)
    return f"{count / 1000:.1f}k" if count < 9950 else f"{count / 1000:.0f}k"


def shorten(text: str, cells: int) -> str:
    """The text within so many columns of a terminal."""
    width, fits = 0, 0
    for at, char in enumerate(text):
        width += get_cwidth(char)
        if width > cells:
            return f"{text[:fits].rstrip()}…"
        if width < cells:
            fits = at + 1
    return text


def workspace_files(root: str | os.PathLike[str], prefix: str, limit: int = _MAX_FILES) -> list[str]:
    """The files and folders whose path begins like this one, one level deep: folders end in a slash.

    Nothing outside the root is listed, by `..` or by a link; hidden files only where a dot is typed, `.git` never.
    """
    folder, _, typed = prefix.rpartition("/")
    parts = folder.split("/") if folder else []
    if not prefix.isprintable() or any(part in ("", ".", "..", ".git") for part in parts):
        return []
    top = os.path.realpath(root)
    # Only names are shown, and to the person whose files they are: a link that changes right now gives nothing away.
    place = os.path.realpath(os.path.join(top, *parts))
    if not _inside(place, top):
        return []
    wanted = typed.casefold()
    found = []
    for name in _listed(place, top):
        if wanted in name.casefold() and name.startswith(".") == typed.startswith("."):
            found.append(f"{folder}/{name}" if folder else name)
    at = len(folder) + 1 if folder else 0
    found.sort(key=lambda path: (not path[at:].casefold().startswith(wanted), path.casefold()))
    return found[:limit]


def _listed(place: str, top: str) -> Iterator[str]:
    """The names in a folder that can be typed, folders with a slash."""
    try:
        with os.scandir(place) as entries:
            for entry in islice(entries, _MAX_SEEN):
                typable = entry.name.isprintable() and '"' not in entry.name and entry.name != ".git"
                if typable and (not entry.is_symlink() or _inside(os.path.realpath(entry.path), top)):
                    yield f"{entry.name}/" if entry.is_dir() else entry.name
    except OSError:  # no such folder, or not ours to read: nothing to offer
        return


def _inside(path: str, top: str) -> bool:
    return path == top or path.startswith(top.rstrip("/") + "/")
