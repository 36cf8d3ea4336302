"""Measuring: the best of several rounds, all that is compared taking turns so that noise hits each of them."""

import gc
import os
import time
from collections.abc import Callable

Clock = Callable[[], float]
"""Does something once and says how long it took, in seconds."""


def cpu(job: Callable[[], object]) -> float:
    """CPU seconds of this process. What the job returns is freed after the clock has stopped."""
    # A collection that the job before has left behind is not this one's.
    gc.collect()
    start = time.process_time()
    kept = job()
    seconds = time.process_time() - start
    del kept
    return seconds


def wall(job: Callable[[], object]) -> float:
    """Seconds that a person waits, for short jobs: a collection beforehand would empty the processor's caches."""
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


def best(rounds: int, *clocks: Clock) -> list[float]:
    """The least of each clock."""
    took = [[clock() for clock in clocks] for _ in range(rounds)]
    return [min(times) for times in zip(*took, strict=True)]


def per_call(job: Callable[[], object], calls: int) -> float:
    """CPU seconds of one call, for calls too short for a clock."""
    start = time.process_time()
    for _ in range(calls):
        job()
    return (time.process_time() - start) / calls


def bytecode_environment(folder: str) -> dict[str, str]:
    """Return the variables for processes that keep their bytecode in a folder: the first compiles, the others read it.

    Installed programs find their bytecode, whatever the settings of the shell that starts a benchmark.
    """
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**inherited, "PYTHONPYCACHEPREFIX": folder}
