"""`skillshelf check --hosts`: what the loaders of other agents make of the skills below a path."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from skillshelf.cli._output import Output, complain, plural, shown_path
from skillshelf.files import NotPlainFile, read_file
from skillshelf.lint.hosts import CONDITIONS, WORDS, Verdict, conditions, judge
from skillshelf.skillmd import MAX_FILE
from skillshelf.sources import SKILL_FILES, find_skill_places
from skillshelf.tables import Cell, Column

_STYLES = dict(zip(WORDS, ("green", "green", "yellow", "red", "red", "red", "red"), strict=True))
_COLUMNS = (Column("HOST"), Column("MAKES OF IT"), Column("BECAUSE"))


@dataclass(frozen=True, slots=True)
class _Judged:
    path: str
    conditions: list[str]
    verdicts: list[Verdict]

    @property
    def fits(self) -> bool:
        """Whether every host gives a model what the author wrote."""
        return all(one.makes in ("loads", "warns") for one in self.verdicts)


def run_hosts(paths: Sequence[str], out: Output, as_json: bool) -> int:
    """0 where every host loads every skill as it is written, 1 where one does not, 2 where there is no skill."""
    judged = [one for path in paths for one in _judged(os.path.abspath(path))]
    if not judged:
        complain(
            f"skillshelf check: there is no skill in {', '.join(shown_path(os.path.abspath(one)) for one in paths)}"
        )
        return 2
    if as_json:
        out.print_json({"skills": [_as_json(one) for one in judged]})
    else:
        for one in judged:
            if not one.fits or len(judged) == 1:
                _print(one, out)
        fitting = sum(one.fits for one in judged)
        style = "green" if fitting == len(judged) else "yellow"
        out.print_styled(f"{plural(len(judged), 'skill')} checked: {fitting:,} loaded as written by every host", style)
    return 0 if all(one.fits for one in judged) else 1


def _judged(path: str) -> Iterator[_Judged]:
    if os.path.basename(path) in SKILL_FILES and not os.path.isdir(path):
        path = os.path.dirname(path)
    if not os.path.isdir(path):
        return
    # The shelf takes a skill from where it really lies, and only inside the folder; a host meets the link itself.
    for key in find_skill_places(path):
        folder = os.path.join(path, key).rstrip("/")
        linked = os.path.islink(folder)
        root = os.path.realpath(folder) if linked else os.path.realpath(path)
        # In the order of preference, and by the name it really has, where a disk knows no capitals.
        file = next((name for name in SKILL_FILES if name in _names(folder)), "")
        if file and (data := _read(root, "" if linked else key, file)) is not None:
            found = conditions(data, os.path.basename(folder), file=file, nested=_is_nested(path, key), linked=linked)
            yield _Judged(f"{folder}/{file}", found, judge(found))


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _read(root: str, key: str, file: str) -> bytes | None:
    try:
        return read_file(root, f"{key}/{file}".lstrip("/").split("/"), 0, MAX_FILE + 1).data
    except (NotPlainFile, OSError):
        return None  # `check` itself says why


def _is_nested(checked: str, key: str) -> bool:
    """True if the skill lies below a folder called `skills`, which hosts scan, but not directly in it.

    Only the checked folder and those below it count: the folders above say nothing about where a host will look.
    """
    folders = [os.path.basename(checked), *key.split("/")][:-1]
    return "skills" in folders and folders[-1] != "skills"


def _as_json(one: _Judged) -> dict[str, object]:
    found = [{"code": code, **asdict(CONDITIONS[code])} for code in one.conditions]
    return {"path": one.path, "conditions": found, "hosts": [asdict(verdict) for verdict in one.verdicts]}


def _print(one: _Judged, out: Output) -> None:
    out.print_styled(shown_path(one.path), "bold")
    rows = []
    for verdict in one.verdicts:
        because = "; ".join(CONDITIONS[code].says for code in verdict.because)
        makes = Cell(verdict.makes.replace("-", " "), _STYLES[verdict.makes])
        rows.append((f"{verdict.host} {verdict.version}", makes, because))
    out.print_table(_COLUMNS, rows)
    blamed = dict.fromkeys(code for verdict in one.verdicts for code in verdict.because)
    for fix in dict.fromkeys(f"{CONDITIONS[code].says}: {CONDITIONS[code].fix}" for code in blamed):
        out.print_styled(f"fix: {fix}", indent=4)
    out.print()
