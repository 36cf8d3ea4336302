"""A plan, from the first trial to the last outcome. What is free runs here and now; what costs money is queued."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress

from skillshelf._version import __version__
from skillshelf.agent import explain
from skillshelf.errors import EvalError, SkillError
from skillshelf.evals._plan import Plan, Trial
from skillshelf.evals._results import Outcome
from skillshelf.evals._tape import Tape, tape_of
from skillshelf.evals._trace import Trace, trace_from_json
from skillshelf.evals._trial import run_trial
from skillshelf.evals.engine._folder import RunFolder
from skillshelf.evals.engine._models import Models
from skillshelf.evals.engine._options import PARALLEL, Options
from skillshelf.evals.engine._outcome import outcome_of
from skillshelf.evals.engine._store import Store, open_file, open_server
from skillshelf.evals.engine._travel import Packer

Told = Callable[[Outcome], None]


class Work:
    """A plan, packed: what is queued, and what all of it comes down to."""

    def __init__(self, plan: Plan, options: Options) -> None:
        self.plan, self.options = plan, options
        self.packer = Packer()
        self._digests: dict[int, str] = {}
        self._here: set[int] = set()
        self.digests = {trial.id: self._digest(trial) for trial in plan.trials}
        """Of what is tried in each trial."""

    @property
    def fingerprint(self) -> str:
        """The same where a second start has the same to do."""
        checks = {case.id: [check.name for check in case.checks] for case in self.plan.cases}
        settings = self.options.as_json()["settings"]
        where = [self.options.replay, bool(self.options.engine)]
        what = [__version__, settings, where, self.plan.baseline, self.digests, checks]
        return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()

    @property
    def queued(self) -> dict[str, Trial]:
        """What a second start must not do again, or what other machines help with."""
        wanted = (one for one in self.plan.trials if self.options.server or not self.options.is_free(one.case))
        return {one.id: one for one in wanted if id(one.case) not in self._here}

    def _digest(self, trial: Trial) -> str:
        key = id(trial.case)  # repeats share the very case, and a thousand of them are not packed again
        if key not in self._digests:
            try:
                self._digests[key] = self.packer.case(trial.case)
            except TypeError:  # it cannot leave the process, and must still not change under a run that goes on
                self._digests[key] = self.packer.known(trial.case)
                self._here.add(key)
        return self._digests[key]


async def carry_out(work: Work, run: RunFolder, told: Told = lambda outcome: None) -> tuple[Outcome, ...]:
    """Every trial's outcome, in the order of the plan. Raises EvalError where the engine cannot be used."""
    store = open_store(work.options, run)
    try:
        return await _Course(work, store, told).run(run)
    finally:
        store.close()


def finish(work: Work, run: RunFolder, outcomes: Iterable[Outcome]) -> None:
    """The report is written. What it was made from goes, unless there are trials to try again."""
    failed = any(one.status == "error" for one in outcomes)
    run.finish(failed)
    if work.options.server and not failed:
        from skillshelf.evals.engine._queued import forget

        with suppress(EvalError):  # the server is gone, and the report is not
            forget(work.options.server, run.id)


def open_store(options: Options, run: RunFolder) -> Store:
    if options.server:
        return open_server(options.server, run.id)
    return open_file(os.path.join(run.state, "kept.sqlite"), run.id)


class _Course:
    def __init__(self, work: Work, store: Store, told: Told) -> None:
        self._work, self._options, self._store, self._told = work, work.options, store, told
        self._models = Models(work.options, store)
        self._at_once = work.options.parallel or PARALLEL
        self._judging = asyncio.Semaphore(self._at_once)
        self._outcomes: dict[str, Outcome] = {}

    async def run(self, run: RunFolder) -> tuple[Outcome, ...]:
        queued = self._work.queued
        here = [trial for trial in self._work.plan.trials if trial.id not in queued]
        await asyncio.gather(self._run_here(here), self._run_queued(queued, run) if queued else asyncio.sleep(0))
        return tuple(self._outcomes[trial.id] for trial in self._work.plan.trials)

    async def _over(self, trial: Trial, trace: Trace, tape: Tape | None) -> None:
        async with self._judging:
            outcome = await outcome_of(trial, trace, self._models, tape)
        if tape and self._options.record and outcome.status != "error":
            await asyncio.to_thread(tape.prune)
        self._outcomes[trial.id] = outcome
        self._told(outcome)

    def _tape(self, trial: Trial) -> Tape | None:
        return tape_of(self._options.record or self._options.replay, trial.id, trial.repeat)

    async def _run_here(self, trials: Sequence[Trial]) -> None:
        left = iter(trials)

        async def work() -> None:
            for trial in left:
                tape = self._tape(trial)
                await self._over(trial, await self._try(trial, tape), tape)

        await asyncio.gather(*(work() for _ in range(self._at_once)))

    async def _try(self, trial: Trial, tape: Tape | None) -> Trace:
        try:
            model = self._models.answering(trial.case, trial.id, tape)
            return await run_trial(trial.case, model, self._options.timeout)
        except SkillError as error:  # a recording that is not there, a script that cannot be read
            return Trace(error=": ".join(explain(error)))

    async def _run_queued(self, trials: dict[str, Trial], run: RunFolder) -> None:
        from skillshelf.evals.engine._node import local_node, server_node
        from skillshelf.evals.engine._queued import Queued

        for digest, data in self._work.packer.blobs.items():
            await asyncio.to_thread(self._store.put, digest, data)
        if self._options.server:
            node = server_node(self._options.server, listens=self._options.parallel > 0)
        else:
            node = local_node(run.state, open_store(self._options, run))
        try:
            queue, judged = Queued(node, run.id, self._options), []
            tasks = [(name, trial.repeat, self._work.digests[name]) for name, trial in trials.items()]
            async for name, result in queue.results(tasks):
                tape = self._tape(trials[name])
                trace = _recorded(trace_from_json(result["trace"]), result["recorded"], tape)
                judged.append(asyncio.create_task(self._over(trials[name], trace, tape)))
            await asyncio.gather(*judged)
        finally:
            await asyncio.to_thread(node.close)


def _recorded(trace: Trace, files: Mapping[str, str], tape: Tape | None) -> Trace:
    """What a worker recorded goes to the folder of this run; the trial was none where that cannot be."""
    try:
        if tape:
            tape.take(files)
    except EvalError as error:
        return Trace(error=str(error))
    return trace
