"""A process that is killed in the middle of a file operation."""

import signal
import subprocess
import sys
from pathlib import Path

_KILL = """
import os, signal, sys
from skillshelf.files import system
setattr(system, sys.argv[1], lambda *arguments, **options: os.kill(os.getpid(), signal.SIGKILL))
"""


def die_at(operation: str, code: str, folder: Path) -> None:
    """Run code in a folder until it is about to make this call of `skillshelf.files.system`."""
    ended = subprocess.run([sys.executable, "-c", f"{_KILL}{code}", operation], cwd=folder, capture_output=True)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
