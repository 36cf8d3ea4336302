"""The queue of trials on DBOS, and the processes that run them: the one that started the run, and workers beside it.

DBOS keeps the queue and the result of each finished trial, and restarts a trial whose process died. This module is
imported only if there is something to pay for.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from skillshelf._version import __version__
from skillshelf.agent import explain_error
from skillshelf.errors import MissingExtraError
from skillshelf.evals._recording import recording_of
from skillshelf.evals._trace import Trace
from skillshelf.evals._trial import run_trial
from skillshelf.evals.engine._models import DEFAULT_PARALLEL, Options, RunModels, options_from_json
from skillshelf.evals.engine._packing import Unpacker
from skillshelf.evals.engine._store import (
    SQLITE_PREFIX,
    RunStore,
    database_error,
    dbos_engine_arguments,
    import_psycopg,
    open_server_store,
)

try:
    from dbos import DBOS, DBOSClient, DBOSConfig, DBOSPortableJSONSerializer, SetWorkflowID, WorkflowStatus
    from sqlalchemy.exc import SQLAlchemyError
except ImportError:
    raise MissingExtraError("skillshelf eval", "evals") from None

RECOVERY_SECONDS = 2.0
"""How often a node looks for trials of processes that died."""
MAX_STARTS = 20
"""A trial that takes down its process this often ends as an error."""
MAX_RUNS_REMEMBERED = 8
MAX_CONNECTIONS = 8
"""A server has a hundred connections for all workers together."""
WORKFLOW = "skillshelf-eval-trial"
_APPLICATION = "skillshelf-evals"
_DATABASE_FILE = "dbos.sqlite"
_FINAL_STATES = ["SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"]
_POLL_SECONDS = 0.1
# Listing the trials of a long run takes a while. Waiting this many times as long keeps it from becoming the main work.
_POLL_FACTOR = 10
_CHUNK_SIZE = 50
# A server notices after about half a minute that a machine has vanished.
_KEEPALIVE = ("SET tcp_keepalives_idle = 15", "SET tcp_keepalives_interval = 5", "SET tcp_keepalives_count = 3")

Result = dict[str, Any]
"""The trace of a trial and the files it recorded, as JSON."""


class Task(NamedTuple):
    """A queued trial."""

    trial: str
    repeat: int
    digest: str
    """The packed case."""


class ProcessLock:
    """A lock on the server under the name of this process. The server releases it when the connection ends."""

    def __init__(self, url: str, executor: str) -> None:
        self._url = url
        self._executor = executor
        self._lock = threading.Lock()
        self._connection = self._connect()

    def find_dead(self, executors: set[str]) -> Iterator[str]:
        """Yield those whose process is gone. Each is locked while the caller takes care of its trials."""
        with self._lock:
            try:
                self._connection.execute("SELECT 1")
            except Exception:  # the lock ended with the connection, and others may have noticed already
                self._connection = self._connect()
            for executor in sorted(executors - {self._executor}):
                if self._call("SELECT pg_try_advisory_lock(hashtextextended(%s, 5))", executor):
                    try:
                        yield executor
                    finally:
                        self._call("SELECT pg_advisory_unlock(hashtextextended(%s, 5))", executor)

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def _connect(self) -> Any:
        connection = import_psycopg().connect(self._url, autocommit=True)
        for setting in _KEEPALIVE:
            connection.execute(setting)
        connection.execute("SELECT pg_advisory_lock(hashtextextended(%s, 5))", (self._executor,))
        return connection

    def _call(self, statement: str, value: str) -> bool:
        return bool(self._connection.execute(statement, (value,)).fetchone()[0])


class Node:
    """A process that runs queued trials. DBOS allows one in each process."""

    def __init__(self, url: str, executor: str, store: RunStore, *, listens: bool = True) -> None:
        """`store` is that of any run in the database. `listens` says whether this process takes trials."""
        self.url = url
        self._store = store
        self._models: dict[str, RunModels] = {}
        self._folder = tempfile.TemporaryDirectory(prefix="skillshelf-evals-")
        self._unpacker = Unpacker(self._folder.name)
        self._lock = None if url.startswith(SQLITE_PREFIX) else ProcessLock(url, executor)
        self._last_recovery = time.monotonic()
        self._launch(url, executor, listens)

    def _launch(self, url: str, executor: str, listens: bool) -> None:
        global _current_node
        config = DBOSConfig(
            name=_APPLICATION,
            system_database_url=url,
            # Trials with another version of the agent are not the same trials.
            application_version=__version__,
            executor_id=executor,
            log_level="CRITICAL",
            # Not pickle: anyone who can write to the database could run code in every worker.
            serializer=DBOSPortableJSONSerializer(),
            sys_db_pool_size=MAX_CONNECTIONS,
            db_engine_kwargs=dbos_engine_arguments(url),
        )
        _current_node = self
        try:
            # DBOS flushes the handlers of an earlier node, whose stream may be closed by now, and then adds its own.
            logging.getLogger("dbos").handlers.clear()
            DBOS(config=config)
            if not listens:
                DBOS.listen_queues([])
            DBOS.launch()
        except SQLAlchemyError as error:
            self.close()
            raise database_error(url, error) from error

    def _models_of(self, run: str, options: dict[str, Any]) -> RunModels:
        if run not in self._models:
            while len(self._models) >= MAX_RUNS_REMEMBERED:  # a worker outlives many runs
                oldest = next(iter(self._models))
                del self._models[oldest]
            self._models[run] = RunModels(options_from_json(options), self._store.for_run(run))
        return self._models[run]

    async def run(self, run: str, task: Task, options: dict[str, Any]) -> Result:
        """Run a trial from the database, and return the result to put there."""
        with tempfile.TemporaryDirectory(prefix="skillshelf-recorded-") as folder:
            try:
                case = await asyncio.to_thread(self._unpacker.unpack, task.digest, self._store.for_run(run).get_blob)
                recording = recording_of(folder if options["record"] else "", task.trial, task.repeat)
                model = self._models_of(run, options).model_for_trial(case, task.trial, recording)
                trace = await run_trial(case, model, options["timeout"])
            except Exception as error:  # such as a missing key or a full disk: the trial could not be made
                trace = Trace(error=explain_error(error).message)
            return {"trace": trace.as_json(), "recorded": await asyncio.to_thread(_read_files, folder)}

    def recover_trials(self) -> None:
        """Put the trials of processes that died back into the queue."""
        if self._lock is None or time.monotonic() < self._last_recovery + RECOVERY_SECONDS:
            return
        self._last_recovery = time.monotonic()
        running = DBOS.list_workflows(status="PENDING", name=WORKFLOW, load_input=False, load_output=False)
        executors = {workflow.executor_id for workflow in running if workflow.executor_id}
        with suppress(import_psycopg().Error):  # the server is away for a while, and DBOS waits for it too
            for executor in self._lock.find_dead(executors):
                # The call that DBOS's own recovery service makes; there is no public name for it.
                DBOS._recover_pending_workflows([executor])

    def close(self) -> None:
        """Stop. Unfinished trials are left to other workers, or to the next start."""
        DBOS.destroy()
        self._store.close()
        if self._lock:
            self._lock.close()
        self._folder.cleanup()


_current_node: Node | None = None


@DBOS.workflow(name=WORKFLOW, max_recovery_attempts=MAX_STARTS)
async def run_queued_trial(run: str, task: Sequence[Any], options: dict[str, Any]) -> str:
    """Run a trial as a durable workflow.

    The result is JSON in ASCII, because no database takes every text that a model or a file can hold.
    """
    assert _current_node is not None
    return json.dumps(await _current_node.run(run, Task(*task), options))


def start_server_node(url: str, *, listens: bool = True) -> Node:
    """Start a node of this process on the server that all workers share. Raises EvalError."""
    store = open_server_store(url, "")  # first, because it reports a wrong address at once and clearly
    executor = f"{os.uname().nodename}-{os.getpid()}-{os.urandom(4).hex()}"
    return Node(url, executor, store, listens=listens)


def start_local_node(state: str, store: RunStore) -> Node:
    """Start a node of this process on a database of its own in the run's folder. Raises EvalError.

    DBOS cannot continue with half of its tables, which a killed start leaves behind. So a marker file is written once
    they are complete, before anything is queued.
    """
    path = os.path.join(state, _DATABASE_FILE)
    marker = f"{path}.made"
    if not os.path.exists(marker):
        for suffix in ("", "-wal", "-shm", "-journal"):
            with suppress(FileNotFoundError):
                os.unlink(path + suffix)

    node = Node(f"{SQLITE_PREFIX}{path}", "local", store)
    with open(marker, "wb"):
        pass
    return node


def _read_files(folder: str) -> dict[str, str]:
    texts = {}
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            texts[name] = file.read()
    return texts


class RunQueue:
    """The queued trials of one run. A trial is queued once, however often the run is started."""

    def __init__(self, node: Node, run: str, options: Options) -> None:
        self._node = node
        self._run = run
        self._options = options

    async def run_tasks(self, tasks: Sequence[Task]) -> AsyncIterator[tuple[str, Result]]:
        """Yield each trial's id and result, in the order in which they end.

        Raises EvalError if the database fails. It keeps the trials that ended, so the run can be resumed.
        """
        try:
            async for trial, result in self._wait_for(tasks):
                yield trial, result
        except SQLAlchemyError as error:
            raise database_error(self._node.url, error) from error

    async def _wait_for(self, tasks: Sequence[Task]) -> AsyncIterator[tuple[str, Result]]:
        limiter: Any = {"limit": self._options.rate, "period": 60.0} if self._options.rate else None
        await DBOS.register_queue_async(
            _queue_name(self._run),
            worker_concurrency=self._options.parallel or DEFAULT_PARALLEL,
            limiter=limiter,
            polling_interval_sec=_POLL_SECONDS,
            on_conflict="always_update",
        )
        waiting = await self._enqueue(tasks)
        while waiting:
            started = time.monotonic()
            ended = await self._list_workflows(status=_FINAL_STATES, load_output=False)
            ids = [workflow.workflow_id for workflow in ended if workflow.workflow_id in waiting]
            for chunk in _split(ids):
                for workflow in await self._list_workflows(workflow_ids=chunk):
                    yield waiting.pop(workflow.workflow_id), _result_of(workflow)
            await asyncio.to_thread(self._node.recover_trials)
            if waiting:
                await asyncio.sleep(max(_POLL_SECONDS, _POLL_FACTOR * (time.monotonic() - started)))

    async def _enqueue(self, tasks: Sequence[Task]) -> dict[str, str]:
        """Queue the trials that are not queued yet, and return each trial's id by that of its workflow.

        A trial that an earlier start could not make is tried again.
        """
        known = {workflow.workflow_id: workflow for workflow in await self._list_workflows()}
        waiting = {}
        for task in tasks:
            attempt = 1
            while _could_not_be_made(known.get(self._workflow_id(task, attempt))):
                attempt += 1
            workflow_id = self._workflow_id(task, attempt)
            waiting[workflow_id] = task.trial
            if workflow_id not in known:
                with SetWorkflowID(workflow_id):
                    await DBOS.enqueue_workflow_async(
                        _queue_name(self._run), run_queued_trial, self._run, list(task), self._options.as_json()
                    )

        return waiting

    def _workflow_id(self, task: Task, attempt: int) -> str:
        return f"{self._run}:{task.trial}:{attempt}"

    async def _list_workflows(self, **filters: Any) -> list[WorkflowStatus]:
        return await DBOS.list_workflows_async(workflow_id_prefix=f"{self._run}:", load_input=False, **filters)


def forget_run(url: str, run: str) -> None:
    """Remove a finished run, whose report is written, from the server that all workers share. Raises EvalError."""
    store = open_server_store(url, run)
    client = DBOSClient(system_database_url=url, retry_connection_errors=False, lazy=True)
    try:
        workflows = client.list_workflows(workflow_id_prefix=f"{run}:", load_input=False, load_output=False)
        for chunk in _split([workflow.workflow_id for workflow in workflows]):
            client.delete_workflows(chunk)
        client.delete_queue(_queue_name(run))
        store.forget()
    except SQLAlchemyError as error:
        raise database_error(url, error) from error
    finally:
        client.destroy()
        store.close()


def _queue_name(run: str) -> str:
    return f"evals-{run}"


def _could_not_be_made(workflow: WorkflowStatus | None) -> bool:
    if workflow is None or workflow.status not in _FINAL_STATES:
        return False
    return bool(_result_of(workflow)["trace"]["error"])


def _result_of(workflow: WorkflowStatus) -> Result:
    if workflow.status == "SUCCESS":
        result: Result = json.loads(str(workflow.output))
        return result
    if workflow.status == "MAX_RECOVERY_ATTEMPTS_EXCEEDED":
        reason = "it ended every process that ran it"
    else:
        reason = f"{workflow.error or workflow.status}"
    return {"trace": Trace(error=f"The trial could not be run: {reason}").as_json(), "recorded": {}}


def _split(ids: Sequence[str]) -> Iterator[list[str]]:
    for start in range(0, len(ids), _CHUNK_SIZE):
        yield list(ids[start : start + _CHUNK_SIZE])
