"""A process that runs queued trials, on DBOS: the one that was asked for the run, or a worker beside it.

DBOS keeps the queue and what each finished trial gave, and starts a trial again whose process died. It is imported when
there is something to pay for.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import tempfile
import time
from contextlib import suppress
from typing import Any

from skillshelf._version import __version__
from skillshelf.agent import explain
from skillshelf.errors import MissingExtraError
from skillshelf.evals._tape import tape_of
from skillshelf.evals._trace import Trace
from skillshelf.evals._trial import run_trial
from skillshelf.evals.engine._liveness import Alive
from skillshelf.evals.engine._models import Models
from skillshelf.evals.engine._options import options_from_json
from skillshelf.evals.engine._sqlite import URL_PREFIX, engine_arguments
from skillshelf.evals.engine._store import Store, open_server, postgres, unusable
from skillshelf.evals.engine._travel import Unpacker

try:
    from dbos import DBOS, DBOSConfig, DBOSPortableJSONSerializer
    from sqlalchemy.exc import SQLAlchemyError
except ImportError:
    raise MissingExtraError("skillshelf eval", "evals") from None

_APPLICATION = "skillshelf-evals"
# A trial that takes its process down with it, time and again, ends as an error of the run.
_STARTS = 20
_RUNS, _CONNECTIONS = 8, 8
LOOK_SECONDS = 2.0
_FILE = "dbos.sqlite"
Task = tuple[str, int, str]
"""The name of a trial, the so-manieth of its case, and the digest of the case."""


class Node:
    """One per process, as DBOS has it."""

    def __init__(self, url: str, executor: str, store: Store, *, listens: bool = True) -> None:
        """`store`: of any run in that database. `listens`: takes trials from the queues."""
        self.url = url
        self._store = store
        self._models: dict[str, Models] = {}
        self._folder = tempfile.TemporaryDirectory(prefix="skillshelf-evals-")
        self._unpacker = Unpacker(self._folder.name)
        self._alive = None if url.startswith("sqlite") else Alive(url, executor)
        self._looked = time.monotonic()
        self._launch(url, executor, listens)

    def _launch(self, url: str, executor: str, listens: bool) -> None:
        global _here
        config = DBOSConfig(
            name=_APPLICATION,
            system_database_url=url,
            # Trials of another version of the agent are not the same trials.
            application_version=__version__,
            executor_id=executor,
            log_level="CRITICAL",
            # Not pickle: whoever can write to the database would run code in every worker.
            serializer=DBOSPortableJSONSerializer(),
            # A server has a hundred connections for all workers together.
            sys_db_pool_size=_CONNECTIONS,
            db_engine_kwargs=engine_arguments(url),
        )
        _here = self
        try:
            # It flushes the handlers of an earlier node, whose stream may be closed by now, and then makes its own.
            logging.getLogger("dbos").handlers.clear()
            DBOS(config=config)
            if not listens:
                DBOS.listen_queues([])
            DBOS.launch()
        except SQLAlchemyError as error:
            self.close()
            raise unusable(url, error) from error

    def _models_of(self, run: str, plain: dict[str, Any]) -> Models:
        if run not in self._models:
            while len(self._models) >= _RUNS:  # a worker outlives many runs
                del self._models[next(iter(self._models))]
            self._models[run] = Models(options_from_json(plain), self._store.of(run))
        return self._models[run]

    async def run(self, run: str, task: Task, plain: dict[str, Any]) -> dict[str, Any]:
        """A trial, from what is in the database to what goes there."""
        name, repeat, digest = task
        with tempfile.TemporaryDirectory(prefix="skillshelf-recorded-") as recorded:
            try:
                case = await asyncio.to_thread(self._unpacker.case, digest, self._store.of(run).get)
                tape = tape_of(recorded if plain["record"] else "", name, repeat)
                model = self._models_of(run, plain).answering(case, name, tape)
                trace = await run_trial(case, model, plain["timeout"])
            except Exception as error:  # this process lacks a key, or a disk is full: the trial was none
                trace = Trace(error=": ".join(explain(error)))
            return {"trace": trace.as_json(), "recorded": await asyncio.to_thread(_files, recorded)}

    def look_after(self) -> None:
        """Give the trials of processes that died back to the queue."""
        if self._alive is None or time.monotonic() < self._looked + LOOK_SECONDS:
            return
        self._looked = time.monotonic()
        going = DBOS.list_workflows(status="PENDING", name=WORKFLOW, load_input=False, load_output=False)
        with suppress(postgres().Error):  # the server is away for a while, and DBOS waits for it too
            for executor in self._alive.dead({one.executor_id for one in going if one.executor_id}):
                # The call that DBOS's own recovery service makes; there is no public name for it.
                DBOS._recover_pending_workflows([executor])

    def close(self) -> None:
        """What is going on here is left for others, or for the next start."""
        DBOS.destroy()
        self._store.close()
        if self._alive:
            self._alive.close()
        self._folder.cleanup()


WORKFLOW = "skillshelf-eval-trial"
_here: Node | None = None


@DBOS.workflow(name=WORKFLOW, max_recovery_attempts=_STARTS)
async def trial(run: str, task: Task, options: dict[str, Any]) -> str:
    """The durable unit. As JSON in ASCII, because no database takes every text that a model or a file can hold."""
    assert _here is not None
    return json.dumps(await _here.run(run, task, options))


def server_node(url: str, *, listens: bool = True) -> Node:
    """This process, on the server that all share."""
    store = open_server(url, "")  # first: it says at once, and clearly, what is wrong with an address
    executor = f"{os.uname().nodename}-{os.getpid()}-{os.urandom(4).hex()}"
    return Node(url, executor, store, listens=listens)


def local_node(state: str, store: Store) -> Node:
    """This process, on a database of its own in the run's folder.

    A file beside it says that its tables are whole, and is there before anything is queued: DBOS cannot go on with the
    half of them that a start left behind which was killed.
    """
    path, made = (os.path.join(state, name) for name in (_FILE, f"{_FILE}.made"))
    if not os.path.exists(made):
        for rest in ("", "-wal", "-shm", "-journal"):
            with suppress(FileNotFoundError):
                os.unlink(path + rest)
    node = Node(f"{URL_PREFIX}{path}", "local", store)
    with open(made, "wb"):
        pass
    return node


def _files(folder: str) -> dict[str, str]:
    found = {}
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            found[name] = file.read()
    return found
