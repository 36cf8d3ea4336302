"""A process that does one job as often as it is told to: for what needs a fresh process, or another environment.

Run by other environments too, so a job imports what it needs itself, before the clock starts.
"""

import gc
import json
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from benchmarks import floors
from benchmarks.clock import cpu

ROOT = Path(__file__).resolve().parents[1]

Job = Callable[[], tuple[float, int]]
"""A value, mostly CPU seconds, and how many skills were found."""


class WorkerError(Exception):
    """The job could not be done, or found other skills than there are."""


class Worker:
    """The parent's side. Use as a context manager; call it for a value."""

    def __init__(self, job: str, folder: str, count: int, python: str = sys.executable) -> None:
        self._job, self._count = job, count
        self._process = subprocess.Popen(
            [python, "-m", "benchmarks.worker", job, folder],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def __enter__(self) -> "Worker":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()

    def __call__(self) -> float:
        assert self._process.stdin
        assert self._process.stdout
        try:
            self._process.stdin.write("go\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise WorkerError(f"{self._job} does not start") from None
        answer = self._process.stdout.readline()
        if not answer:
            raise WorkerError(f"{self._job} failed")
        value, found = json.loads(answer)
        if found != self._count:
            raise WorkerError(f"{self._job} found {found} of {self._count} skills")
        return float(value)


def once(job: str, folder: str, count: int) -> float:
    """A value from a fresh process."""
    with Worker(job, folder, count) as worker:
        return worker()


def _timed(discover: Callable[[], tuple[int, object]]) -> Job:
    """`discover` gives the number of skills, and what is to be kept until the clock has stopped."""

    def job() -> tuple[float, int]:
        found: list[tuple[int, object]] = []
        seconds = cpu(lambda: found.append(discover()))
        return seconds, found[0][0]

    return job


def _shelf(folder: str, cache: bool) -> Callable[[], tuple[int, object]]:
    from skillshelf import DirectorySource, Shelf

    def discover() -> tuple[int, object]:
        shelf = Shelf([DirectorySource(folder, cache=cache)])
        return len(shelf.catalog), shelf

    return discover


def _cold(folder: str) -> Job:
    return _timed(_shelf(folder, cache=False))


def _warm(folder: str) -> Job:
    return _timed(_shelf(folder, cache=True))


def _stat_floor(folder: str) -> Job:
    paths = floors.known_paths(folder)

    def discover() -> tuple[int, object]:
        floors.stat_all(paths)
        return len(paths) // 3, None

    return _timed(discover)


def _memory(folder: str) -> Job:
    discover = _shelf(folder, cache=False)

    def job() -> tuple[float, int]:
        gc.collect()
        tracemalloc.start()
        count, kept = discover()
        gc.collect()
        held = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        del kept
        return held, count

    return job


def _resident(folder: str) -> Job:
    discover = _shelf(folder, cache=False)

    def job() -> tuple[float, int]:
        before = _resident_bytes()
        count, kept = discover()
        gc.collect()
        grown = _resident_bytes() - before
        del kept
        return grown, count

    return job


def _resident_bytes() -> int:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return pages * os.sysconf("SC_PAGESIZE")


def _langchain_skills_adapters(folder: str) -> Job:
    from langchain_skills_adapters import SkillsLoader

    def discover() -> tuple[int, object]:
        loader = SkillsLoader(folder)
        return len(loader.skill_map), loader

    return _timed(discover)


def _skills_ref(folder: str) -> Job:
    from skills_ref import find_skill_md, read_properties

    def discover() -> tuple[int, object]:
        found = [read_properties(home) for home in Path(folder).iterdir() if find_skill_md(home)]
        return len(found), found

    return _timed(discover)


def _openai_agents(folder: str) -> Job:
    from agents.sandbox.capabilities.skills import LocalDirLazySkillSource
    from agents.sandbox.entries import LocalDir

    os.chdir(folder)  # it takes folders below the current one only

    def discover() -> tuple[int, object]:
        source = LocalDirLazySkillSource(source=LocalDir(src=Path(folder)))
        found = source.list_skill_metadata(skills_path="skills")
        return len(found), found

    return _timed(discover)


JOBS: dict[str, Callable[[str], Job]] = {
    "cold": _cold,
    "warm": _warm,
    "stat-floor": _stat_floor,
    "memory": _memory,
    "resident": _resident,
    "langchain-skills-adapters": _langchain_skills_adapters,
    "skills-ref": _skills_ref,
    "openai-agents": _openai_agents,
}


def main() -> None:
    name, folder = sys.argv[1:]
    job = JOBS[name](folder)
    for _ in sys.stdin:
        print(json.dumps(job()), flush=True)


if __name__ == "__main__":
    main()
