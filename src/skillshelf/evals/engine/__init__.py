"""Running a plan here and on other machines, so that an interrupted run loses nothing that was paid for."""

from typing import TYPE_CHECKING

from skillshelf._lazy import export_lazily

if TYPE_CHECKING:
    from skillshelf.evals.engine._budget import (
        HOW_TO_PRICE,
        Limits,
        Price,
        estimate_judging,
        estimate_usage,
        find_price,
    )
    from skillshelf.evals.engine._models import (
        DEFAULT_PARALLEL,
        JUDGE_ROLE,
        Options,
        find_replayed_judge,
        find_replayed_model,
    )
    from skillshelf.evals.engine._queue import RECOVERY_SECONDS, start_node
    from skillshelf.evals.engine._rejudge import judge_again
    from skillshelf.evals.engine._run_folder import (
        RunFolder,
        begin_run,
        find_run_folder,
        find_runs_folder,
        lock_run,
        make_run_folder,
        make_state_folder,
        read_run_folder,
    )
    from skillshelf.evals.engine._runner import PackedPlan, finish_run, run_plan

__all__ = [
    "DEFAULT_PARALLEL",
    "HOW_TO_PRICE",
    "JUDGE_ROLE",
    "RECOVERY_SECONDS",
    "Limits",
    "Options",
    "PackedPlan",
    "Price",
    "RunFolder",
    "begin_run",
    "estimate_judging",
    "estimate_usage",
    "find_price",
    "find_replayed_judge",
    "find_replayed_model",
    "find_run_folder",
    "find_runs_folder",
    "finish_run",
    "judge_again",
    "lock_run",
    "make_run_folder",
    "make_state_folder",
    "read_run_folder",
    "run_plan",
    "start_node",
]

__getattr__ = export_lazily(
    __name__,
    {
        "_budget": ["HOW_TO_PRICE", "Limits", "Price", "estimate_judging", "estimate_usage", "find_price"],
        "_models": ["DEFAULT_PARALLEL", "JUDGE_ROLE", "Options", "find_replayed_judge", "find_replayed_model"],
        "_queue": ["RECOVERY_SECONDS", "start_node"],
        "_rejudge": ["judge_again"],
        "_run_folder": [
            "RunFolder",
            "begin_run",
            "find_run_folder",
            "find_runs_folder",
            "lock_run",
            "make_run_folder",
            "make_state_folder",
            "read_run_folder",
        ],
        "_runner": ["PackedPlan", "finish_run", "run_plan"],
    },
)
