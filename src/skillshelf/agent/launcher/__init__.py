"""Starts a program under confinement: `python -I -S launcher PLAN -- PROGRAM ARGUMENT…`.

PLAN is the path of a JSON file with `level`, `writable` (folders) and `repositories` (Git directories in them). There
are three levels:

- `landlock`: the kernel refuses writes outside the writable folders, and signals and ptrace to processes outside.
- `supervised`: beyond that, calls that Landlock does not know (chmod and its relatives, connecting to Unix sockets)
  are carried out by a supervisor, on files in the writable folders only.
- `mounted`: the program gets a mount namespace in which everything outside is read-only, and so are the parts of each
  Git directory that name programs to run. The supervisor is left with the sockets.

If this system cannot set the level up, the launcher ends with REFUSED and a reason, and the program does not start.

The launcher is a process of its own, because the agent itself must not be confined. It uses the standard library
alone: started with `-I -S`, neither the workspace nor the environment chooses what Python imports before the program is
confined.
"""

from skillshelf.agent.launcher._calls import REFUSED
from skillshelf.agent.launcher._landlock import landlock_version
from skillshelf.agent.launcher._plan import open_plan

__all__ = ["REFUSED", "landlock_version", "open_plan"]
