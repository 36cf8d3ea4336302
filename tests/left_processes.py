"""The processes that a test has left."""

import os
from pathlib import Path


def find_processes_in(folder: Path | str) -> list[str]:
    """Return the processes whose working folder this is."""
    return [pid for pid in os.listdir("/proc") if pid.isdecimal() and _read_folder(pid) == str(folder)]


def _read_folder(pid: str) -> str:
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:  # it has ended
        return ""
