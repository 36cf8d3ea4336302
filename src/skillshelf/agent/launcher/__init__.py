"""Starts a program under confinement: `python -I -S launcher PLAN -- PROGRAM ARGUMENT…`.

PLAN is the path of a JSON file with `level`, `writable` (folders) and `repositories` (Git directories in them). There
are three levels:

- `landlock`: the kernel refuses writes outside the writable folders, and signals and ptrace to processes outside.
- `supervised`: in addition, a supervisor carries out the calls that Landlock does not know (chmod and its relatives,
  connecting to Unix sockets), and does so on files in the writable folders only.
- `mounted`: the program gets a mount namespace in which everything outside is read-only, and so are the parts of each
  Git directory that name programs to run. The supervisor is left with the sockets.

If this system cannot set the level up, the launcher prints the reason and exits with status 125. The program does not
start.

Read the modules in this order: `_plan` (the request), `_start` (the processes), `_confine` (the steps of each level),
`_mounts`, `_git`, `_landlock` and `_filter` (one step each), `_supervisor` and `_request` (calls that wait for a
decision). `_kernel` makes the system calls that Python has no function for.

The launcher is a process of its own, because the agent itself must not be confined. It uses the standard library
alone: started with `-I -S`, neither the workspace nor the environment chooses what Python imports before the program is
confined.
"""

from skillshelf.agent.launcher._landlock import landlock_version
from skillshelf.agent.launcher._plan import launch_command, open_plan

__all__ = ["landlock_version", "launch_command", "open_plan"]
