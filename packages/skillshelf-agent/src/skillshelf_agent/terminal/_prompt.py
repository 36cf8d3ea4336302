"""The menu: what it offers for the text that the user types."""

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from prompt_toolkit.application.current import get_app_or_none
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.utils import get_cwidth
from rapidfuzz import process
from rapidfuzz.distance import OSA

from skillshelf.files import is_at_or_inside
from skillshelf.slash import (
    MAX_SUGGESTIONS,
    SKILL_PREFIX,
    CommandCall,
    Commands,
    ListFiles,
    NameIndex,
    Suggestion,
    complete,
    rank,
)
from skillshelf.text import clean_line
from skillshelf.text.rendering import truncate_cells
from skillshelf_agent.terminal._views import format_tokens

# These take an entry of their menu and nothing else, so what is typed after them filters it.
_LISTS = ("/resume ", "/rewind ")
_MAX_LABEL_CELLS = 40
_MIN_LABEL_CELLS = 12
_MAX_META_CELLS = 80
# Blanks around both columns of the menu, and its scroll bar. Without room for them, the menu would cut off the cost.
_FRAME_CELLS = 6
_MAX_FILES = 50
# A folder of a million files must not stop the typing.
_MAX_ENTRIES = 5_000


class SlashCompleter(Completer):
    """Completes commands, their arguments, and files after `@`."""

    def __init__(self, commands: Commands[Any], files: ListFiles | None = None) -> None:
        self.commands = commands
        self.files = files

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        suggestions = complete(self.commands, document.text_before_cursor, files=self.files)
        app = get_app_or_none()
        columns = app.output.get_size().columns if app else 80

        label_cells = max(_MIN_LABEL_CELLS, min(_MAX_LABEL_CELLS, columns // 2))
        labels = [truncate_cells(clean_line(each.label or each.text), label_cells) for each in suggestions]
        widest = max(map(get_cwidth, labels), default=0)
        meta_cells = min(columns - widest - _FRAME_CELLS, _MAX_META_CELLS)

        widest_meta = max((get_cwidth(describe_suggestion(each, meta_cells)) for each in suggestions), default=0)
        for suggestion, label in zip(suggestions, labels, strict=True):
            meta = describe_suggestion(suggestion, meta_cells, widest_meta)
            yield Completion(suggestion.text, suggestion.start, display=label, display_meta=meta)

    def marks_first(self, typed: str, first: str) -> bool:
        """Return True if the first suggestion is marked: a command's name that begins as typed, or a choice in a list.

        Both have the slash. A skill's name may begin after `skills:`.
        """
        typed = typed.lower()
        name = first.lower()
        if typed.startswith(_LISTS):
            return len(typed.split()) > 1
        if not name.startswith("/") or typed.endswith(("/", ":", " ")):
            return False
        return name.startswith(typed) or name.replace(SKILL_PREFIX, "", 1).startswith(typed)

    def needs_arguments(self, text: str) -> bool:
        """Return True if the text is the name of a command that does nothing without arguments."""
        call = self.commands.find(text)
        if not isinstance(call, CommandCall) or call.arguments:
            return False
        return bool(call.command.usage) and not call.command.usage.startswith("[")


def describe_suggestion(suggestion: Suggestion, cells: int = _MAX_META_CELLS, width: int = 0) -> str:
    """Return the menu's text beside a suggestion: as much of its description as fits, and its cost.

    The cost stands at the right of `width` cells.
    """
    cost = "" if suggestion.cost is None else f"~{format_tokens(suggestion.cost)} tokens"
    room = cells - len(cost) - 2
    description = truncate_cells(clean_line(suggestion.meta), room) if room > 1 else ""
    if not description or not cost:
        return (description + cost).rjust(width if cost else 0)
    gap = max(2, width - get_cwidth(description) - len(cost))
    return description + " " * gap + cost


def list_workspace_files(root: str | os.PathLike[str], prefix: str, limit: int = _MAX_FILES) -> list[str]:
    """Return the files and folders of one folder that match the typed path; folders end in a slash.

    Nothing outside the root is listed, neither by `..` nor by a link. Hidden files are listed once a dot is typed, and
    `.git` never.
    """
    folder, _, typed = prefix.rpartition("/")
    parts = folder.split("/") if folder else []
    if not prefix.isprintable() or any(part in ("", ".", "..", ".git") for part in parts):
        return []

    top = os.path.realpath(root)
    # Only names are shown, and to the user who owns them: a link that changes right now gives nothing away.
    place = os.path.realpath(os.path.join(top, *parts))
    if not is_at_or_inside(place, top):
        return []

    wanted = typed.casefold()
    names = [
        name
        for name in _list_typable_names(place, top)
        if wanted in name.casefold() and name.startswith(".") == typed.startswith(".")
    ]
    names.sort(key=lambda name: (not name.casefold().startswith(wanted), name.casefold()))
    return [f"{folder}/{name}" if folder else name for name in names[:limit]]


def _list_typable_names(place: str, top: str) -> Iterator[str]:
    try:
        with os.scandir(place) as entries:
            for entry in islice(entries, _MAX_ENTRIES):
                if not entry.name.isprintable() or '"' in entry.name or entry.name == ".git":
                    continue
                if entry.is_symlink() and not is_at_or_inside(os.path.realpath(entry.path), top):
                    continue
                yield f"{entry.name}/" if entry.is_dir() else entry.name
    except OSError:  # no such folder, or not ours to read: nothing to offer
        return


def rank_with_typos(query: str, names: NameIndex, limit: int = MAX_SUGGESTIONS) -> list[int]:
    """Return the indexes of the names that fit a query: as spelled, then with typos, then by description."""
    return rank(query, names, limit, _count_typos)


def _count_typos(query: str, texts: Sequence[str]) -> dict[int, int]:
    """Return the indexes of the texts that begin almost like the query, each with its number of typos.

    A typo is a letter that is wrong, missing, too many, or swapped with the next.
    """
    size = len(query)
    if size < 3:
        return {}
    allowed = 1 if size < 6 else 2

    typos: dict[int, int] = {}
    # A letter that is missing or too many shifts where the typed part of a text ends.
    for length in range(max(3, size - 1), size + 2):
        beginnings = [text[:length] for text in texts]
        matches = process.extract(query, beginnings, scorer=OSA.distance, score_cutoff=allowed, limit=None)
        for _, distance, index in matches:
            typos[index] = min(int(distance), typos.get(index, allowed))
    return typos
