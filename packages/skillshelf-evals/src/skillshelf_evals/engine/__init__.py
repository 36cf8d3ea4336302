"""Running a plan here and on other machines, so that an interrupted run loses nothing that was paid for."""

from skillshelf_evals._run_folder import (
    RunFolder,
    begin_run,
    lock_run,
    make_run_folder,
    read_run_folder,
)
from skillshelf_evals.engine._estimate import estimate_plan, name_judges, name_models
from skillshelf_evals.engine._guard import Price, SpendingLimits
from skillshelf_evals.engine._models import Options, RunModels
from skillshelf_evals.engine._runner import PackedPlan, finish_run, leave_server, run_plan, run_worker
from skillshelf_evals.engine._store import open_file_store

__all__ = [
    "Options",
    "PackedPlan",
    "Price",
    "RunFolder",
    "RunModels",
    "SpendingLimits",
    "begin_run",
    "estimate_plan",
    "finish_run",
    "leave_server",
    "lock_run",
    "make_run_folder",
    "name_judges",
    "name_models",
    "open_file_store",
    "read_run_folder",
    "run_plan",
    "run_worker",
]
