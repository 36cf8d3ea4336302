"""A stored text that the answer, or a file of the workspace, must equal."""

from __future__ import annotations

import os
from dataclasses import dataclass

from skillshelf.evals._paths import inside
from skillshelf.evals._trace import Trace
from skillshelf.evals.check._base import Check, Verdict
from skillshelf.evals.check._words import clip, refuse_empty
from skillshelf.files import replace_file

_LARGEST = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Golden(Check):
    """A golden check, whose text `bless` can bring up to date."""

    path: str = ""
    file: str | None = None
    """The file of the workspace that is compared; None for the answer."""
    negated: bool = False

    def below(self, folder: str, root: str) -> Golden:
        """The same, with its path taken from the folder of the case. It is written too, and never outside the root."""
        return _named(self.name, inside(root, folder, self.path), self.file, self.negated)

    def __invert__(self) -> Golden:
        """Still a golden check: whoever reads the case has yet to say which folder its path is from."""
        return _named(f"not {self.name}", self.path, self.file, not self.negated)


def golden(path: str, file: str | None = None) -> Golden:
    """The last answer, or a file of the workspace, equals the text in `path`; line ends and the last newline aside."""
    refuse_empty("golden", path=path)
    return _named(f"golden {path}" + (f" for {file}" if file else ""), path, file)


def _named(name: str, path: str, file: str | None, negated: bool = False) -> Golden:
    def look(trace: Trace) -> Verdict:
        try:
            wanted = _read(path)
        except (OSError, ValueError) as error:
            reason = "is missing" if isinstance(error, FileNotFoundError) else f"cannot be read: {error}"
            how = "write what must not come" if negated else "`skillshelf eval --update-golden` writes it from a run"
            return Verdict(False, error=f"{path} {reason}; {how}.")
        found = _found(trace, file)
        if found is None:
            return Verdict(negated, f"there is no text file {file} to compare")
        return Verdict(_same(found, wanted) != negated, _difference(found, wanted, path))

    return Golden(name, look, path=path, file=file, negated=negated)


def text_for(check: Check, trace: Trace) -> tuple[str, str] | None:
    """What a golden check would have stored, and where; None for any other check, and where there is no such text."""
    if not isinstance(check, Golden) or check.negated:  # what must not be there is not learnt from what was
        return None
    found = _found(trace, check.file)
    return None if found is None else (check.path, _normal(found) + "\n")


def store(path: str, text: str) -> bool:
    """Whether there was anything to change. Raises OSError."""
    if _is_stored(path, text):
        return False
    _write(path, text)
    return True


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
    replace_file(path, text.encode(), 0o666)


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
