"""Which names a source takes. File names are untrusted: they end up in prompts, on terminals and on other systems."""

import re
from functools import lru_cache

from skillshelf.files import SCRATCH_FOLDER
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

# Those of them that are proper names for a skill: skipped only where no skill is in them.
SKIPPED_UNLESS_SKILL = frozenset({"env", "venv", "virtualenv", "site-packages"})

REFERENCE_FOLDERS = ("references", "scripts", "assets")

_RESERVED = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|$)", re.I).match
_FORBIDDEN = frozenset('<>:"|?*\\/')


@lru_cache(4096)
def verdict(name: str) -> str | None:
    """Whether a file of this name is offered: empty if so, a reason if not, None if nobody means it as a reference."""
    if name[0] == "." or name.endswith((".pyc", ".pyo", "~", ".swp")) or name in ("Thumbs.db", "desktop.ini"):
        return None
    return refusal(name)


def refusal(name: str) -> str:
    """Why a file of this name is not offered on any system; empty where it is."""
    if not name.isprintable() or any(find_hidden(name)):
        return "it has a control, hidden or undecodable character"
    if not _FORBIDDEN.isdisjoint(name):
        return "it has a character that some systems give a meaning"
    if _RESERVED(name):
        return "it is a device's name on Windows"
    if name[-1] in ". ":
        return "it ends in a dot or a space"
    return ""


def path_refusal(path: str) -> str:
    """Why a listed path cannot be a file inside the skill's folder; empty where it can."""
    if not path or len(path) > 1024:
        return "it is empty or too long"
    parts = path.split("/")
    if "" in parts or "." in parts or ".." in parts or parts[0].startswith("~") or "%" in path:
        return "it must be a plain path below the skill's folder"
    return next(filter(None, map(refusal, parts)), "")
