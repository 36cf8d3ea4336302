"""Checks of skills on disk: a SKILL.md, a skill's folder, or all skills below a folder."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from skillshelf.catalog import Catalog, Place
from skillshelf.descriptor import Diagnostic, SkillDescriptor
from skillshelf.files import NotPlainFile, open_below, read_file, walk
from skillshelf.found import Found
from skillshelf.lint._format import check_format, first_line
from skillshelf.lint._markdown import check_markdown
from skillshelf.lint._references import check_content, check_listed, check_named, check_unlisted, checking_effort
from skillshelf.listing import DEFAULT_BUDGET, make_listing
from skillshelf.pages import PAGE_BYTES
from skillshelf.skillmd import MAX_FILE, SkillText, Unreadable, decode, read
from skillshelf.sources import MAX_DEPTH, SKILL_FILES, SKIPPED_FOLDERS, DirectorySource
from skillshelf.tokens import estimate

# A skill with ten thousand faults of one kind does not list them all.
_MAX_LISTED_FAULTS = 20
# Limits for one skill, so that no folder takes seconds: files, bytes of text, and microseconds of parsing. Of 2,079
# public skills, one exceeds them.
_MAX_FILES = 5_000
_MAX_TEXT = 2_000_000
_MAX_EFFORT = 1_000_000
# Enough to see that a file is binary, and enough of a file that holds data.
_SAMPLE_BYTES = 64 * 1024
_DATA_ENDINGS = (".json", ".jsonl", ".csv", ".tsv", ".xml", ".xsd", ".svg", ".html", ".ipynb", ".log", ".sql")


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The number of skills that were checked, and the faults in them."""

    skills: int
    diagnostics: list[Diagnostic]


def check_path(path: str | os.PathLike[str], *, strict: bool = False) -> list[Diagnostic]:
    """Check a skill's folder, a SKILL.md, or all the skills below a folder.

    If `strict`, every field that the format does not know is an error, as it is to the format's own validator.
    """
    return check_tree(path, strict=strict).diagnostics


def check_skill(folder: str | os.PathLike[str], *, strict: bool = False) -> list[Diagnostic]:
    """Check one skill's folder."""
    folder = os.path.abspath(folder)
    if not os.path.lexists(folder):
        return [_make_error(folder, "path-missing", "the path does not exist", "name a skill's folder")]
    if not os.path.isdir(folder):
        return [_make_error(folder, "not-a-folder", "Not a directory", "name the folder that holds the SKILL.md")]
    source = DirectorySource(folder, "project", cache=False)
    found = source.refresh().get("")
    if found is None or not any(os.path.lexists(f"{source.root}/{name}") for name in SKILL_FILES):
        message = "Missing required file: SKILL.md not found in this folder"
        return [*(found.diagnostics if found else ()), _make_error(folder, "skill-file-missing", message, "write one")]
    return _sort(_check_found(source.root, "", found, strict))


def check_tree(path: str | os.PathLike[str], *, strict: bool = False) -> CheckReport:
    """Check a path like `check_path`, and count the skills there."""
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
    catalog = _make_catalog(scanned)
    diagnostics += catalog.diagnostics
    diagnostics += _check_listing_size(catalog, source.root)
    if not catalog and not any(note.severity == "error" for note in diagnostics):
        # A check of nothing must not pass: the folder was renamed, or the wrong one was given.
        diagnostics.append(
            _make_error(path, "no-skill", "there is no skill in it or below", "`skillshelf new NAME` makes one")
        )
    skills = sum(found.descriptor is not None for found in scanned.values())
    return CheckReport(skills, _sort(diagnostics))


def _make_error(path: str, code: str, message: str, fix: str) -> Diagnostic:
    return Diagnostic("error", code, message, path, fix=fix)


def _sort(notes: Sequence[Diagnostic]) -> list[Diagnostic]:
    return sorted(notes, key=lambda note: (note.path, note.line, note.code, note.message))


def _make_catalog(found: Mapping[str, Found]) -> Catalog:
    """Return a catalog of the skills without their faults: its own diagnostics are about names that collide."""
    changes = {Place.of(0, key): Found(scanned.descriptor) for key, scanned in found.items()}
    return Catalog().apply(changes)[0]


def _check_listing_size(catalog: Catalog, root: str) -> Iterator[Diagnostic]:
    tokens = make_listing(catalog, "catalog", DEFAULT_BUDGET, estimate, lambda skill: "").tokens
    if tokens > DEFAULT_BUDGET:
        message = (
            f"the descriptions of its {len(catalog)} skills take {tokens:,} tokens in every call; "
            f"a listing has room for {DEFAULT_BUDGET:,} and shortens them"
        )
        fix = "keep fewer skills here, shorten descriptions, or give some `disclosure: manual` under `metadata:`"
        yield Diagnostic("warning", "crowded", message, root, fix=fix)


def _check_found(root: str, key: str, found: Found, strict: bool) -> list[Diagnostic]:
    """Check one place of a scan: the scan's own faults, the rules of the format, and the references."""
    skill = found.descriptor
    text = _read_text(root, key, skill) if skill else None
    if skill is None or text is None:
        return list(found.diagnostics)
    folder, _, file = skill.location.rpartition("/")
    # check_format reports these again, by the stricter rules of the format.
    read_faults = {replace(note, path=skill.location) for note in text.diagnostics}
    notes = [note for note in found.diagnostics if note not in read_faults]
    name = folder.rpartition("/")[2]
    notes += [replace(note, path=skill.location) for note in check_format(text, name, strict=strict)]
    existing = _find_files(folder)
    for note in _check_references(root, key, skill, text, existing, file):
        notes.append(replace(note, path=f"{folder}/{note.path}"))
    return list(_limit_faults(notes, skill.location))


def _read_text(root: str, key: str, skill: SkillDescriptor) -> SkillText | None:
    """Return the SKILL.md, or None if it became unreadable since the scan a moment ago."""
    folder, _, file = skill.location.rpartition("/")
    try:
        data = read_file(root, _split_path(key, file), 0, MAX_FILE + 1).data
        return read(decode(data), folder.rpartition("/")[2])
    except (Unreadable, NotPlainFile, OSError):
        return None


def _find_files(folder: str) -> frozenset[str]:
    """Return the paths of all plain files below a folder.

    Folders that cannot be entered are left out; the scan of the skill reports them.
    """
    try:
        with open_below(folder, ()) as top:
            entries = walk(top, lambda entry: entry.name not in SKIPPED_FOLDERS, max_depth=MAX_DEPTH)
            return frozenset(entry.path for entry in entries if entry.kind == "file")
    except (OSError, NotPlainFile):
        return frozenset()


def _split_path(key: str, path: str) -> list[str]:
    return f"{key}/{path}".lstrip("/").split("/")


def _check_references(
    root: str, key: str, skill: SkillDescriptor, text: SkillText, existing: frozenset[str], file: str
) -> Iterator[Diagnostic]:
    # Blank lines in place of the frontmatter, so that the lines are those of the file.
    instructions = "\n" * (first_line(text) - 1) + text.instructions
    yield from check_markdown(file, instructions.encode("utf-8", "surrogatepass"), existing)
    for number, note in enumerate(check_listed(skill.references, existing)):
        # To find the line of each takes a search of its own, and no more than these are shown.
        yield _point_to_entry(note, text, file) if number < _MAX_LISTED_FAULTS else note
    if text.optional.listed is not None:
        yield from check_unlisted(skill.references, existing)

    references = [path for path in skill.references if path in existing]
    others = sorted(existing.difference(references, [file]))
    files = _read_files(root, key, [*references, *others], len(references))
    yield from files.faults
    yield from _check_contents(files, references, existing, file)
    # A file that was not read may name any other.
    if files.is_complete:
        yield from check_named(references, existing, text.text, files.contents)


def _point_to_entry(note: Diagnostic, text: SkillText, file: str) -> Diagnostic:
    """Point to the entry that lists a file, because a missing file has no lines of its own."""
    at = text.text.find(note.path, 0, text.body)
    line = text.text.count("\n", 0, at) + 1 if at >= 0 else 1
    return replace(note, path=file, line=line, message=f"{note.path!r}: {note.message}")


@dataclass(slots=True)
class _Files:
    """The text files of a skill, as far as they were read."""

    contents: dict[str, bytes]
    faults: list[Diagnostic]
    is_complete: bool = True


def _read_files(root: str, key: str, paths: Sequence[str], references: int) -> _Files:
    """Read the files that hold text. The first `references` of the paths must be readable."""
    files = _Files({}, [])
    size = 0
    for number, path in enumerate(paths):
        if number >= _MAX_FILES or size >= _MAX_TEXT:
            files.is_complete = False
            break
        try:
            page = read_file(root, _split_path(key, path), 0, _SAMPLE_BYTES)
            is_checked = path.lower().endswith((".md", ".markdown", ".py"))
            if b"\0" in page.data and not is_checked:
                continue
            if page.size > _SAMPLE_BYTES and not path.lower().endswith(_DATA_ENDINGS):
                page = read_file(root, _split_path(key, path), 0, PAGE_BYTES)
        except (NotPlainFile, OSError) as error:
            if number < references:
                files.faults.append(_make_unreadable_fault(path, error))
            continue
        if page.size <= PAGE_BYTES:
            files.contents[path] = page.data
            size += len(page.data)
        elif number < references and is_checked:
            message = f"the file has {page.size:,} bytes, more than one load brings; it is not looked into"
            fix = "split it into files by subject"
            files.faults.append(Diagnostic("warning", "reference-too-large", message, path, fix=fix))
    return files


def _make_unreadable_fault(path: str, error: NotPlainFile | OSError) -> Diagnostic:
    reason = error.reason if isinstance(error, NotPlainFile) else error.strerror
    message = f"the reference cannot be read: {reason}"
    return Diagnostic("error", "reference-unreadable", message, path, fix="put a plain file there that can be read")


def _check_contents(
    files: _Files, references: Sequence[str], existing: frozenset[str], file: str
) -> Iterator[Diagnostic]:
    """Check the references one by one, up to the limit of effort."""
    effort = 0
    skipped = 0
    for path in references:
        data = files.contents.get(path)
        if data is None:
            continue
        effort += checking_effort(path, data, existing)
        if effort <= _MAX_EFFORT:
            yield from check_content(path, data, existing)
        else:
            skipped += 1
    if skipped or not files.is_complete:
        unread = f"{skipped:,} references are not checked" if skipped else "names are not followed from file to file"
        message = f"the skill has more text than a check goes through: {unread}"
        yield Diagnostic("warning", "check-stopped", message, file, fix="keep fewer or smaller files in one skill")


def _limit_faults(notes: Sequence[Diagnostic], location: str) -> Iterator[Diagnostic]:
    """Yield the first faults of each kind, and count the rest."""
    counts: Counter[str] = Counter()
    for note in notes:
        counts[note.code] += 1
        if counts[note.code] <= _MAX_LISTED_FAULTS:
            yield note
    for code, count in counts.items():
        if count > _MAX_LISTED_FAULTS:
            message = f"{count - _MAX_LISTED_FAULTS} more of {code} in this skill are not listed"
            yield Diagnostic("warning", "more-faults", message, location, fix="fix those listed, then check again")
