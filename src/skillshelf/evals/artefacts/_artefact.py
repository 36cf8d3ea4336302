"""The artefacts of a trial as plain values: where each file is, and what was left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ArtefactKind = Literal["text", "html", "image", "other"]
"""How a page may show a file: `text` as text, `html` as text or by its `view`, `image` inline, `other` to download."""


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
    size: int
    """The size of all these files together, in bytes."""


@dataclass(frozen=True, slots=True)
class Artefacts:
    """The files of one trial: those that were kept, and those that were not."""

    files: tuple[Artefact, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


NO_ARTEFACTS = Artefacts()
