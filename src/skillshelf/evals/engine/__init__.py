"""Runs that survive: a plan is carried out here and on other machines, and what was paid for is never lost."""

from typing import TYPE_CHECKING

from skillshelf._lazy import export_lazily

if TYPE_CHECKING:
    from skillshelf.evals.engine._carry_out import Work, carry_out, finish
    from skillshelf.evals.engine._folder import RunFolder, begin, find_folder, new_folder, read_run, state_of
    from skillshelf.evals.engine._liveness import only_here
    from skillshelf.evals.engine._models import replayed
    from skillshelf.evals.engine._node import LOOK_SECONDS, server_node
    from skillshelf.evals.engine._options import PARALLEL, Options

__all__ = [
    "LOOK_SECONDS",
    "PARALLEL",
    "Options",
    "RunFolder",
    "Work",
    "begin",
    "carry_out",
    "find_folder",
    "finish",
    "new_folder",
    "only_here",
    "read_run",
    "replayed",
    "server_node",
    "state_of",
]

__getattr__ = export_lazily(
    __name__,
    {
        "_carry_out": ["Work", "carry_out", "finish"],
        "_folder": ["RunFolder", "begin", "find_folder", "new_folder", "read_run", "state_of"],
        "_liveness": ["only_here"],
        "_models": ["replayed"],
        "_node": ["LOOK_SECONDS", "server_node"],
        "_options": ["Options", "PARALLEL"],
    },
)
