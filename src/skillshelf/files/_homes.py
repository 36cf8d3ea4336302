"""The folders skillshelf keeps outside any workspace."""

import os
import sys
from contextlib import suppress

from skillshelf.files import system


def cache_home() -> str | None:
    """Return the folder for data that can be made again, or None if this user has none."""
    return _home("XDG_CACHE_HOME", "~/.cache", "~/Library/Caches")


def state_home() -> str | None:
    """Return the folder for data that must last: sessions and approvals."""
    return _home("XDG_STATE_HOME", "~/.local/state", "~/Library/Application Support")


def config_home() -> str | None:
    """Return the folder of the user's settings."""
    return _home("XDG_CONFIG_HOME", "~/.config", "~/Library/Application Support")


def user_skill_folders() -> list[str]:
    """Return the folders of skills a user has in every workspace, the first one first in precedence."""
    config = config_home()
    folders = [os.path.join(config, "skills")] if config else []
    return folders + [
        path for path in map(os.path.expanduser, ("~/.agents/skills", "~/.claude/skills")) if os.path.isabs(path)
    ]


def make_private_folders(path: str) -> None:
    """Create each missing folder for this user alone."""
    make_folders(path, 0o700)


def make_folders(path: str, mode: int = 0o777) -> None:
    """Create each missing folder with this mode. (`os.makedirs` gives its mode to the last one only.)"""
    if not os.path.isdir(path):
        make_folders(os.path.dirname(path), mode)
        with suppress(FileExistsError):
            system.mkdir(path, mode)


def _home(variable: str, usual: str, mac: str) -> str | None:
    base = os.environ.get(variable, "")
    if not os.path.isabs(base):
        base = os.path.expanduser(mac if sys.platform == "darwin" else usual)
    return os.path.join(base, "skillshelf") if os.path.isabs(base) else None
