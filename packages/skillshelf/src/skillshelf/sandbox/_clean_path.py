"""The PATH of a sandboxed program: none of its folders is in the workspace."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from functools import cache

from skillshelf.files import is_at_or_inside

_PROBE_SECONDS = 30.0
_PASSED_ON = ("HOME", "LANG", "LC_ALL", "LC_CTYPE")
"""The variables of the user that a script or a command gets beside PATH."""


class CleanPath:
    """The user's PATH without the folders that a workspace can fill."""

    def __init__(self, workspace: str, path: str | None = None) -> None:
        """`workspace`: the root of the repository. `path` is that of the environment by default."""
        folders = (os.environ.get("PATH", os.defpath) if path is None else path).split(os.pathsep)
        self.folders = tuple(folder for folder in dict.fromkeys(folders) if _is_outside(folder, workspace))
        self.text = os.pathsep.join(self.folders)
        self._workspace = workspace

    def find(self, name: str) -> str | None:
        """Return the path of a program, or None if it is not installed outside the workspace."""
        found = shutil.which(name, path=self.text)
        if found is None or not _is_outside(os.path.realpath(found), self._workspace):
            return None
        return found

    def find_python(self) -> str | None:
        """Return the path of the user's own Python.

        A shim (pyenv, asdf) chooses the version by files in the folder it is started in. So it is asked in another
        folder which Python it means, and that one is used.
        """
        for name in ("python3", "python"):
            found = self.find(name)
            if found is not None:
                return _ask_python(found, self.text)
        return None

    def make_environment(self, others: Mapping[str, str]) -> dict[str, str]:
        """Return an environment with this path, the user's home and language, and these other variables."""
        passed = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        return {**passed, "PATH": self.text, **others}


def _is_outside(folder: str, workspace: str) -> bool:
    return os.path.isabs(folder) and not is_at_or_inside(os.path.realpath(folder), os.path.realpath(workspace))


@cache
def _ask_python(program: str, path: str) -> str | None:
    command = [program, "-I", "-S", "-c", "import sys; print(sys.executable)"]
    environment = {**os.environ, "PATH": path}
    try:
        answer = subprocess.run(
            command, cwd="/", env=environment, capture_output=True, text=True, timeout=_PROBE_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    python = answer.stdout.strip()
    return python if os.path.isabs(python) else None
