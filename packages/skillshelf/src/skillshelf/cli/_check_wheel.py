"""`skillshelf check --wheel`: the skills that users of a wheel get, and mistakes in them."""

import argparse
import os
import tempfile
import zipfile
from dataclasses import replace

from skillshelf.cli._diagnostics import as_json, print_diagnostic
from skillshelf.cli._output import Output
from skillshelf.errors import SourceError
from skillshelf.files import make_private_folders, write_new
from skillshelf.lint import check_tree
from skillshelf.shelf import Shelf
from skillshelf.skills import Diagnostic
from skillshelf.sources import EnvironmentSource, explain_refused_path
from skillshelf.text import count_noun
from skillshelf.text.tables import Column

_COLUMNS = (Column("skill", style="bold"), Column("files", right=True), Column("tokens", right=True), Column("where"))
_MAX_BYTES = 256 * 1024 * 1024
_METADATA = ("RECORD", "METADATA", "agent_plugins.json")


def check_wheel(args: argparse.Namespace, out: Output) -> int:
    """Install the skills of a wheel in a scratch folder, and read them there as those of an environment."""
    with tempfile.TemporaryDirectory(prefix="skillshelf-") as folder:
        site = f"{os.path.realpath(folder)}/lib/python3.0/site-packages"
        unpacked = _unpack(args.wheel, site)
        project = f'[project]\ndependencies = ["{os.path.basename(args.wheel).partition("-")[0]}"]\n'
        write_new(f"{folder}/pyproject.toml", project.encode())
        source = EnvironmentSource(folder, folder)
        shelf = Shelf([source])
        notes = list(shelf.catalog.diagnostics)
        for key in source.installed:
            notes += check_tree(f"{site}/{key}", strict=args.strict).diagnostics
        rows = []
        for skill in shelf.catalog.values():
            key = os.path.dirname(os.path.relpath(skill.location, site))
            tokens = shelf.count_instructions(skill.name) or 0
            rows.append((skill.name, len(source.installed[key].files), tokens, key))

    notes = [replace(note, path=note.path.removeprefix(f"{site}/")) for note in dict.fromkeys(notes)]
    notes += _find_misplaced(unpacked, list(source.installed))
    notes = [note for note in notes if note.code not in args.ignore]
    if not rows:
        message = "users of the wheel get no skill"
        fix = "put skills into <package>/.agents/skills/<name>/SKILL.md, and have the wheel include them"
        notes.append(Diagnostic("error", "no-skill", message, args.wheel, fix=fix))
    if args.json:
        skills = [dict(zip(("name", "files", "tokens", "path"), row, strict=True)) for row in rows]
        out.print_json({"skills": skills, "diagnostics": [as_json(note) for note in notes]})
    else:
        if rows:
            out.print_table(_COLUMNS, [[name, str(files), f"{tokens:,}", key] for name, files, tokens, key in rows])
            out.print()
        for note in notes:
            print_diagnostic(note, out)
        out.print(f"{os.path.basename(args.wheel)}: users get {count_noun(len(rows), 'skill')}.")
    return 1 if any(note.severity == "error" for note in notes) else 0


def _unpack(wheel: str, site: str) -> list[str]:
    """Write the metadata of a wheel, and what may belong to its skills, into a folder. Return all its paths."""
    left = _MAX_BYTES
    try:
        with zipfile.ZipFile(wheel) as archive:
            for entry in archive.infolist():
                folder, _, name = entry.filename.rpartition("/")
                is_metadata = folder.endswith(".dist-info") and name in _METADATA
                is_skill = "/.agents/" in entry.filename or ".agent-plugin/" in entry.filename
                if not name or not (is_metadata or is_skill) or explain_refused_path(entry.filename):
                    continue
                left -= entry.file_size
                if left < 0:
                    raise SourceError(f"{wheel!r} has more than {_MAX_BYTES >> 20} MiB of skills.")
                make_private_folders(f"{site}/{folder}")
                write_new(f"{site}/{entry.filename}", archive.read(entry))
            return archive.namelist()
    except FileNotFoundError:
        raise SourceError(f"There is no wheel {wheel!r}.") from None
    except (zipfile.BadZipFile, OSError, RuntimeError, NotImplementedError) as error:
        raise SourceError(f"{wheel!r} cannot be read as a wheel: {error}.") from None


def _find_misplaced(paths: list[str], keys: list[str]) -> list[Diagnostic]:
    notes = []
    for path in paths:
        folder, _, name = path.rpartition("/")
        if name == "SKILL.md" and not any(f"{folder}/".startswith(f"{key}/") for key in keys):
            message = "users do not get this skill: it is not at <package>/.agents/skills/<name>/SKILL.md"
            fix = "move it there, if it is for users; RECORD must list its files with their hashes"
            notes.append(Diagnostic("warning", "skill-misplaced", message, path, fix=fix))
    return notes
