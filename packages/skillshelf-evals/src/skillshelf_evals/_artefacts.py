"""Artefacts: the files that a trial created or changed, kept beside the report so that a person can open them.

An agent chooses the paths and the contents of its files, so neither is trusted. A copy gets a name of ours, and an
ending that fits its content: a browser or a file manager must not find a program or a page where the report shows a
text.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal, NamedTuple

from skillshelf.files import create_folder, system
from skillshelf.sources import SKIPPED_FOLDERS
from skillshelf.text import clean_line, decode_text
from skillshelf_evals._limits import (
    MAX_ARTEFACT_NAME,
    MAX_FILE_KEPT,
    MAX_RUN_SIZE,
    MAX_TRIAL_ARTEFACTS,
    MAX_TRIAL_SIZE,
    MAX_VIEW_SIZE,
)
from skillshelf_evals._trace import FileState, Trace

if TYPE_CHECKING:
    from jinja2 import Template


ArtefactKind = Literal["text", "html", "image", "other"]
"""How a page may show a file: `text` as text, `html` as text or by its `view`, `image` inline, `other` to download."""
ARTEFACTS_FOLDER = "artefacts"
_TRIAL_FOLDER = re.compile(r"[a-z0-9-]{1,60}-[0-9a-f]{12}")
_COPY = re.compile(r"\d{3}-[A-Za-z0-9._-]+")
_HTML_ENDINGS = (".html", ".htm", ".xhtml", ".svg")
_HTML_BEGINNING = re.compile(rb"\s*(<!doctype html|<html|<svg)", re.I)
_ZIP = b"PK\x03\x04"
# The beginnings of files that keep their endings. What a browser does with another ending is not known: some of them
# look into the file, and run what looks like HTML.
_IMAGES = {
    ".png": (b"\x89PNG\r\n\x1a\n",),
    ".jpg": (b"\xff\xd8\xff",),
    ".gif": (b"GIF87a", b"GIF89a"),
    ".webp": (b"RIFF",),
}
_DOCUMENTS = {
    ".pdf": b"%PDF-",
    ".docx": _ZIP,
    ".xlsx": _ZIP,
    ".pptx": _ZIP,
    ".odt": _ZIP,
    ".ods": _ZIP,
    ".odp": _ZIP,
    ".zip": _ZIP,
    ".gz": b"\x1f\x8b",
    ".parquet": b"PAR1",
    ".sqlite": b"SQLite format 3\0",
}


@dataclass(frozen=True, slots=True)
class Artefact:
    """A file of a trial, as it is kept in the folder of the run."""

    name: str
    """The path in the workspace. The agent chose it, so it may hold anything: show it as text, never open it."""
    path: str
    """The path of the copy, relative to the folder of the run. It has only letters, digits, `.`, `_`, `-` and `/`."""
    size: int
    """In bytes."""
    kind: ArtefactKind
    view: str = ""
    """The path of a page that shows an HTML or SVG file in a frame that runs and loads nothing; empty for other files.

    It is relative to the folder of the run, like `path`, and as safe to link to."""
    by_check: bool = False
    """True if the agent did not make the file: a command of a `run` check did."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Files of a trial that were not kept, for one reason."""

    reason: str
    """A clause for the reader, such as `larger than 8 MiB`."""
    files: int


@dataclass(frozen=True, slots=True)
class Artefacts:
    """The files of one trial: those that were kept, and those that were not."""

    files: tuple[Artefact, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


NO_ARTEFACTS = Artefacts()


class _Copy(NamedTuple):
    """How a file is kept."""

    ending: str
    kind: ArtefactKind


class ArtefactFolder:
    """The artefacts of one run, in a folder beside its report."""

    def __init__(self, run_folder: str, max_size: int = MAX_RUN_SIZE) -> None:
        self._path = os.path.join(run_folder, ARTEFACTS_FOLDER)
        self._room = max_size
        self._lock = threading.Lock()

    def clear(self) -> None:
        """Remove the artefacts of an earlier start, and nothing that anyone else may have put there."""
        for folder in _list_names(self._path, _TRIAL_FOLDER):
            path = os.path.join(self._path, folder)
            for name in _list_names(path, _COPY):
                with suppress(OSError):
                    system.unlink(os.path.join(path, name))
            with suppress(OSError):
                system.rmdir(path)

    def keep(self, trial_id: str, trace: Trace) -> Artefacts:
        """Write the files that a trial or its `run` checks made, and return what was kept and what was not.

        A file that cannot be kept is no fault of the trial, so nothing is raised.
        """
        files = {name: state for name, state in trace.files.items() if state.changed or state.by_check}
        if not files:
            return NO_ARTEFACTS

        with self._lock:  # the room is shared, and so is the folder that new ones are prepared in
            return self._keep(_name_trial(trial_id), files)

    def _keep(self, folder: str, files: Mapping[str, FileState]) -> Artefacts:
        selection = _Selection(self._room)
        for name in sorted(files, key=_rank):
            selection.add(name, files[name])

        artefacts: list[Artefact] = []
        contents: dict[str, bytes] = {}
        for number, (name, data) in enumerate(selection.chosen.items(), 1):
            copy = _decide_copy(name, data)
            file = f"{number:03}-{_clean_name(name, copy.ending)}"
            contents[file] = data
            view = ""
            if copy.kind == "html" and len(data) <= MAX_VIEW_SIZE:
                view_file = f"{file.removesuffix('.txt')}.view.html"
                contents[view_file] = _render_view(name, data)
                view = f"{ARTEFACTS_FOLDER}/{folder}/{view_file}"
            path = f"{ARTEFACTS_FOLDER}/{folder}/{file}"
            artefacts.append(Artefact(name, path, len(data), copy.kind, view, files[name].by_check))

        try:
            if os.path.islink(self._path):
                raise NotADirectoryError(f"{ARTEFACTS_FOLDER} is a link")
            if contents:
                create_folder(os.path.join(self._path, folder), contents)
        except OSError as error:
            selection.left_out[f"could not be written: {error.strerror or error}"] += len(artefacts)
            artefacts = []
        else:
            self._room -= sum(map(len, contents.values()))

        left_out = tuple(LeftOut(reason, files) for reason, files in selection.left_out.items())
        return Artefacts(tuple(artefacts), left_out)


class _Selection:
    """The files of a trial that there is room for."""

    def __init__(self, run_room: int) -> None:
        self.chosen: dict[str, bytes] = {}
        self._run_room = run_room
        self._trial_room = MAX_TRIAL_SIZE
        self.left_out: Counter[str] = Counter()
        """The number of other files by the reason."""

    def add(self, name: str, state: FileState) -> None:
        reason = self._refuse(state)
        if reason or state.data is None:
            self.left_out[reason] += 1
            return
        self.chosen[name] = state.data
        self._run_room -= state.size
        self._trial_room -= state.size

    def _refuse(self, state: FileState) -> str:
        """Return why a file is not kept, or an empty text if it is."""
        if len(self.chosen) >= MAX_TRIAL_ARTEFACTS:
            return f"beyond {MAX_TRIAL_ARTEFACTS} files of a trial"
        if state.size > MAX_FILE_KEPT:
            return f"larger than {_show_size(MAX_FILE_KEPT)}"
        if state.data is None or state.size > self._trial_room:
            return f"beyond {_show_size(MAX_TRIAL_SIZE)} of a trial"
        if state.size > self._run_room:
            return f"beyond {_show_size(MAX_RUN_SIZE)} of a run"
        return ""


def _show_size(size: int) -> str:
    return f"{size // (1024 * 1024)} MiB"


def _rank(path: str) -> tuple[bool, int, str]:
    """Order files by how likely a person wants to open them: caches and hidden folders come last."""
    *folders, _ = path.split("/")
    is_by_product = any(folder in SKIPPED_FOLDERS or folder.startswith(".") for folder in folders)
    return is_by_product, len(folders), path


def _decide_copy(name: str, data: bytes) -> _Copy:
    """Decide by the content how a file is kept: its own name decides only between things that are equally harmless."""
    for ending, beginnings in _IMAGES.items():
        if data.startswith(beginnings):
            is_image = ending != ".webp" or data[8:12] == b"WEBP"
            return _Copy(ending, "image") if is_image else _Copy(".bin", "other")

    own_ending = os.path.splitext(name)[1].lower()
    if own_ending in _DOCUMENTS and data.startswith(_DOCUMENTS[own_ending]):
        return _Copy(own_ending, "other")
    if decode_text(data) is None:
        return _Copy(".bin", "other")
    if own_ending in _HTML_ENDINGS or _HTML_BEGINNING.match(data):
        return _Copy(".txt", "html")
    return _Copy(".txt", "text")


def _clean_name(path: str, ending: str) -> str:
    """Return a file name of harmless characters that ends with `ending` and reminds of the path's last part."""
    base = re.sub(r"[^A-Za-z0-9._-]+", "_", os.path.basename(path))
    if base.lower().endswith(ending):
        base = base[: -len(ending)]
    return f"{base[:MAX_ARTEFACT_NAME].strip('.') or 'file'}{ending}"


def _name_trial(trial_id: str) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", trial_id.lower())[:MAX_ARTEFACT_NAME].strip("-")
    digest = hashlib.sha256(trial_id.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{slug or 'trial'}-{digest}"


def _list_names(folder: str, pattern: re.Pattern[str]) -> list[str]:
    """Return the names in a folder that have the form of ours; none if the folder is a link or is not there."""
    if os.path.islink(folder):
        return []
    try:
        return [name for name in system.listdir(folder) if pattern.fullmatch(name)]
    except OSError:
        return []


def _render_view(name: str, data: bytes) -> bytes:
    return _view_template().render(name=clean_line(name), text=data.decode()).encode("utf-8", "backslashreplace")


@cache
def _view_template() -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(loader=PackageLoader("skillshelf_evals", "."), autoescape=True, undefined=StrictUndefined)
    return environment.get_template("artefact.html.jinja")
