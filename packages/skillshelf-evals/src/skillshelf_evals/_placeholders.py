"""Placeholders for the folders of a trial in recorded texts.

Each trial has a workspace of another name, and each machine has its temporary folder elsewhere. A recording must be
replayed on all of them, so these paths are replaced when it is written and put back when it is read.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Callable
from functools import lru_cache
from typing import Any

WORKSPACE = "/skillshelf-eval-workspace"
"""Stands for the workspace of a trial."""
SCRATCH = "/skillshelf-eval-scratch"
"""Stands for the temporary folder of the commands that a trial runs."""

_PREFIX = "skillshelf-"
_FOLDER_NAME = "[a-z0-9_]{8}(?![a-z0-9_-])"
# The parent folders of a workspace on another machine, whose trial is judged on this one.
_ANY_PARENTS = r"(?:/[^\s/\"'`<>|:;=,()\[\]{}\\]+)*"


def hide_folders(text: str) -> str:
    """Replace the paths of trial folders by placeholders."""
    for placeholder, pattern in _patterns(tempfile.gettempdir()).items():
        text = pattern.sub(placeholder, text)
    return text


def find_folder(text: str, placeholder: str) -> str:
    """Return the first folder that a text names of those the placeholder stands for, or else the placeholder."""
    match = _patterns(tempfile.gettempdir())[placeholder].search(text)
    return match[0] if match else placeholder


def map_texts(change: Callable[[str], str], value: Any) -> Any:
    """Return a JSON value with each of its texts changed.

    Changing the encoded JSON would miss paths with a quote, which are escaped there.
    """
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [map_texts(change, item) for item in value]
    if isinstance(value, dict):
        return {name: map_texts(change, item) for name, item in value.items()}
    return value


def hide_folders_in(value: Any) -> Any:
    """Return a JSON value with placeholders for the paths of trial folders.

    Most values, such as the schemas of tools, name none: one look at the whole spares a look at each of their texts,
    which is a twentieth of a live trial.
    """
    if _PREFIX not in json.dumps(value):
        return value
    return map_texts(hide_folders, value)


@lru_cache(maxsize=4)
def _patterns(temporary: str) -> dict[str, re.Pattern[str]]:
    # Commands see the temporary folder without links. Its path may hold spaces or brackets.
    roots = sorted({temporary, os.path.realpath(temporary)}, key=len, reverse=True)
    here = "|".join(re.escape(root) for root in roots)
    return {
        WORKSPACE: re.compile(f"(?:{here}|{_ANY_PARENTS})/{_PREFIX}eval-{_FOLDER_NAME}"),
        SCRATCH: re.compile(f"(?:{here})/{_PREFIX}{_FOLDER_NAME}"),
    }
