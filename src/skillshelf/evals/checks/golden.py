"""A stored text that the answer, or a file of the workspace, must equal."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass

from skillshelf.evals.checks.base import Check, Verdict
from skillshelf.evals.checks.words import clip
from skillshelf.evals.paths import inside
from skillshelf.evals.trace import Trace

_LARGEST = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Golden(Check):
    """A golden check, which `update_golden` can bring up to date."""

    path: str = ""
    file: str | None = None
    """The file of the workspace that is compared; None for the answer."""

    def below(self, folder: str, root: str) -> Golden:
        """The same, with its path taken from the folder of the case. It is written too, and never outside the root."""
        return _named(self.name, inside(root, folder, self.path), self.file)


def golden(path: str, file: str | None = None) -> Golden:
    """The last answer, or a file of the workspace, equals the text in `path`; line ends and the last newline aside."""
    return _named(f"golden {path}" + (f" for {file}" if file else ""), path, file)


def _named(name: str, path: str, file: str | None) -> Golden:
    def look(trace: Trace) -> Verdict:
        try:
            wanted = _read(path)
        except (OSError, ValueError) as error:
            reason = "is missing" if isinstance(error, FileNotFoundError) else f"cannot be read: {error}"
            return Verdict(False, f"{path} {reason}; `skillshelf eval --update-golden` writes it from this run")
        found = _found(trace, file)
        if found is None:
            return Verdict(False, f"there is no text file {file} to compare")
        return Verdict(_same(found, wanted), _difference(found, wanted, path))

    return Golden(name, look, path, file)


def update_golden(checks: Iterable[Check], trace: Trace) -> tuple[str, ...]:
    """Store what this trial gave as what is right, for all golden checks among these; the files that changed."""
    changed = []
    for check in checks:
        found = _found(trace, check.file) if isinstance(check, Golden) else None
        if isinstance(check, Golden) and found is not None and not _is_stored(check.path, found):
            _write(check.path, _normal(found) + "\n")
            changed.append(check.path)
    return tuple(changed)


def _found(trace: Trace, file: str | None) -> str | None:
    if file is None:
        return trace.answer
    state = trace.files.get(file)
    return state.text if state else None


def _is_stored(path: str, found: str) -> bool:
    try:
        return _same(found, _read(path))
    except (OSError, ValueError):
        return False


def _read(path: str) -> str:
    # Without O_NONBLOCK a named pipe in its place would hold the run up for good.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        data = file.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise ValueError(f"it is larger than {_LARGEST // 1024} KiB")
    return data.decode("utf-8-sig")


def _write(path: str, text: str) -> None:
    folder = os.path.dirname(path) or "."
    os.makedirs(folder, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=folder, encoding="utf-8", newline="\n", delete=False) as file:
        file.write(text)
    os.chmod(file.name, 0o644)  # a temporary file is for its owner alone, and this one is for a repository
    os.replace(file.name, path)


def _normal(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n")


def _same(one: str, other: str) -> bool:
    return _normal(one) == _normal(other)


def _difference(found: str, wanted: str, path: str) -> str:
    """The first line that differs."""
    if _same(found, wanted):
        return f"it equals {path}"
    ours, theirs = _normal(found).split("\n"), _normal(wanted).split("\n")
    at = next((at for at, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), min(len(ours), len(theirs)))
    shown = [repr(clip(lines[at])) if at < len(lines) else "the end" for lines in (ours, theirs)]
    return f"line {at + 1} is {shown[0]}; {path} has {shown[1]}"
