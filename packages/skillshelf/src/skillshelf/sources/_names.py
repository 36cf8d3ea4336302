"""Which file names a source accepts. They are untrusted: they end up in prompts, on terminals and on other systems."""

import re
from collections.abc import Sequence
from functools import lru_cache

from skillshelf.files import SCRATCH_FOLDER
from skillshelf.sources._limits import MAX_REFERENCE_PATH
from skillshelf.text import find_hidden

VERSION_CONTROL_FOLDERS = frozenset({".git", ".hg", ".svn", ".jj"})

# Version control, dependencies, virtual environments, caches: never an author's own skills.
SKIPPED_FOLDERS = frozenset(
    {
        *VERSION_CONTROL_FOLDERS,
        "node_modules",
        "bower_components",
        "site-packages",
        ".venv",
        "venv",
        "env",
        ".env",
        "virtualenv",
        ".tox",
        ".nox",
        "__pycache__",
        ".cache",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
        ".hypothesis",
        ".eggs",
        ".gradle",
        ".terraform",
        ".next",
        ".nuxt",
        ".parcel-cache",
        ".yarn",
        ".pnpm-store",
        ".Trash",
        SCRATCH_FOLDER,
    }
)

# These can also be the name of a skill, so they are skipped only if there is no skill in them.
SKIPPED_UNLESS_SKILL = frozenset({"env", "venv", "virtualenv", "site-packages"})

REFERENCE_FOLDERS = ("references", "scripts", "assets")
_REFERENCE_PREFIXES = tuple(f"{folder}/" for folder in REFERENCE_FOLDERS)
_FILE_IN_TEXT = re.compile(r"(?<![^\s`'\"()<>\[\]{}|*])[^\s`'\"()<>\[\]{}|*]+\.\w+")
_FEW = 50

_DEVICE_NAME = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|$)", re.I).match
_FORBIDDEN = frozenset('<>:"|?*\\/')
_BYPRODUCT_ENDINGS = (".pyc", ".pyo", "~", ".swp")
_BYPRODUCTS = ("Thumbs.db", "desktop.ini")


@lru_cache(4096)
def judge_name(name: str) -> str | None:
    """Return an empty string if a file of this name can be loaded, otherwise the reason why not.

    None means that it is not worth a word: it is hidden, or a byproduct of some program.
    """
    if name.startswith(".") or name.endswith(_BYPRODUCT_ENDINGS) or name in _BYPRODUCTS:
        return None
    return _explain_refused_name(name)


def _explain_refused_name(name: str) -> str:
    if not name.isprintable() or any(find_hidden(name)):
        return "it has a control, hidden or undecodable character"
    if not _FORBIDDEN.isdisjoint(name):
        return "it has a character that some systems give a meaning"
    if _DEVICE_NAME(name):
        return "it is a device's name on Windows"
    if name[-1] in ". ":
        return "it ends in a dot or a space"
    return ""


def explain_refused_path(path: str) -> str:
    """Return the reason why a listed path cannot be a file inside the skill's folder; empty if it can."""
    if not path or len(path) > MAX_REFERENCE_PATH:
        return "it is empty or too long"
    parts = path.split("/")
    if "" in parts or "." in parts or ".." in parts or parts[0].startswith("~") or "%" in path:
        return "it must be a plain path below the skill's folder"
    for part in parts:
        reason = _explain_refused_name(part)
        if reason:
            return reason
    return ""


def find_named(paths: Sequence[str], instructions: str) -> set[str]:
    """Return the files that the instructions name or link to. Case does not matter: they say FORMS.md of a forms.md."""
    text = instructions.lower()
    # For a few names, this takes 1 µs each. To find all names in 4 KB of text takes 70 µs.
    if len(paths) <= _FEW and "%" not in text and not any(path.lower() in text for path in paths):
        return set()

    from urllib.parse import unquote  # only skills with such files need it

    named = set()
    for word in _FILE_IN_TEXT.findall(text):
        path = unquote(word.split("#", 1)[0]).lower().removeprefix("./").lstrip("/")
        named.add(path.rstrip(".,;:!"))
    return {path for path in paths if path.lower() in named}


def is_case_file(path: str) -> bool:
    """Return True for a file of the skill's evals: a model that knows the questions proves nothing."""
    return path.startswith("evals/")


def is_in_reference_folder(path: str) -> bool:
    """Return True for a file below `references/`, `scripts/` or `assets/`."""
    return path.startswith(_REFERENCE_PREFIXES)
