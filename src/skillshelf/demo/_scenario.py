"""What happens in the demonstration: the user's side of it, and the files that come with the package."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

LINES = ("Write the release notes for v1.2.", "/context")
"""The lines that are typed for the user."""
ANSWER = "y"
"""The key that is pressed for the user when the agent asks."""
_HERE = os.path.dirname(os.path.abspath(__file__))
_HOMES = ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")


def script_path() -> str:
    """Return the path of the model's side: a script as `skillshelf chat --model script:FILE` reads it."""
    return os.path.join(_HERE, "script.json")


@contextmanager
def copy_workspace() -> Iterator[str]:
    """Yield a throw-away copy of the workspace.

    Until it is removed, the copy's neighbour is the home folder of this process: settings, sessions, approvals and
    skills of the user play no part, and nothing is written among them.
    """
    with tempfile.TemporaryDirectory(prefix="skillshelf-demo-") as folder:
        workspace = os.path.join(folder, "workspace")
        shutil.copytree(os.path.join(_HERE, "workspace"), workspace)
        home = os.path.join(folder, "home")
        os.mkdir(home)

        before = {variable: os.environ.get(variable) for variable in _HOMES}
        os.environ.update(dict.fromkeys(_HOMES, home))
        try:
            yield workspace
        finally:
            for variable, value in before.items():
                if value is None:
                    os.environ.pop(variable, None)
                else:
                    os.environ[variable] = value
