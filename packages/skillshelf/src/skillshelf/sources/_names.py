"""Which file names a source accepts. They are untrusted: they end up in prompts, on terminals and on other systems."""

import re
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
