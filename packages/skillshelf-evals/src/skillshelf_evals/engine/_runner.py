"""Running a plan, from the first trial to the last outcome: here, or with workers if there is a server for them."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial

from skillshelf import __version__
from skillshelf.errors import EvalError, RunStoppedError, SkillError
from skillshelf_agent import explain_error
from skillshelf_evals._artefacts import ArtefactFolder
from skillshelf_evals._plan import Plan, Trial
from skillshelf_evals._recording import TrialRecording, recording_of
from skillshelf_evals._results import CheckResult, Outcome
from skillshelf_evals._run_folder import STORE_FILE, RunFolder
from skillshelf_evals._trace import Trace, trace_from_json
from skillshelf_evals._trial import run_trial
from skillshelf_evals.check import look_at_all
from skillshelf_evals.engine._models import DEFAULT_PARALLEL, Options, RunModels
from skillshelf_evals.engine._packing import Packer
from skillshelf_evals.engine._store import RunStore, Server, open_file_store, open_server_store

Report = Callable[[Outcome], None]
"""Gets each outcome as soon as it is known."""


class PackedPlan:
    """A plan with its cases packed: which trials are queued, and a fingerprint of all of it."""

    def __init__(self, plan: Plan, options: Options) -> None:
        self.plan = plan
        self.options = options
        self.packer = Packer()
        self._digest_by_case: dict[int, str] = {}
        self._unpackable_cases: set[int] = set()
        self.digests = {trial.id: self._pack(trial) for trial in plan.trials}
        """The digest of each trial's case."""

    @property
    def fingerprint(self) -> str:
        """A digest that is the same if a second start has the same to do."""
        facts = [
            __version__,
            self.options.as_json()["settings"],
            asdict(self.options.judge) if self.options.judge else None,
            [self.options.replay, bool(self.options.engine)],
            self.plan.baseline,
            self.digests,
            {case.id: [check.name for check in case.checks] for case in self.plan.cases},
        ]
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()

    @property
    def queued(self) -> dict[str, Trial]:
        """The trials that workers help with, by id: none without a server, and none that cannot leave the process."""
        if not self.options.server:
            return {}
        return {trial.id: trial for trial in self.plan.trials if id(trial.case) not in self._unpackable_cases}

    def _pack(self, trial: Trial) -> str:
        key = id(trial.case)  # repeats share the case object, so a thousand of them are packed once
        if key not in self._digest_by_case:
            try:
                self._digest_by_case[key] = self.packer.pack(trial.case)
            except TypeError:  # it cannot leave the process, and must still not change while a run is interrupted
                self._digest_by_case[key] = self.packer.digest(trial.case)
                self._unpackable_cases.add(key)
        return self._digest_by_case[key]


async def run_plan(
    packed: PackedPlan,
    run: RunFolder,
    report: Report = lambda outcome: None,
    notify: Callable[[str], None] = lambda text: None,
) -> tuple[Outcome, ...]:
    """Run every trial, and return the outcomes in the order of the plan.

    `notify` is called with sentences for the user. Raises RunStoppedError if the run has to stop before its end.
    """
    store = _open_store(packed.options, run)
    try:
        return await Runner(packed, run, store, report, notify).run()
    finally:
        store.close()


def finish_run(packed: PackedPlan, run: RunFolder, outcomes: Iterable[Outcome]) -> None:
    """Finish a run whose report is written. Its state is removed unless there are trials to try again."""
    failed = any(outcome.status == "error" for outcome in outcomes)
    run.finish(failed)
    if not failed:
        leave_server(packed.options, run)


def leave_server(options: Options, run: RunFolder) -> None:
    """Remove a run from the server that workers share: they would still make the trials of one that cannot continue."""
    if not options.server:
        return
    from skillshelf_evals.engine._queue import forget_run

    with suppress(EvalError):  # the server is gone, but the report is not
        forget_run(options.server, run.id)


async def run_worker(url: str, notify: Callable[[str], None]) -> None:
    """Run trials of other processes until cancelled. Raises RunStoppedError.

    DBOS runs them in the event loop that starts it, which is this one.
    """
    from skillshelf_evals.engine._queue import start_node

    node = start_node(url, notify)
    notify("waiting for trials. Ctrl-C stops the worker; another one takes over its unfinished trials.")
    try:
        await node.watch()
    finally:
        await asyncio.to_thread(node.close)


def _open_store(options: Options, run: RunFolder) -> RunStore:
    if options.server:
        server = Server(options.server)
        server.check()  # a wrong address is reported at once, instead of waited for
        return open_server_store(server, run.id)
    return open_file_store(os.path.join(run.state, STORE_FILE), run.id)


class StartLimiter:
    """Lets at most `rate` trials begin in a minute; any number if `rate` is 0."""

    def __init__(self, rate: int) -> None:
        self._rate = rate
        self._starts: deque[float] = deque(maxlen=rate)
        self._lock = asyncio.Lock()

    async def wait(self) -> None:
        if not self._rate:
            return
        async with self._lock:
            if len(self._starts) == self._rate:
                await asyncio.sleep(self._starts[0] + 60.0 - time.monotonic())
            self._starts.append(time.monotonic())


class Runner:
    """Runs the trials of one plan."""

    def __init__(
        self, packed: PackedPlan, run: RunFolder, store: RunStore, report: Report, notify: Callable[[str], None]
    ) -> None:
        self._packed = packed
        self._options = packed.options
        self._run = run
        self._store = store
        self._report = report
        self._notify = notify
        self._models = RunModels(packed.options, store)
        self._guard = self._models.guard
        self._parallel = packed.options.parallel or DEFAULT_PARALLEL
        self._limiter = StartLimiter(packed.options.rate)
        self._judging = asyncio.Semaphore(self._parallel)
        self._outcomes: dict[str, Outcome] = {}
        self._artefacts = ArtefactFolder(run.path)

    async def run(self) -> tuple[Outcome, ...]:
        await asyncio.to_thread(self._artefacts.clear)
        trials = self._packed.plan.trials
        queued = self._packed.queued
        work = [self._run_here([trial for trial in trials if trial.id not in queued])]
        if queued:
            work.append(self._run_queued(queued))
        await asyncio.gather(*work)
        if self._guard.stopped and len(self._outcomes) < len(trials):
            raise self._guard.stopped
        return tuple(self._outcomes[trial.id] for trial in trials)

    async def _run_here(self, trials: Sequence[Trial]) -> None:
        remaining = iter(trials)
        finishing = []

        async def run_one_after_another() -> None:
            for trial in remaining:
                if self._guard.stopped:
                    return
                recording = self._recording_of(trial)
                trace = await self._find_or_run(trial, recording)
                # The next trial does not wait for a slow judge.
                finishing.append(asyncio.create_task(self._finish_trial(trial, trace, recording)))

        await asyncio.gather(*(run_one_after_another() for _ in range(self._parallel)))
        await asyncio.gather(*finishing)

    async def _find_or_run(self, trial: Trial, recording: TrialRecording | None) -> Trace:
        """Run a trial, unless an earlier start of the run has finished it. Free trials are not kept."""
        if self._options.is_free(trial.case):
            return await self._run_trial(trial, recording)
        found = await asyncio.to_thread(self._store.find, "traces", trial.id)
        if found is not None:
            trace = trace_from_json(json.loads(found))
            self._guard.add_usage(trace.usage)
            return trace

        await self._limiter.wait()
        trace = await self._run_trial(trial, recording)
        if not trace.error:
            text = json.dumps(trace.as_json())
            await asyncio.to_thread(self._store.add, "traces", trial.id, text)
        return trace

    async def _run_trial(self, trial: Trial, recording: TrialRecording | None) -> Trace:
        try:
            model = self._models.model_for_trial(trial.case, trial.id, recording)
            return await run_trial(trial.case, model, self._options.timeout)
        except SkillError as error:  # such as a missing recording, or a script that cannot be read
            return Trace(error=explain_error(error).message)

    async def _run_queued(self, trials: dict[str, Trial]) -> None:
        from skillshelf_evals.engine._queue import Task, cancel_tasks, run_tasks, start_node

        for digest, data in self._packed.packer.blobs.items():
            await asyncio.to_thread(self._store.add, "blobs", digest, data)
        url = self._options.server
        node = start_node(url, self._notify, listens=self._options.parallel > 0)
        try:
            tasks = [Task(name, trial.repeat, self._packed.digests[name]) for name, trial in trials.items()]
            finishing = []
            async for name, result in run_tasks(node, url, self._run.id, tasks, self._options):
                if result["stopped"]:
                    self._guard.stopped = RunStoppedError(result["stopped"])
                if self._guard.stopped:
                    await cancel_tasks(url, self._run.id)
                    break
                recording = self._recording_of(trials[name])
                trace = add_worker_files(trace_from_json(result["trace"]), result["recorded"], recording)
                self._guard.add_usage(trace.usage)
                finishing.append(asyncio.create_task(self._finish_trial(trials[name], trace, recording)))
            await asyncio.gather(*finishing)
        finally:
            await asyncio.to_thread(node.close)

    async def _finish_trial(self, trial: Trial, trace: Trace, recording: TrialRecording | None) -> None:
        if trial.case.script is None:  # the tokens of a script are made up, and cost nothing
            trace = replace(trace, usage=self._options.limits.add_cost(trace.usage))
        async with self._judging:
            outcome = await make_outcome(trial, trace, self._models, recording)
        if outcome.judging:
            outcome = replace(outcome, judging=self._options.limits.add_cost(outcome.judging))
        if outcome.status == "error" and self._guard.stopped:
            return  # it was cut short, and a resumed run makes it
        if recording and self._options.record and outcome.status != "error":
            await asyncio.to_thread(recording.remove_outdated)
        if trace.changed_files or trace.command_runs:
            outcome = replace(outcome, artefacts=await asyncio.to_thread(self._artefacts.keep, trial.id, trace))
        self._outcomes[trial.id] = outcome
        self._report(outcome)

    def _recording_of(self, trial: Trial) -> TrialRecording | None:
        return recording_of(self._options.record or self._options.replay, trial.id, trial.repeat)


async def make_outcome(
    trial: Trial, trace: Trace, models: RunModels, recording: TrialRecording | None = None
) -> Outcome:
    """Make the checks of a trial. If the trial has an error, they would prove nothing, and a judge costs money."""
    checks = () if trace.error else trial.case.checks
    find_model = partial(models.model_for_judge, name=f"{trial.id}/judge", recording=recording)
    looked = await look_at_all(checks, trace, find_model)
    results = [
        CheckResult(check.name, verdict, check.about) for check, verdict in zip(checks, looked.verdicts, strict=True)
    ]

    # The contents of files are for the checks alone: a thousand trials of them would fill the memory.
    return Outcome(trial.case.id, trial.arm, trial.repeat, tuple(results), trace.without_data(), looked.judging)


def add_worker_files(trace: Trace, files: Mapping[str, str], recording: TrialRecording | None) -> Trace:
    """Add the files that a worker recorded to this run's recording. If that fails, the trial could not be completed."""
    try:
        if recording:
            recording.add_files(files)
    except EvalError as error:
        return Trace(error=str(error))
    return trace
