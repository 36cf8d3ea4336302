"""The files of a recording: one for each call, and one for each model that was asked.

A call's file is named `call-<trial>-<repeat>-<model>-<call>-<number>.json`, where trial, model and call are digests:
what was said in one trial is no answer in another, even where the same was asked.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from skillshelf.errors import EvalError
from skillshelf.evals._place import everywhere, without_place
from skillshelf.files import replace_file

AGAIN = "`skillshelf eval --record` asks the model again"
MODEL = "model-"
_CALL = "call-"
_FILE = re.compile(r"(?:call|model)-[0-9a-f-]+\.json")


@dataclass(slots=True)
class Tape:
    """What belongs to one trial in a folder of recordings."""

    folder: str
    trial: str = ""
    """The case and the arm."""
    repeat: int = 1
    used: set[str] = field(default_factory=set)
    """The files of calls that were written for this trial."""
    _calls: Counter[str] = field(default_factory=Counter)

    def next(self, model: str, call: str) -> str:
        """The file for this call: the same one, asked for once more in a trial, has another answer."""
        start = f"{self._trial}{self.repeat}-{short(model)}-{call}-"
        self._calls[start] += 1
        return f"{start}{self._calls[start]}.json"

    def keep(self, name: str, value: Mapping[str, Any]) -> None:
        write(self.folder, name, value)
        self.used.add(name)

    def take(self, files: Mapping[str, str]) -> None:
        """What a worker recorded. Raises EvalError for anything else: it comes from a database that others write to."""
        for name, text in files.items():
            own = name.startswith((f"{self._trial}{self.repeat}-", MODEL)) and _FILE.fullmatch(name)
            try:
                value = dict(json.loads(text)) if own else None
            except (ValueError, TypeError):
                value = None
            if value is None:
                raise EvalError(f"A worker sent {name[:120]!r}, which is no recording of this trial")
            write(self.folder, name, value)
        self.used.update(name for name in files if name.startswith(_CALL))

    def prune(self) -> None:
        """The trial is over: what these models said in an earlier recording of it, nobody asks for any more."""
        models = {name.split("-")[3] for name in self.used}
        for name in names_in(self.folder, f"{self._trial}{self.repeat}-"):
            if name not in self.used and name.split("-")[3] in models:
                os.unlink(os.path.join(self.folder, name))

    def calls(self, model: str) -> list[str]:
        """The files of all that this model said in the trial, in all repeats."""
        return [name for name in names_in(self.folder, self._trial) if name.split("-")[3] == short(model)]

    @property
    def _trial(self) -> str:
        return f"{_CALL}{short(self.trial, 12)}-"


def tape_of(folder: str, trial: str, repeat: int) -> Tape | None:
    """For a trial of this id; none where there is no folder."""
    return Tape(folder, trial.removesuffix(f"#{repeat}"), repeat) if folder else None


def read(folder: str, name: str) -> dict[str, Any]:
    """Raises EvalError."""
    path = os.path.join(folder, name)
    try:
        with open(path, encoding="utf-8") as file:
            return dict(json.load(file))
    except (OSError, ValueError, TypeError) as error:
        raise EvalError(f"it is no recording: {error}", f"Remove it; {AGAIN}", path) from None


def write(folder: str, name: str, value: Mapping[str, Any]) -> None:
    """Write a recording in one step: a run may be killed at any time, and others may be writing the same file."""
    os.makedirs(folder, exist_ok=True)
    text = json.dumps(everywhere(without_place, dict(value)), ensure_ascii=False, indent=1)
    # A model can say half a character. Its escape is what JSON has for it.
    data = f"{text}\n".encode(errors="backslashreplace")
    replace_file(os.path.join(folder, name), data, 0o666)


def names_in(folder: str, prefix: str) -> list[str]:
    names = os.listdir(folder) if os.path.isdir(folder) else []
    return sorted(name for name in names if name.startswith(prefix) and name.endswith(".json"))


def short(text: str, length: int = 8) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:length]
