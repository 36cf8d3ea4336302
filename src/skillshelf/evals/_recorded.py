"""The models of a recording: what each was like, and which of them is meant."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from skillshelf.errors import EvalError
from skillshelf.evals._tape import AGAIN, MODEL, names_in, read, short, write


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a stand-in must be like, so that the agent treats it as the model."""

    id: str
    name: str
    system: str
    profile: dict[str, Any]
    settings: dict[str, Any]
    tools: bool
    window: int
    wanted: str = ""
    """The model that a case or a check is for; empty for the run's own."""
    names: list[str] = field(default_factory=list)
    """What else it is called: as `--model` had it."""

    def is_called(self, name: str) -> bool:
        return name in (self.id, self.name, self.wanted, *self.names)

    def keep(self, folder: str) -> None:
        write(folder, f"{MODEL}{short(f'{self.id} {self.wanted}')}.json", asdict(self))


_FIELDS = frozenset(one.name for one in fields(Recorded))


def recorded(folder: str, name: str = "", usual: str = "") -> Recorded:
    """The model of this name; without one, the run's own, of several the `usual`. Raises EvalError."""
    files = [read(folder, file) for file in names_in(folder, MODEL)]
    known = [Recorded(**one) for one in files if one.keys() == _FIELDS]
    if not known:
        older = " but those of another version of skillshelf" if files else ""
        raise EvalError(f"{folder} has no recordings{older}", AGAIN)
    if name:
        found = [one for one in known if one.is_called(name)]
    else:
        own = [one for one in known if not one.wanted] or known
        found = [one for one in own if usual and one.is_called(usual)] or own
    if not found:
        raise EvalError(f"{folder} has nothing that {name} said, but of {_ids(known)}", AGAIN)
    if len({one.id for one in found}) > 1:
        raise EvalError(f"{folder} has what several models said: {_ids(found)}", "Choose one with --model")
    return found[0]


def _ids(models: Iterable[Recorded]) -> str:
    return ", ".join(sorted({one.id for one in models}))
