"""The import path of the command line: nothing in the folder that it is started in gets imported.

A cloned repository may hold a `yaml.py`, or a package of the name that the user's settings give. Python itself puts the
current folder on its path, for `python -m` and for every empty entry of PYTHONPATH.
"""

import os
import sys


def leave_out_current_folder() -> None:
    """Remove the current folder, and every folder that PYTHONPATH names relative to it, from `sys.path`.

    Python puts these before its standard library. Installed packages come after it and stay, and so does an editable
    install whose sources are in the current folder: the user installed it. A folder that PYTHONPATH names by its whole
    path stays as well, even if it is the current one: the user meant this folder, wherever the command is started.
    """
    try:
        current = os.getcwd()
    except OSError:  # the folder is gone, and with it everything that could be imported from it
        return

    entries = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if sys.flags.ignore_environment:  # python -E and -I
        entries = []
    unsafe = {os.path.realpath(entry) for entry in entries if not os.path.isabs(entry)}
    unsafe.add(os.path.realpath(current))
    unsafe -= {os.path.realpath(entry) for entry in entries if os.path.isabs(entry)}

    library = os.path.dirname(os.__file__)
    end = sys.path.index(library) if library in sys.path else len(sys.path)
    sys.path[:end] = [entry for entry in sys.path[:end] if os.path.realpath(entry) not in unsafe]


def _is_started_by_name() -> bool:
    """Return True while Python is about to run `python -m skillshelf`, or a module inside it."""
    words = getattr(sys, "argv", [])
    if words[:1] != ["-m"]:  # as Python leaves it until the module is found
        return False
    module = sys.orig_argv[-len(words)].removeprefix("-m")
    return module.partition(".")[0] == "skillshelf"


# The package imports this module first. `python -m skillshelf` imports the package before any line of `__main__` runs.
if _is_started_by_name():
    leave_out_current_folder()
