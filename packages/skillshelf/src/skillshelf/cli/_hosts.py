"""`skillshelf check --hosts`: which skills of a repository other agents see, and how they load a skill."""

import argparse
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from skillshelf.cli._errors import CommandError
from skillshelf.cli._output import Output, shown_path
from skillshelf.cli._workspace import locate_workspace
from skillshelf.sources.workspace import Workspace
from skillshelf.text import clean_line, count_noun, list_names
from skillshelf.text.tables import Cell, Column

if TYPE_CHECKING:
    from skillshelf.lint.hosts import Advice, HostRecord, HostVerdict, MappedSkill, Sighting

# -- the skills of a repository ----------------------------------------------------------------------------------------


_STYLES = {
    "seen": "green",
    "exposed": "yellow",
    "cut": "yellow",
    "altered": "yellow",
    "refused": "red",
    "unread": "dim",
}
_UNREAD = "-"
_MAX_ROWS = 40
"""Skills that get a line each. With more, skills and folders that look the same share a line."""
_NAMES_SHOWN = 3
_MAX_COMMAND = 400


@dataclass(frozen=True, slots=True)
class _View:
    """A map, ready to be shown."""

    workspace: Workspace
    skills: "Sequence[MappedSkill]"
    records: "Sequence[HostRecord]"
    advice: "Sequence[Advice]"
    notes: Sequence[str]


def show_map(args: argparse.Namespace, out: Output) -> int:
    """Print which hosts see which skills of the workspace.

    Return 0 if every host sees every skill as written, and 1 if one does not.
    """
    from skillshelf.lint.hosts import advise, load_records, map_skills

    workspace = locate_workspace(args)
    records = [record for host, record in load_records().items() if not args.host or host in args.host]
    skills = map_skills(workspace, records)
    if not skills:
        raise CommandError(f"there is no skill in {shown_path(workspace.root)}", code="no-skills")

    advice = advise(skills, workspace, records)
    view = _View(workspace, skills, records, advice, _find_space_notes(skills, records))
    if args.json:
        out.print_json(_map_as_json(view))
    else:
        _print_view(view, out, is_grouped=len(skills) > _MAX_ROWS, all_hosts=not args.host)
    return 0 if all(skill.is_seen_by_all for skill in skills) else 1


def _find_space_notes(skills: "Sequence[MappedSkill]", records: "Sequence[HostRecord]") -> list[str]:
    """Return a note for each program that shows fewer characters of descriptions than there are."""
    notes = []
    for index, record in enumerate(records):
        shown = [skill for skill in skills if skill.sightings[index].state == "seen"]
        written = sum(skill.description_length for skill in shown)
        if record.space.total is not None and written > record.space.total:
            notes.append(
                f"{record.host} shortens its list: the descriptions here have {written:,} characters, "
                f"and it showed {record.space.total:,} when it was measured"
            )
    return notes


def _print_view(view: _View, out: Output, *, is_grouped: bool, all_hosts: bool) -> None:
    programs = [record for record in view.records if record.kind == "program" or not all_hosts]
    libraries = [record for record in view.records if record not in programs]
    columns = [Column("skill"), *(Column(record.host) for record in programs)]
    if libraries:
        columns.append(Column("libraries"))

    for section in _list_sections(view.skills, is_grouped):
        out.print_styled(section.title, "bold")
        rows: list[list[str | Cell]] = []
        for row in section.rows:
            rows.append([row.title, *_make_cells(row.sightings, len(programs))])
        out.print_table(columns, rows)
        out.print()

    _print_advice(view, out)
    for note in view.notes:
        out.print_styled(f"note: {note}")
    versions = ", ".join(f"{record.host} {record.version}" for record in view.records)
    out.print_styled(f"measured: {versions}", "dim")
    seen = sum(skill.is_seen_by_all for skill in view.skills)
    total = len(view.skills)
    style = "green" if seen == total else "yellow"
    out.print_styled(f"{count_noun(total, 'skill')}: {seen:,} seen as written by every host", style)


@dataclass(frozen=True, slots=True)
class _Row:
    title: str
    sightings: "tuple[Sighting, ...]"


@dataclass(frozen=True, slots=True)
class _MapSection:
    """The skills of one folder, or of several that look the same."""

    title: str
    rows: Sequence[_Row]


def _list_sections(skills: "Sequence[MappedSkill]", is_grouped: bool) -> list[_MapSection]:
    """Return a section for each folder. If they are grouped, what looks the same is shown once."""
    folders: dict[str, list[MappedSkill]] = {}
    for skill in skills:
        folders.setdefault(os.path.dirname(skill.folder), []).append(skill)
    if not is_grouped:
        sections = []
        for folder, group in folders.items():
            sections.append(
                _MapSection(f"{shown_path(folder)}/", [_Row(skill.name, skill.sightings) for skill in group])
            )
        return sections

    alike: dict[frozenset[tuple[Sighting, ...]], list[str]] = {}
    for folder, group in folders.items():
        alike.setdefault(frozenset(skill.sightings for skill in group), []).append(folder)
    return [_merge_folders(names, folders) for names in alike.values()]


def _merge_folders(names: Sequence[str], folders: "Mapping[str, Sequence[MappedSkill]]") -> _MapSection:
    title = f"{shown_path(names[0])}/"
    if len(names) > 1:
        title += f" and {count_noun(len(names) - 1, 'more folder')}"
    groups: dict[tuple[Sighting, ...], list[str]] = {}
    for name in names:
        for skill in folders[name]:
            groups.setdefault(skill.sightings, []).append(skill.name)
    rows = []
    for sightings, skills in groups.items():
        rows.append(_Row(skills[0] if len(skills) == 1 else count_noun(len(skills), "skill"), sightings))
    return _MapSection(title, rows)


def _make_cells(sightings: "Sequence[Sighting]", programs: int) -> list[str | Cell]:
    cells: list[str | Cell] = []
    for sighting in sightings[:programs]:
        text = _UNREAD if sighting.state == "unread" else sighting.state
        cells.append(Cell(text, _STYLES[sighting.state]))
    others = sightings[programs:]
    if others:
        seen = sum(sighting.state == "seen" for sighting in others)
        cells.append(Cell(f"{seen} of {len(others)}", "green" if seen == len(others) else "yellow"))
    return cells


def _print_advice(view: _View, out: Output) -> None:
    if not view.advice:
        return
    title = "What to change"
    if view.workspace.root != os.getcwd():
        title += f", with commands for {shown_path(view.workspace.root)}"
    out.print_styled(title, "bold")
    for advice in view.advice:
        names = list_names(advice.skills, _NAMES_SHOWN)
        out.print_styled(clean_line(advice.change), indent=2)
        out.print_styled(clean_line(f"for {', '.join(advice.hosts)}: {names}"), "dim", indent=6)
        if len(advice.command) > _MAX_COMMAND or not advice.command.isprintable():
            out.print_styled("(--json has the command)", "dim", indent=6)
        elif advice.command:
            # Never wrapped: each line of a pasted command runs by itself, and begins with a name from the workspace.
            out.print(f"      {advice.command}")
    out.print()


def _map_as_json(view: _View) -> dict[str, Any]:
    hosts = [
        {"name": record.host, "kind": record.kind, "version": record.version, "measured": record.measured}
        for record in view.records
    ]
    skills = [
        {
            "name": skill.name,
            "path": skill.folder,
            "places": [path.folder for path in skill.paths],
            "hosts": [_sighting_as_json(sighting) for sighting in skill.sightings],
        }
        for skill in view.skills
    ]
    advice = [asdict(each) for each in view.advice]
    return {
        "root": view.workspace.root,
        "workspace": view.workspace.folder,
        "hosts": hosts,
        "skills": skills,
        "advice": advice,
        "notes": list(view.notes),
    }


def _sighting_as_json(sighting: "Sighting") -> dict[str, Any]:
    return {"host": sighting.host, "status": sighting.state, "because": list(sighting.because)}


# -- skills at a path --------------------------------------------------------------------------------------------------


_HOST_COLUMNS = (Column("host"), Column("outcome"), Column("reason"))


@dataclass(frozen=True, slots=True)
class _HostReport:
    """How hosts treat one skill."""

    path: str
    conditions: list[str]
    verdicts: "list[HostVerdict]"

    @property
    def is_loaded_as_written(self) -> bool:
        return all(verdict.is_as_written for verdict in self.verdicts)


def check_hosts(paths: Sequence[str], hosts: Sequence[str], out: Output, *, as_json: bool) -> int:
    """Print how hosts load the skills at these paths, wherever they are.

    Return 0 if every host loads every skill as written, and 1 if one does not.
    """
    reports: list[_HostReport] = []
    for path in paths:
        reports.extend(_judge_skills(os.path.abspath(path), hosts))
    if not reports:
        places = ", ".join(shown_path(os.path.abspath(path)) for path in paths)
        raise CommandError(f"there is no skill in {places}", code="no-skills")

    faultless = sum(report.is_loaded_as_written for report in reports)
    if as_json:
        out.print_json({"skills": [_host_report_as_json(report) for report in reports]})
    else:
        for report in reports:
            if not report.is_loaded_as_written or len(reports) == 1:
                _print_host_report(report, out)
        style = "green" if faultless == len(reports) else "yellow"
        out.print_styled(
            f"{count_noun(len(reports), 'skill')} checked: {faultless:,} loaded as written by every host", style
        )
    return 0 if faultless == len(reports) else 1


def _judge_skills(path: str, hosts: Sequence[str]) -> Iterator[_HostReport]:
    from skillshelf.lint.hosts import find_file_conditions, find_skill_files, is_nested, judge_conditions
    from skillshelf.sources import SKILL_FILES

    if os.path.basename(path) in SKILL_FILES and not os.path.isdir(path):
        path = os.path.dirname(path)
    if not os.path.isdir(path):
        return
    for key, file in find_skill_files(path):
        conditions = find_file_conditions(file, nested=is_nested(path, key))
        yield _HostReport(f"{file.folder}/{file.name}", conditions, judge_conditions(conditions, hosts))


def _host_report_as_json(report: _HostReport) -> dict[str, object]:
    from skillshelf.lint.hosts import CONDITIONS

    conditions = [{"code": code, **asdict(CONDITIONS[code])} for code in report.conditions]
    return {
        "location": report.path,
        "conditions": conditions,
        "hosts": [asdict(verdict) for verdict in report.verdicts],
    }


def _print_host_report(report: _HostReport, out: Output) -> None:
    from skillshelf.lint.hosts import CONDITIONS

    out.print_styled(shown_path(report.path), "bold")
    rows: list[list[str | Cell]] = []
    fixes: dict[str, None] = {}
    for verdict in report.verdicts:
        conditions = [CONDITIONS[code] for code in verdict.because]
        outcome = Cell(verdict.makes.replace("-", " "), _style_verdict(verdict))
        reasons = "; ".join(condition.says for condition in conditions)
        rows.append([f"{verdict.host} {verdict.version}", outcome, reasons])
        fixes.update(dict.fromkeys(f"{condition.says}: {condition.fix}" for condition in conditions))
    out.print_table(_HOST_COLUMNS, rows)
    for fix in fixes:
        out.print_styled(f"fix: {fix}", indent=4)
    out.print()


def _style_verdict(verdict: "HostVerdict") -> str:
    if verdict.is_as_written:
        return "green"
    if verdict.makes in ("exposes", "truncates"):
        return "yellow"
    return "red"
