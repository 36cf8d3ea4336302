"""The queue of trials on a PostgreSQL server, and the processes that take trials from it.

DBOS keeps the queue and the result of each trial. This module is imported only for a run with `--engine`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any, NamedTuple

from skillshelf import __version__
from skillshelf.errors import MissingExtraError
from skillshelf_agent import explain_error
from skillshelf_evals._recording import recording_of
from skillshelf_evals._trace import Trace
from skillshelf_evals._trial import run_trial
from skillshelf_evals.engine._models import DEFAULT_PARALLEL, Options, RunModels, options_from_json
from skillshelf_evals.engine._packing import Unpacker
from skillshelf_evals.engine._store import (
    MAX_CONNECTIONS,
    MAX_OUTAGE,
    RunStore,
    Server,
    open_server_store,
    server_error,
)

try:
    from dbos import (
        DBOS,
        DBOSClient,
        DBOSConfig,
        DBOSConfiguredInstance,
        DBOSPortableJSONSerializer,
        SetWorkflowID,
        WorkflowStatus,
    )
    from sqlalchemy.exc import SQLAlchemyError
except ImportError:
    raise MissingExtraError("--engine", "evals") from None

RECOVERY_SECONDS = 2.0
"""How often a node looks for trials of processes that died."""
MIN_PRESENCE = 6.0
"""After an outage, every process has this many seconds to show that it is alive."""
MAX_RESTARTS = 20
"""A trial that takes down its process this often ends as an error."""
MAX_RUNS_REMEMBERED = 8
WORKFLOW = "skillshelf-eval-trial"
_APPLICATION = "skillshelf-evals"
_RESTARTS = "restarts"
_FINAL_STATES = ["SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"]
_POLL_SECONDS = 0.1

Result = dict[str, Any]
"""The trace of a trial, the files it recorded, and why the run must stop, if it must; as JSON."""


class Task(NamedTuple):
    """A queued trial."""

    trial: str
    repeat: int
    digest: str
    """The packed case."""


class Presence:
    """Shows other processes that this one is alive: a lock on the server, which ends with the connection."""

    def __init__(self, server: Server, executor: str) -> None:
        self._server = server
        self._executor = executor
        self._connect()

    def find_dead(self, executors: set[str]) -> Iterator[str]:
        """Yield those whose process is gone. Each is locked while the caller takes care of its trials.

        After an outage, nothing is known until every process had the time to connect again.
        """
        if time.monotonic() < self._connected_at + MIN_PRESENCE:
            return
        for executor in sorted(executors - {self._executor}):
            if self._call("SELECT pg_try_advisory_lock(hashtextextended(%s, 5))", executor):
                try:
                    yield executor
                finally:
                    self._call("SELECT pg_advisory_unlock(hashtextextended(%s, 5))", executor)

    def keep(self) -> None:
        """Take the lock again if the connection was lost."""
        try:
            self._connection.execute("SELECT 1")
        except self._server.errors:
            self._connect()

    def close(self) -> None:
        self._connection.close()

    def _connect(self) -> None:
        self._connection = self._server.connect()
        self._connection.autocommit = True
        self._connection.execute("SELECT pg_advisory_lock(hashtextextended(%s, 5))", (self._executor,))
        self._connected_at = time.monotonic()

    def _call(self, statement: str, value: str) -> bool:
        return bool(self._connection.execute(statement, (value,)).fetchone()[0])


@DBOS.dbos_class()
class Node(DBOSConfiguredInstance):
    """A process that takes trials from the queue. DBOS allows one in each process."""

    def __init__(self, server: Server, store: RunStore, *, listens: bool = True) -> None:
        """`store` is that of any run on the server. `listens` says whether this process takes trials."""
        super().__init__(_APPLICATION)
        self._server = server
        self._store = store
        self._executor = f"{os.uname().nodename}-{os.getpid()}-{os.urandom(4).hex()}"
        self._models: dict[str, RunModels] = {}
        self._running: set[str] = set()
        self._lost: set[str] = set()
        self._folder = tempfile.TemporaryDirectory(prefix="skillshelf-evals-")
        self._unpacker = Unpacker(self._folder.name)
        self._presence = Presence(server, self._executor)
        self._launch(listens)

    def _launch(self, listens: bool) -> None:
        config = DBOSConfig(
            name=_APPLICATION,
            system_database_url=self._server.url,
            # Trials with another version of the agent are not the same trials.
            application_version=__version__,
            executor_id=self._executor,
            log_level="CRITICAL",
            # Not pickle: anyone who can write to the database could run code in every worker.
            serializer=DBOSPortableJSONSerializer(),
            sys_db_pool_size=MAX_CONNECTIONS,
            # DBOS repeats a statement whose connection broke. It connects as we do, so that an outage is reported once,
            # ends after MAX_OUTAGE, and does not hold up Ctrl-C.
            db_engine_kwargs={"creator": self._server.connect, "pool_timeout": MAX_OUTAGE},
        )
        try:
            # DBOS flushes the handlers of an earlier node, whose stream may be closed by now, and then adds its own.
            logging.getLogger("dbos").handlers.clear()
            DBOS(config=config)
            if not listens:
                DBOS.listen_queues([])
            DBOS.launch()
        except SQLAlchemyError as error:
            self.close()
            raise server_error(self._server.url, error) from error

    @DBOS.workflow(name=WORKFLOW)
    async def run_trial(self, run: str, task: Sequence[Any], options: dict[str, Any]) -> str:
        """Run a trial as a durable workflow.

        The result is JSON in ASCII, because no database takes every text that a model or a file can hold.
        """
        workflow_id = str(DBOS.workflow_id)
        self._running.add(workflow_id)
        try:
            return json.dumps(await self._run_task(run, Task(*task), options))
        finally:
            self._running.discard(workflow_id)

    async def _run_task(self, run: str, task: Task, options: dict[str, Any]) -> Result:
        stopped = ""
        with tempfile.TemporaryDirectory(prefix="skillshelf-recorded-") as folder:
            try:
                case = await asyncio.to_thread(self._unpacker.unpack, task.digest, self._store.for_run(run).get_blob)
                recording = recording_of(folder if options["record"] else "", task.trial, task.repeat)
                models = self._models_of(run, options)
                model = models.model_for_trial(case, task.trial, recording)
                trace = await run_trial(case, model, options["timeout"])
                if trace.error and models.guard.stopped:
                    stopped = models.guard.stopped.problem
                    del self._models[run]  # a resumed run may ask again
            except Exception as error:  # such as a missing key or a full disk: the trial could not be completed
                trace = Trace(error=explain_error(error).message)
            recorded = await asyncio.to_thread(_read_files, folder)
        return {"trace": trace.as_json(), "recorded": recorded, "stopped": stopped}

    def _models_of(self, run: str, options: dict[str, Any]) -> RunModels:
        if run not in self._models:
            while len(self._models) >= MAX_RUNS_REMEMBERED:  # a worker outlives many runs
                oldest = next(iter(self._models))
                del self._models[oldest]
            self._models[run] = RunModels(options_from_json(options), self._store.for_run(run))
        return self._models[run]

    async def watch(self) -> None:
        """Put the trials of processes that died back into the queue, until cancelled. Raises RunStoppedError."""
        while True:
            await asyncio.sleep(RECOVERY_SECONDS)
            await asyncio.to_thread(self._recover_trials)

    def _recover_trials(self) -> None:
        try:
            self._presence.keep()
            self._recover_lost_trials()
            executors = {workflow.executor_id for workflow in _list_running() if workflow.executor_id}
            for executor in self._presence.find_dead(executors):
                # Listed again under the lock: another process may have taken care of them since.
                _restart(_list_running(executor))
        except self._server.errors:
            pass  # the server went away in between, and the next look waits for it
        except SQLAlchemyError as error:
            raise server_error(self._server.url, error) from error

    def _recover_lost_trials(self) -> None:
        """Restart trials that this process took from the queue, but did not begin because the server went away."""
        claimed = _list_running(self._executor)
        lost = [workflow for workflow in claimed if workflow.workflow_id not in self._running]
        _restart([workflow for workflow in lost if workflow.workflow_id in self._lost])
        # A trial that was just taken may begin at any moment, so it counts as lost when seen twice.
        self._lost = {workflow.workflow_id for workflow in lost} - self._lost

    def close(self) -> None:
        """Stop. Unfinished trials are left to other workers, or to the next start."""
        self._server.close()
        DBOS.destroy()
        self._store.close()
        self._presence.close()
        self._folder.cleanup()


def start_node(url: str, report: Callable[[str], None] = lambda text: None, *, listens: bool = True) -> Node:
    """Start a node of this process on the server that all workers share. Raises RunStoppedError."""
    server = Server(url, report)
    server.check()
    return Node(server, open_server_store(server, ""), listens=listens)


def _list_running(executor: str | None = None) -> list[WorkflowStatus]:
    return DBOS.list_workflows(
        status="PENDING", name=WORKFLOW, executor_id=executor, load_input=False, load_output=False
    )


def _restart(workflows: Sequence[WorkflowStatus]) -> None:
    """Put trials back into their queues, or give up those that were restarted too often.

    DBOS counts attempts too, but only its own recovery does, which is not public and takes over whole executors.
    `resume_workflow`, which is public, sets that count back to 0.
    """
    for workflow in workflows:
        restarts = (workflow.attributes or {}).get(_RESTARTS, 0) + 1
        DBOS.update_workflow_attributes(workflow.workflow_id, {_RESTARTS: restarts})
        if restarts > MAX_RESTARTS:
            DBOS.cancel_workflow(workflow.workflow_id)
        else:
            DBOS.resume_workflow(workflow.workflow_id, queue_name=workflow.queue_name)


def _read_files(folder: str) -> dict[str, str]:
    texts = {}
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            texts[name] = file.read()
    return texts


async def run_tasks(
    node: Node, url: str, run: str, tasks: Sequence[Task], options: Options
) -> AsyncIterator[tuple[str, Result]]:
    """Queue the trials of a run, and yield each trial's id and result, in the order in which they end.

    A trial is queued once, however often the run is started, unless an earlier start could not make it. Raises
    RunStoppedError if the database fails. It keeps the trials that ended, so the run can be resumed.
    """
    watching = asyncio.create_task(node.watch())
    try:
        trials = await _enqueue(node, run, tasks, options)
        while trials:
            handles: list[Any] = [await DBOS.retrieve_workflow_async(id, existing_workflow=False) for id in trials]
            ended = await DBOS.wait_first_async(handles, polling_interval_sec=_POLL_SECONDS)
            [workflow] = await DBOS.list_workflows_async(workflow_ids=[ended.workflow_id], load_input=False)
            yield trials.pop(workflow.workflow_id), _result_of(workflow)
    except SQLAlchemyError as error:
        raise server_error(url, error) from error
    finally:
        watching.cancel()


async def _enqueue(node: Node, run: str, tasks: Sequence[Task], options: Options) -> dict[str, str]:
    """Queue the trials that are not queued yet, and return each trial's id by that of its workflow."""
    limiter: Any = {"limit": options.rate, "period": 60.0} if options.rate else None
    await DBOS.register_queue_async(
        _queue_name(run),
        worker_concurrency=options.parallel or DEFAULT_PARALLEL,
        limiter=limiter,
        polling_interval_sec=_POLL_SECONDS,
        on_conflict="always_update",
    )
    known = await DBOS.list_workflows_async(workflow_id_prefix=f"{run}:", load_input=False)
    await DBOS.delete_workflows_async([workflow.workflow_id for workflow in known if _could_not_be_made(workflow)])
    trials = {}
    for task in tasks:
        workflow_id = f"{run}:{task.trial}"
        trials[workflow_id] = task.trial
        with SetWorkflowID(workflow_id):  # DBOS begins a workflow of one id once
            await DBOS.enqueue_workflow_async(_queue_name(run), node.run_trial, run, list(task), options.as_json())
    return trials


async def cancel_tasks(url: str, run: str) -> None:
    """Take the trials that have not begun out of the queue. A resumed run queues them again. Raises RunStoppedError."""
    try:
        queued = await DBOS.list_workflows_async(
            workflow_id_prefix=f"{run}:", status="ENQUEUED", load_input=False, load_output=False
        )
        await DBOS.cancel_workflows_async([workflow.workflow_id for workflow in queued])
    except SQLAlchemyError as error:
        raise server_error(url, error) from error


def forget_run(url: str, run: str) -> None:
    """Remove a run that is over from the server that all workers share. Raises EvalError."""
    server = Server(url)
    server.check()
    store = open_server_store(server, run)
    client = DBOSClient(system_database_url=url, retry_connection_errors=False, lazy=True)
    try:
        workflows = client.list_workflows(workflow_id_prefix=f"{run}:", load_input=False, load_output=False)
        client.delete_workflows([workflow.workflow_id for workflow in workflows])
        client.delete_queue(_queue_name(run))
        store.forget()
    except SQLAlchemyError as error:
        raise server_error(url, error) from error
    finally:
        client.destroy()
        store.close()


def _queue_name(run: str) -> str:
    return f"evals-{run}"


def _could_not_be_made(workflow: WorkflowStatus) -> bool:
    return workflow.status in _FINAL_STATES and bool(_result_of(workflow)["trace"]["error"])


def _result_of(workflow: WorkflowStatus) -> Result:
    if workflow.status == "SUCCESS":
        result: Result = json.loads(str(workflow.output))
        return result
    if workflow.status == "CANCELLED":
        reason = "it ended every process that ran it"
    else:
        reason = f"{workflow.error or workflow.status}"
    return {"trace": Trace(error=f"The trial could not be run: {reason}").as_json(), "recorded": {}, "stopped": ""}
