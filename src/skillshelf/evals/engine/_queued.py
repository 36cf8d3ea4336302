"""The trials of a run that are worth keeping, queued on DBOS, and what came of them."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from dbos import DBOS, DBOSClient, SetWorkflowID, WorkflowStatus
from sqlalchemy.exc import SQLAlchemyError

from skillshelf.evals._trace import Trace
from skillshelf.evals.engine._node import Node, Task, trial
from skillshelf.evals.engine._options import PARALLEL, Options
from skillshelf.evals.engine._store import open_server, unusable

_OVER = ["SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"]
_POLL, _SHARE = 0.1, 10
_CHUNK = 50
Result = dict[str, Any]


class Queued:
    """Of one run. A trial is queued once, however often the run is started."""

    def __init__(self, node: Node, run: str, options: Options) -> None:
        self._node, self._run, self._options = node, run, options
        self._queue = _queue(run)

    async def results(self, tasks: Sequence[Task]) -> AsyncIterator[tuple[str, Result]]:
        """Yield each trial's name and result, in the order in which they end.

        Raises EvalError if the database fails. The trials that ended are in it, and a second start goes on from there.
        """
        try:
            async for name, result in self._wait_for(tasks):
                yield name, result
        except SQLAlchemyError as error:
            raise unusable(self._node.url, error) from error

    async def _wait_for(self, tasks: Sequence[Task]) -> AsyncIterator[tuple[str, Result]]:
        limiter: Any = {"limit": self._options.rate, "period": 60.0} if self._options.rate else None
        await DBOS.register_queue_async(
            self._queue,
            worker_concurrency=self._options.parallel or PARALLEL,
            limiter=limiter,
            polling_interval_sec=_POLL,
            on_conflict="always_update",
        )
        waiting = await self._enqueue(tasks)
        while waiting:
            began = time.monotonic()
            over = await self._listed(status=_OVER, load_output=False)
            for chunk in _chunks([one.workflow_id for one in over if one.workflow_id in waiting]):
                for one in await self._listed(workflow_ids=chunk):
                    yield waiting.pop(one.workflow_id), _result(one)
            await asyncio.to_thread(self._node.look_after)
            # Of a long run the list is long, and asking for it must not become the work.
            await asyncio.sleep(max(_POLL, _SHARE * (time.monotonic() - began)) if waiting else 0)

    async def _enqueue(self, tasks: Sequence[Task]) -> dict[str, str]:
        """The trials to wait for, by the name of their workflow. What a start before this one lost is tried anew."""
        known = {one.workflow_id: one for one in await self._listed()}
        waiting = {}
        for task in tasks:
            name, attempt = task[0], 1
            while (found := known.get(self._id(name, attempt))) and _was_none(found):
                attempt += 1
            waiting[self._id(name, attempt)] = name
            if found is None:
                with SetWorkflowID(self._id(name, attempt)):
                    await DBOS.enqueue_workflow_async(self._queue, trial, self._run, task, self._options.as_json())
        return waiting

    def _id(self, name: str, attempt: int) -> str:
        return f"{self._run}:{name}:{attempt}"

    async def _listed(self, **filters: Any) -> list[WorkflowStatus]:
        return await DBOS.list_workflows_async(workflow_id_prefix=f"{self._run}:", load_input=False, **filters)


def forget(url: str, run: str) -> None:
    """Take a run that is over, and whose report is written, from the server that all share. Raises EvalError."""
    store = open_server(url, run)
    client = DBOSClient(system_database_url=url, retry_connection_errors=False, lazy=True)
    try:
        done = client.list_workflows(workflow_id_prefix=f"{run}:", load_input=False, load_output=False)
        for chunk in _chunks([one.workflow_id for one in done]):
            client.delete_workflows(chunk)
        client.delete_queue(_queue(run))
        store.forget()
    except SQLAlchemyError as error:
        raise unusable(url, error) from error
    finally:
        client.destroy()
        store.close()


def _queue(run: str) -> str:
    return f"evals-{run}"


def _was_none(status: WorkflowStatus) -> bool:
    return status.status in _OVER and bool(_result(status)["trace"]["error"])


def _result(status: WorkflowStatus) -> Result:
    if status.status == "SUCCESS":
        result: Result = json.loads(str(status.output))
        return result
    why = "it ended every process that ran it" if "ATTEMPTS" in status.status else f"{status.error or status.status}"
    return {"trace": Trace(error=f"The trial could not be run: {why}").as_json(), "recorded": {}}


def _chunks(names: Sequence[str]) -> Iterator[list[str]]:
    for at in range(0, len(names), _CHUNK):
        yield list(names[at : at + _CHUNK])
