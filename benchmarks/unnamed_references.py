"""Measures `reference-unnamed` on real skills.

    python -m benchmarks.unnamed_references FOLDER…                  how many references are reported
    python -m benchmarks.unnamed_references FOLDER… --sample 120     draws N of each kind, as JSON lines to judge
    python -m benchmarks.unnamed_references --rates FILE             the rates that judged lines give, with intervals

Only references whose bare name does not stand in the instructions are of interest: of these, some are reported, and
for the others the check found another way that leads to them. A judge reads the skill and says of each whether anything
names it. Tests and packaging are left out on both sides.
"""

import argparse
import json
import random
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.search.measures import wilson
from skillshelf.lint import check_skill
from skillshelf.lint._naming import is_never_loaded
from skillshelf.skillmd import Unreadable, decode, read
from skillshelf.sources import DirectorySource

SEED = 7


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference that the instructions do not name outright."""

    skill: str
    path: str
    reported: bool


def find_references(folder: Path) -> Iterator[Reference]:
    """Check each skill below a folder. A skill that is too long to be followed is passed over."""
    for found in DirectorySource(folder, "project", cache=False).refresh().values():
        if found is None or found.descriptor is None:
            continue
        skill = Path(found.descriptor.location).parent
        notes = check_skill(skill)
        if any(note.code == "check-stopped" for note in notes):
            continue
        reported = {str(Path(note.path).relative_to(skill)) for note in notes if note.code == "reference-unnamed"}
        is_cut = any(note.code == "more-faults" and "reference-unnamed" in note.message for note in notes)
        instructions = _instructions(Path(found.descriptor.location))
        for path in found.descriptor.main_references:
            is_candidate = not _is_written_in(instructions, path.rpartition("/")[2]) and not is_never_loaded(path)
            # Beyond the 20 that are shown, nobody can tell a reported file from one that is not.
            if path in reported or (is_candidate and not is_cut):
                yield Reference(str(skill.relative_to(folder)), path, path in reported)


def _instructions(file: Path) -> str:
    try:
        return read(decode(file.read_bytes()), file.parent.name).instructions
    except Unreadable:
        return ""


def _is_written_in(text: str, name: str) -> bool:
    return name in text and bool(re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-]|\.\w)", text))


def draw(references: Sequence[Reference], size: int) -> list[Reference]:
    """Draw up to `size` references that are reported, and as many that are not."""
    chance = random.Random(SEED)
    drawn = []
    for reported in (True, False):
        kind = [reference for reference in references if reference.reported is reported]
        drawn += chance.sample(kind, min(size, len(kind)))
    return drawn


def print_rates(file: Path) -> None:
    """Print how often a report is wrong, and how many of the files that nothing names are reported."""
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    frame, *judged = lines
    reported = [line for line in judged if line["reported"]]
    others = [line for line in judged if not line["reported"]]
    wrong = sum(line["named"] for line in reported)
    missed = sum(not line["named"] for line in others)
    print(f"reported: {len(reported)} of {frame['reported']:,} judged, {wrong} wrong: {_share(wrong, len(reported))}")
    print(f"not reported: {len(others)} of {frame['others']:,} judged, {missed} missed: {_share(missed, len(others))}")
    right = frame["reported"] * (1 - wrong / len(reported))
    interval = wilson(missed, len(others))
    # The more references were missed, the smaller is the share that is reported.
    middle, high, low = (
        right / (right + frame["others"] * share) for share in (missed / len(others), interval.low, interval.high)
    )
    print(f"of the files that nothing names, reported: {middle:.1%} ({low:.1%} to {high:.1%})")


def _share(hits: int, total: int) -> str:
    interval = wilson(hits, total)
    return f"{hits / total:.1%} ({interval.low:.1%} to {interval.high:.1%})"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", metavar="FOLDER", type=Path, nargs="*", help="a folder of skills")
    parser.add_argument("--sample", metavar="N", type=int, help="write N of each kind as JSON lines, to be judged")
    parser.add_argument("--most", metavar="N", type=int, default=40, help="of each kind and folder at most N (40)")
    parser.add_argument("--rates", metavar="FILE", type=Path, help="say what judged lines show")
    args = parser.parse_args()
    if args.rates:
        print_rates(args.rates)
        return 0
    references: list[Reference] = []
    for folder in args.folders:
        below = [Reference(f"{folder.name}/{each.skill}", each.path, each.reported) for each in find_references(folder)]
        print(f"{folder.name}: {sum(each.reported for each in below)} of {len(below)} reported", file=sys.stderr)
        # One repository with hundreds of alike skills must not decide the rates alone.
        references += draw(below, args.most)
    reported = sum(each.reported for each in references)
    print(json.dumps({"reported": reported, "others": len(references) - reported}))
    for each in draw(references, args.sample or 0):
        print(json.dumps({"skill": each.skill, "path": each.path, "reported": each.reported}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
