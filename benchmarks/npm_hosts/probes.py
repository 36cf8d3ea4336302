"""The questions that an agent is asked, each by a workspace: which folders it reads, and how it reads a file."""

import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.host_loaders import Variant, compare
from benchmarks.npm_hosts.programs import Entry, Program, Run, run_program

# -- which folders an agent reads --------------------------------------------------------------------------------------

PROJECT_FOLDERS = (
    ".agents/skills",
    ".claude/skills",
    ".codex/skills",
    ".cursor/skills",
    ".gemini/skills",
    ".github/skills",
    ".opencode/skill",
    ".opencode/skills",
    ".pi/skills",
    ".skillshelf/skills",
    "skills",
    ".",
)
HOME_FOLDERS = (
    *PROJECT_FOLDERS[:-2],
    ".config/agents/skills",
    ".config/opencode/skill",
    ".config/opencode/skills",
    ".pi/agent/skills",
)


@dataclass(frozen=True, slots=True)
class Layout:
    """A tree with folders of skills in several positions, and the folder that the agent starts in."""

    start: str
    positions: Mapping[str, str]
    """The folder of each position."""
    is_repository: bool = True


LAYOUTS = (
    Layout(start=".", positions={"here": ".", "below": "a"}),
    Layout(start="a/b", positions={"root": ".", "between": "a", "here": "a/b", "below": "a/b/c", "beside": "d"}),
    Layout(start="a/b", positions={"outside": "a", "here": "a/b", "below": "a/b/c"}, is_repository=False),
)
POSITIONS = ("here", "between", "root", "below", "beside", "outside", "home")


class Bench:
    """Runs one agent in fresh workspaces, each with a home of its own."""

    def __init__(self, program: Program, installed: Path) -> None:
        self.program = program
        self._installed = installed

    def run(self, build: Callable[[Path, Path], None], *, start: str = ".", is_repository: bool = True) -> Run:
        """Run the agent in a workspace that `build(workspace, home)` fills."""
        with tempfile.TemporaryDirectory(prefix="skills-", ignore_cleanup_errors=True) as folder:
            workspace = Path(folder, "work")
            home = Path(folder, "home")
            (workspace / start).mkdir(parents=True)
            home.mkdir()
            if is_repository:
                subprocess.run(["git", "init", "--quiet", str(workspace)], check=True)
            build(workspace, home)
            return run_program(self.program, self._installed, home, workspace / start)


def measure_folders(bench: Bench) -> dict[str, list[str]]:
    """Return the folders of skills that the agent reads, each with the positions in which it reads it."""
    positions: dict[str, set[str]] = {}
    unread: dict[str, set[str]] = {}
    for layout in LAYOUTS:
        run = bench.run(_layout_builder(layout), start=layout.start, is_repository=layout.is_repository)
        listed = {entry.name for entry in run.entries}
        for folder in PROJECT_FOLDERS:
            for position in layout.positions:
                is_read = _position_name(position, folder) in listed
                (positions if is_read else unread).setdefault(folder, set()).add(position)
    for folder, read in positions.items():
        if contradictory := read & unread.get(folder, set()):
            raise SystemExit(f"{folder} is read in one workspace and not in another: {contradictory}")

    run = bench.run(_build_home)
    listed = {entry.name for entry in run.entries}
    for folder in HOME_FOLDERS:
        if _position_name("home", folder) in listed:
            positions.setdefault(f"~/{folder}", set()).add("home")
    return {folder: sorted(read, key=POSITIONS.index) for folder, read in sorted(positions.items())}


def _layout_builder(layout: Layout) -> Callable[[Path, Path], None]:
    def build(workspace: Path, home: Path) -> None:
        for position, above in layout.positions.items():
            for folder in PROJECT_FOLDERS:
                _write_skill(workspace / above / folder, _position_name(position, folder))

    return build


def _build_home(workspace: Path, home: Path) -> None:
    for folder in HOME_FOLDERS:
        _write_skill(home / folder, _position_name("home", folder))


def _position_name(position: str, folder: str) -> str:
    words = [position, *folder.replace(".", "").split("/")]
    return "-".join(word for word in words if word)


def _write_skill(folder: Path, name: str, description: str = "Greets people by name.") -> None:
    home = folder / name
    home.mkdir(parents=True)
    (home / "SKILL.md").write_text(f"---\nname: {name}\ndescription: {description}\n---\n\nSay hello.\n")


def measure_linked_folder(bench: Bench) -> str:
    """Return `loads` if the agent reads a folder of skills that is a symlink, as `ln -s` makes it."""

    def build(workspace: Path, home: Path) -> None:
        _write_skill(workspace / "shared", "plain")
        link = workspace / bench.program.skills
        link.parent.mkdir(parents=True)
        link.symlink_to("../shared", target_is_directory=True)

    run = bench.run(build)
    return compare(Variant("", name="plain"), _found(run.entries, ["plain"]), warned="/plain/" in run.output)


# -- how an agent reads a file -----------------------------------------------------------------------------------------

BATCH = 8
BATCH_TEXT = 6_000
"""Skills in one workspace, and characters of their descriptions: few enough that no agent shortens its list."""
_CONTROL = "always-there"


@dataclass(frozen=True, slots=True)
class _Placed:
    """A variant in a workspace with others: its names differ from theirs, so that it can be told apart."""

    code: str
    variant: Variant
    mark: str
    """A word in its description, unless that has other words."""

    @property
    def words(self) -> list[str]:
        return [self.variant.name, self.variant.folder or self.variant.name]

    def is_shown_by(self, entry: Entry) -> bool:
        if entry.name in self.words or self.mark in entry.description:
            return True
        return any(f"/{word}/" in entry.location for word in self.words)


def measure_variants(bench: Bench, variants: Mapping[str, Variant]) -> dict[str, str]:
    """Return the outcome of each variant, in the words of `skillshelf.lint.hosts`."""
    outcomes: dict[str, str] = {}
    for batch in _pack(_place(variants)):
        outcomes.update(_measure_batch(bench, batch))
    return {code: outcomes[code] for code in variants}


def _pack(variants: Iterator[_Placed]) -> list[list[_Placed]]:
    """Put the variants into batches in which no two have the same name or folder."""
    batches: list[list[_Placed]] = []
    for placed in variants:
        for batch in batches:
            names = {word.lower() for other in batch for word in other.words}
            text = sum(len(other.variant.description) for other in [*batch, placed])
            if len(batch) < BATCH and text <= BATCH_TEXT and names.isdisjoint(word.lower() for word in placed.words):
                batch.append(placed)
                break
        else:
            batches.append([placed])
    return batches


def _place(variants: Mapping[str, Variant]) -> Iterator[_Placed]:
    for number, (code, variant) in enumerate(variants.items()):
        mark = f"Gre{number:03}"  # as long as the word it replaces
        data = variant.data.replace(b"Greets", mark.encode())
        description = variant.description.replace("Greets", mark)
        name = variant.name
        folder = variant.folder
        if name == "plain":
            name = f"probe-{number:03}"
            data = data.replace(b"plain", name.encode())
        if folder == "other":
            folder = f"other-{number:03}"
        yield _Placed(code, replace(variant, text=data, name=name, description=description, folder=folder), mark)


def _measure_batch(bench: Bench, batch: Sequence[_Placed]) -> dict[str, str]:
    def build(workspace: Path, home: Path) -> None:
        skills = workspace / bench.program.skills
        _write_skill(skills, _CONTROL, "Is there if nothing went wrong.")
        for placed in batch:
            _write_variant(placed.variant, skills, workspace / "elsewhere")

    run = bench.run(build)
    if _CONTROL not in [entry.name for entry in run.entries]:
        if len(batch) == 1:
            return {batch[0].code: "crashes"}
        # One of them takes its neighbours with it: ask again, each alone.
        outcomes: dict[str, str] = {}
        for placed in batch:
            outcomes.update(_measure_batch(bench, [placed]))
        return outcomes

    outcomes = {}
    for placed in batch:
        shown = [entry for entry in run.entries if placed.is_shown_by(entry)]
        found = {entry.name: entry.description for entry in shown}
        warned = any(f"/{word}/" in run.output for word in placed.words)
        outcomes[placed.code] = compare(placed.variant, found, warned)
    return outcomes


def _write_variant(variant: Variant, skills: Path, elsewhere: Path) -> None:
    folder = skills / (variant.folder or variant.name)
    if variant.nested:
        folder = skills / "group" / folder.name
    home = elsewhere / folder.name if variant.linked else folder
    home.mkdir(parents=True)
    if variant.linked:
        folder.symlink_to(Path("../../elsewhere", folder.name), target_is_directory=True)
    (home / variant.file).write_bytes(variant.data)


def _found(entries: Sequence[Entry], names: Sequence[str]) -> dict[str, str]:
    return {entry.name: entry.description for entry in entries if entry.name in names}


# -- how much an agent shows -------------------------------------------------------------------------------------------

LONG = 20_000
MANY = 100
EACH = 400


def measure_space(bench: Bench) -> dict[str, Any]:
    """Return how much of one long description, and of many skills together, reaches the model."""

    def build_long(workspace: Path, home: Path) -> None:
        _write_skill(workspace / bench.program.skills, "plain", _long_text(LONG))

    def build_many(workspace: Path, home: Path) -> None:
        for number in range(MANY):
            _write_skill(workspace / bench.program.skills, f"skill-{number:03}", _long_text(EACH))

    one = _found(bench.run(build_long).entries, ["plain"])
    names = [f"skill-{number:03}" for number in range(MANY)]
    many = _found(bench.run(build_many).entries, names)
    return {
        "one": {"written": LONG, "shown": len(one.get("plain", ""))},
        "many": {
            "skills": MANY,
            "written": EACH,
            "listed": len(many),
            "whole": sum(len(text) == EACH for text in many.values()),
            "shown": sum(len(text) for text in many.values()),
        },
    }


def _long_text(length: int) -> str:
    sentence = "Greets people by name, in the language that they speak at home. "
    return (sentence * (length // len(sentence) + 1))[: length - 1].rstrip().ljust(length - 1, "n") + "."
