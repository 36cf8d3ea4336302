"""Check skills on disk: a SKILL.md, a skill's folder, or all skills below a folder."""

import os
import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from skillshelf.files import NotPlainFile, Page, TreeEntry, is_at_or_inside, open_below, read_file, split_below, walk
from skillshelf.lint._fields import find_instructions_line
from skillshelf.lint._format import check_format, check_template_text
from skillshelf.lint._limits import MAX_EFFORT, MAX_FILES, MAX_LISTED_FAULTS, MAX_SEARCHED_ENTRIES, MAX_TEXT_BYTES
from skillshelf.lint._references import (
    check_content,
    check_listed,
    check_markdown,
    check_named,
    check_unlisted,
    estimate_effort,
)
from skillshelf.listing import DEFAULT_BUDGET, make_listing
from skillshelf.shelf.pages import PAGE_BYTES
from skillshelf.skillmd import MAX_FILE, SkillText, Unreadable, decode, read
from skillshelf.skills import Catalog, Diagnostic, Found, Place, SkillDescriptor
from skillshelf.sources import MAX_DEPTH, SKILL_FILES, SKIPPED_FOLDERS, DirectorySource
from skillshelf.text.tokens import estimate

# Enough to see that a file is binary or a code skill, and enough of a file that holds data.
_SAMPLE_BYTES = 64 * 1024
_DATA_ENDINGS = (".json", ".jsonl", ".csv", ".tsv", ".xml", ".xsd", ".svg", ".html", ".ipynb", ".log", ".sql")
_CHECKED_ENDINGS = (".md", ".markdown", ".py")


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The number of skills that were checked, and the faults in them."""

    skills: int
    diagnostics: list[Diagnostic]


def check_path(path: str | os.PathLike[str], *, strict: bool = False) -> list[Diagnostic]:
    """Check a skill's folder, a SKILL.md, or all the skills below a folder.

    If `strict`, every departure from the format is an error: fields that it does not know, and values in other forms.
    """
    return check_tree(path, strict=strict).diagnostics


def check_skill(folder: str | os.PathLike[str], *, strict: bool = False) -> list[Diagnostic]:
    """Check one skill's folder."""
    folder = os.path.abspath(folder)
    if not os.path.lexists(folder):
        return [Diagnostic("error", "path-missing", "the path does not exist", folder, fix="name a skill's folder")]
    if not os.path.isdir(folder):
        fix = "name the folder that holds the SKILL.md"
        return [Diagnostic("error", "not-a-folder", "Not a directory", folder, fix=fix)]

    source = DirectorySource(folder, "project", cache=False)
    found = source.refresh().get("")
    has_skill_file = any(os.path.lexists(f"{source.root}/{name}") for name in SKILL_FILES)
    if found is None or not has_skill_file:
        diagnostics: list[Diagnostic] = []
        if found is not None:
            diagnostics += found.diagnostics
        message = "Missing required file: SKILL.md not found in this folder"
        diagnostics.append(Diagnostic("error", "skill-file-missing", message, folder, fix="write one"))
        return diagnostics
    return _sort(_check_found(source.root, "", found, strict))


def check_tree(
    path: str | os.PathLike[str],
    *,
    strict: bool = False,
    here: str | os.PathLike[str] | None = None,
    package_folders: Collection[str] = (),
) -> CheckReport:
    """Check a path like `check_path`, and count the skills there.

    `here` is the folder that the user works in: of skills with one name, those farther from it are shadowed.
    `package_folders` are the real paths of packages whose code skills are checked by `check_code_skills`.
    """
    path = os.path.abspath(path)
    if os.path.basename(path) in SKILL_FILES and not os.path.isdir(path):
        return CheckReport(1, check_skill(os.path.dirname(path), strict=strict))
    if not os.path.isdir(path):
        return CheckReport(0, check_skill(path, strict=strict))

    source = DirectorySource(path, "project", cache=False)
    scanned = {key: found for key, found in source.refresh().items() if found}
    diagnostics: list[Diagnostic] = []
    for key, found in scanned.items():
        diagnostics += _check_found(source.root, key, found, strict)
    key_here = "/".join(split_below(source.root, here) or ()) if here else ""
    catalog = _make_catalog(scanned, key_here)
    diagnostics += catalog.diagnostics
    diagnostics += _check_listing_size(catalog, source.root)

    if not catalog and not any(note.severity == "error" for note in diagnostics):
        # A check of nothing must not pass: the folder was renamed, or the wrong one was given.
        diagnostics += report_no_skill(path, package_folders)
    skills = sum(found.descriptor is not None for found in scanned.values())
    return CheckReport(skills, _sort(diagnostics))


def _sort(notes: Sequence[Diagnostic]) -> list[Diagnostic]:
    return sorted(notes, key=lambda note: (note.path, note.line, note.code, note.message))


def _make_catalog(scanned: Mapping[str, Found], here: str) -> Catalog:
    """Return a catalog of the skills without their faults: its own diagnostics are about names that collide."""
    changes = {Place(0, key): Found(found.descriptor) for key, found in scanned.items()}
    catalog, _ = Catalog(here=[here]).apply(changes)
    return catalog


def _check_listing_size(catalog: Catalog, root: str) -> Iterator[Diagnostic]:
    tokens = make_listing(catalog, "catalog", DEFAULT_BUDGET, estimate, lambda skill: "").tokens
    if tokens > DEFAULT_BUDGET:
        message = (
            f"the descriptions of its {len(catalog)} skills take {tokens:,} tokens in every call; "
            f"a listing has room for {DEFAULT_BUDGET:,} and shortens them"
        )
        fix = "keep fewer skills here, shorten descriptions, or give some `disclosure: manual` under `metadata:`"
        yield Diagnostic("warning", "crowded", message, root, fix=fix)


# -- one skill ---------------------------------------------------------------------------------------------------------


class _CheckedFolder:
    """The folder of a skill. Files in it are read from the root of the source, without following links."""

    def __init__(self, root: str, key: str, skill: SkillDescriptor) -> None:
        """`key` is the folder's path below the root; empty for the root itself."""
        self._root = root
        self._key = key
        self.path, _, self.skill_file = skill.location.rpartition("/")
        self.name = self.path.rpartition("/")[2]

    def read(self, path: str, limit: int) -> Page:
        """Read a file from its beginning. Raises NotPlainFile or OSError."""
        parts = f"{self._key}/{path}".lstrip("/").split("/")
        return read_file(self._root, parts, 0, limit)

    def read_skill_text(self) -> SkillText | None:
        """Return the SKILL.md, or None if it became unreadable since the scan a moment ago."""
        try:
            data = self.read(self.skill_file, MAX_FILE + 1).data
            return read(decode(data), self.name)
        except (Unreadable, NotPlainFile, OSError):
            return None

    def list_files(self) -> frozenset[str]:
        """Return the paths of all plain files below the folder.

        Folders that cannot be entered are left out; the scan of the skill reports them.
        """
        try:
            with open_below(self.path, ()) as top:
                entries = walk(top, lambda entry: entry.name not in SKIPPED_FOLDERS, max_depth=MAX_DEPTH)
                return frozenset(entry.path for entry in entries if entry.kind == "file")
        except (OSError, NotPlainFile):
            return frozenset()


def _check_found(root: str, key: str, found: Found, strict: bool) -> list[Diagnostic]:
    """Check one place of a scan: the faults of the scan, the rules of the format, and the references."""
    skill = found.descriptor
    if skill is None:
        return list(found.diagnostics)
    folder = _CheckedFolder(root, key, skill)
    text = folder.read_skill_text()
    if text is None:
        return list(found.diagnostics)

    # check_format reports these again, by the stricter rules of the format.
    read_faults = {replace(note, path=skill.location) for note in text.diagnostics}
    notes = [note for note in found.diagnostics if note not in read_faults]
    for note in check_format(text, folder.name, strict=strict):
        notes.append(replace(note, path=skill.location))
    for note in _check_references(folder, skill, text):
        notes.append(replace(note, path=f"{folder.path}/{note.path}"))
    return _limit_faults(notes, skill.location)


def _limit_faults(notes: Sequence[Diagnostic], location: str) -> list[Diagnostic]:
    """Return the first faults of each kind, and count the rest."""
    limited = []
    counts: Counter[str] = Counter()
    for note in notes:
        counts[note.code] += 1
        if counts[note.code] <= MAX_LISTED_FAULTS:
            limited.append(note)
    for code, count in counts.items():
        if count > MAX_LISTED_FAULTS:
            message = f"{count - MAX_LISTED_FAULTS} more of {code} in this skill are not listed"
            fix = "fix those listed, then check again"
            limited.append(Diagnostic("warning", "more-faults", message, location, fix=fix))
    return limited


# -- its references ----------------------------------------------------------------------------------------------------


def _check_references(folder: _CheckedFolder, skill: SkillDescriptor, text: SkillText) -> Iterator[Diagnostic]:
    """Check the references, and the links of the instructions. Paths in the diagnostics start at the skill's folder."""
    existing = folder.list_files()
    # Blank lines take the place of the frontmatter, so that line numbers are those of the file.
    instructions = "\n" * (find_instructions_line(text) - 1) + text.instructions
    yield from check_markdown(folder.skill_file, instructions.encode("utf-8", "surrogatepass"), existing)

    for number, note in enumerate(check_listed(skill.references, existing)):
        if number < MAX_LISTED_FAULTS:  # each line takes a search, and no more than these are shown
            note = _point_to_list(note, text, folder.skill_file)
        yield note
    if text.optional.listed_references is not None:
        yield from check_unlisted(skill.references, existing)

    references = [path for path in skill.main_references if path in existing]
    others = sorted(existing.difference(references, [folder.skill_file]))
    files = _read_files(folder, references, others)
    yield from files.faults
    for path, data in files.contents.items():
        yield from check_template_text(data, path)
    yield from _check_contents(files, references, existing, folder.skill_file)
    if files.is_complete:  # a file that was not read may name any other
        yield from check_named(references, existing, text.text, files.contents)


def _point_to_list(note: Diagnostic, text: SkillText, skill_file: str) -> Diagnostic:
    """Move a diagnostic about a missing file to the line of the SKILL.md that lists the file."""
    line = 1
    position = text.text.find(note.path, 0, text.body_start)
    if position >= 0:
        line = text.text.count("\n", 0, position) + 1
    return replace(note, path=skill_file, line=line, message=f"{note.path!r}: {note.message}")


@dataclass(slots=True)
class _Files:
    """The text files of a skill, as far as they were read."""

    contents: dict[str, bytes] = field(default_factory=dict)
    faults: list[Diagnostic] = field(default_factory=list)
    is_complete: bool = True


def _read_files(folder: _CheckedFolder, references: Sequence[str], others: Sequence[str]) -> _Files:
    """Read the files that hold text, the references first. Only references are reported if they cannot be read."""
    files = _Files()
    size = 0
    for number, path in enumerate([*references, *others]):
        if number >= MAX_FILES or size >= MAX_TEXT_BYTES:
            files.is_complete = False
            break
        is_reference = number < len(references)
        is_checked = path.lower().endswith(_CHECKED_ENDINGS)
        try:
            page = folder.read(path, _SAMPLE_BYTES)
            if b"\0" in page.data and not is_checked:
                continue
            if page.size > _SAMPLE_BYTES and not path.lower().endswith(_DATA_ENDINGS):
                page = folder.read(path, PAGE_BYTES)
        except (NotPlainFile, OSError) as error:
            if is_reference:
                files.faults.append(_report_unreadable(path, error))
            continue

        if page.size <= PAGE_BYTES:
            files.contents[path] = page.data
            size += len(page.data)
        elif is_reference and is_checked:
            message = f"the file has {page.size:,} bytes, more than one load returns; its content is not checked"
            fix = "split it into files by subject"
            files.faults.append(Diagnostic("warning", "reference-too-large", message, path, fix=fix))
    return files


def _report_unreadable(path: str, error: NotPlainFile | OSError) -> Diagnostic:
    reason = error.reason if isinstance(error, NotPlainFile) else error.strerror
    message = f"the reference cannot be read: {reason}"
    return Diagnostic("error", "reference-unreadable", message, path, fix="put a plain, readable file there")


def _check_contents(
    files: _Files, references: Sequence[str], existing: frozenset[str], skill_file: str
) -> Iterator[Diagnostic]:
    """Check the references one by one, up to the limit of effort."""
    effort = 0
    skipped = 0
    for path in references:
        data = files.contents.get(path)
        if data is None:
            continue
        effort += estimate_effort(path, data, existing)
        if effort <= MAX_EFFORT:
            yield from check_content(path, data, existing)
        else:
            skipped += 1

    if not skipped and files.is_complete:
        return
    consequence = "names are not followed from file to file"
    if skipped:
        consequence = f"{skipped:,} references are not checked"
    message = f"the skill has more text than a check reads: {consequence}"
    yield Diagnostic("warning", "check-stopped", message, skill_file, fix="keep fewer or smaller files in one skill")


# -- folders without a skill -------------------------------------------------------------------------------------------

_PROJECT_FILES = ("pyproject.toml", "setup.py", "setup.cfg")


def report_no_skill(folder: str, package_folders: Collection[str] = ()) -> Iterator[Diagnostic]:
    """Report a folder without a SKILL.md, and name code skills if it has some.

    Code skills in one of the `package_folders` are checked elsewhere: if there are no others, nothing is wrong.
    """
    real_folder = os.path.realpath(folder)
    if any(is_at_or_inside(real_folder, package) for package in package_folders):
        return
    checked = [
        os.path.relpath(package, real_folder) for package in package_folders if is_at_or_inside(package, real_folder)
    ]
    module = _find_code_skill(folder, checked)
    if module:
        yield _report_unchecked(folder, module)
    elif not checked:
        message = "there is no skill in this folder or below it"
        yield Diagnostic("error", "no-skill", message, folder, fix="`skillshelf new NAME` creates one")


def _find_code_skill(folder: str, left_out: Collection[str]) -> str:
    """Return the path of the first skill.py below the folder that seems to define a skill, or an empty string."""

    def enter(entry: TreeEntry) -> bool:
        return entry.name not in SKIPPED_FOLDERS and entry.path not in left_out

    try:
        with open_below(folder, ()) as top:
            entries = walk(top, enter, max_depth=MAX_DEPTH)
            for entry in islice(entries, MAX_SEARCHED_ENTRIES):
                if entry.name == "skill.py" and entry.kind == "file" and _mentions_base_class(folder, entry.path):
                    return entry.path
    except (OSError, NotPlainFile):
        pass  # what cannot be read cannot be named either
    return ""


def _mentions_base_class(folder: str, path: str) -> bool:
    try:
        return b"BaseSkill" in read_file(folder, path.split("/"), 0, _SAMPLE_BYTES).data
    except (OSError, NotPlainFile):
        return False


def _report_unchecked(folder: str, module: str) -> Diagnostic:
    package = _find_package(os.path.dirname(os.path.join(folder, module)))
    name = os.path.basename(package)
    check = f"run `skillshelf check --package {name}`"
    project = _find_project(package)
    if not name.isidentifier():
        importable_name = re.sub(r"\W|^(?=\d)", "_", name)
        fix = f"rename the folder {name!r}, which Python cannot import, for example to {importable_name!r}"
    elif project:
        fix = f"install its project with `pip install -e {shlex.quote(project)}`, then {check}"
    else:
        fix = f"install it (it has no pyproject.toml yet; `skillshelf new --package` shows how one looks), then {check}"
    message = f"there is no SKILL.md in this folder or below it; {module} is a code skill, which is not imported here"
    return Diagnostic("error", "package-unchecked", message, folder, fix=fix)


def _find_package(folder: str) -> str:
    """Return the topmost package that a folder belongs to, as far as `__init__.py` files show it."""
    while os.path.lexists(os.path.join(os.path.dirname(folder), "__init__.py")):
        folder = os.path.dirname(folder)
    return folder


def _find_project(package: str) -> str:
    """Return the nearest folder above a package that pip can install, or an empty string."""
    folder = os.path.dirname(package)
    while not any(os.path.isfile(os.path.join(folder, name)) for name in _PROJECT_FILES):
        parent = os.path.dirname(folder)
        if parent == folder:
            return ""
        folder = parent
    return folder
