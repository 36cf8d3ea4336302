"""What was measured of each host. `hosts.json` is written by the scripts in `benchmarks`, never by hand."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Literal, get_args

HostOutcome = Literal["loads", "warns", "exposes", "truncates", "corrupts", "drops", "drops-silently", "crashes"]
OUTCOMES: tuple[HostOutcome, ...] = get_args(HostOutcome)
"""From the best to the worst."""
AS_WRITTEN: tuple[HostOutcome, ...] = ("loads", "warns")
"""The outcomes of a skill that reaches the model as its author wrote it."""

HostKind = Literal["program", "library"]
"""A program decides which folders it reads. A library reads the folder that its caller names."""

Position = Literal["here", "between", "root", "below", "beside", "outside", "home"]
"""Where a folder with skills is, seen from the folder that a program starts in.

`here` is that folder itself. In a repository, `root` is its root and `between` any folder on the way there. Outside a
repository, `outside` is a parent. `below` is a subfolder, `beside` any other folder, and `home` the user's home.
"""


@dataclass(frozen=True, slots=True)
class Space:
    """How much of the descriptions a program shows its model."""

    longest: int | None
    """The length to which it cuts a single description; None if it showed all of a very long one."""
    total: int | None
    """How many characters of descriptions it showed when there were many; None if it showed all of them."""


@dataclass(frozen=True, slots=True)
class HostRecord:
    """One host, as it was measured."""

    host: str
    kind: HostKind
    version: str
    package: str
    """The name in its registry: npm for programs, PyPI for libraries."""
    measured: str
    """The day, as YYYY-MM-DD."""
    how: str
    """How it was run; empty for a library, whose loader was called."""
    makes: Mapping[str, HostOutcome]
    """The outcome of each condition."""
    folders: Mapping[str, tuple[Position, ...]] = field(default_factory=dict)
    """The folders of skills that a program reads, each with the positions in which it reads it."""
    follows_linked_folders: bool = True
    """Whether it reads a folder of skills that is a symlink."""
    space: Space = Space(None, None)


@cache
def load_records() -> dict[str, HostRecord]:
    """Return the record of each host by its name: first the programs, then the libraries."""
    text = files("skillshelf.lint.hosts").joinpath("hosts.json").read_text(encoding="utf-8")
    records = [_make_record(host, values) for host, values in json.loads(text).items()]
    records.sort(key=lambda record: (record.kind == "library", record.host))
    return {record.host: record for record in records}


def _make_record(host: str, values: Mapping[str, Any]) -> HostRecord:
    common = {key: values[key] for key in ("kind", "version", "package", "measured", "makes")}
    if values["kind"] == "library":
        return HostRecord(host, how="", **common)
    folders = {folder: tuple(positions) for folder, positions in values["folders"].items()}
    return HostRecord(
        host,
        how=values["how"],
        folders=folders,
        follows_linked_folders=values["folder_linked"] in AS_WRITTEN,
        space=_make_space(values["space"]),
        **common,
    )


def _make_space(values: Mapping[str, Mapping[str, int]]) -> Space:
    one = values["one"]
    many = values["many"]
    written = many["skills"] * many["written"]
    return Space(
        longest=one["shown"] if one["shown"] < one["written"] else None,
        total=many["shown"] if many["shown"] < written else None,
    )
