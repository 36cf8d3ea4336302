"""Where a trial happened to be, taken out of what was said in it: each trial has folders of other names, each machine
has its temporary folder elsewhere, and a recording is played back on all of them.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

HERE, SCRATCH = "/skillshelf-eval-workspace", "/skillshelf-eval-scratch"
"""Stand for the workspace of a trial, and for the temporary folder of the commands that are run in it."""
_NAME = "[a-z0-9_]{8}(?![a-z0-9_-])"
# A workspace of another machine, whose trial is judged on this one: a path that nothing inside tells from its end.
_ANY = r"(?:/[^\s/\"'`<>|:;=,()\[\]{}\\]+)*"


def without_place(text: str) -> str:
    workspace, scratch = _patterns(tempfile.gettempdir())
    return scratch.sub(SCRATCH, workspace.sub(HERE, text))


def workspace_in(text: str) -> str:
    """The workspace that a text names first; the stand-in where it names none."""
    found = _patterns(tempfile.gettempdir())[0].search(text)
    return found[0] if found else HERE


def scratch_in(text: str) -> str:
    found = _patterns(tempfile.gettempdir())[1].search(text)
    return found[0] if found else SCRATCH


def everywhere(change: Callable[[str], str], value: Any) -> Any:
    """A JSON value with each of its texts changed. In the JSON itself, a path with a quote looks different."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return list(map(partial(everywhere, change), value))
    if isinstance(value, dict):
        return {name: everywhere(change, one) for name, one in value.items()}
    return value


@lru_cache(maxsize=4)
def _patterns(temporary: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """As it is on this machine, a space or a bracket in it too; commands see it without links."""
    roots = sorted({temporary, os.path.realpath(temporary)}, key=len, reverse=True)
    here = "|".join(map(re.escape, roots))
    return re.compile(f"(?:{here}|{_ANY})/skillshelf-eval-{_NAME}"), re.compile(f"(?:{here})/skillshelf-{_NAME}")
