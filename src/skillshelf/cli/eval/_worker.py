"""`skillshelf eval worker`: trials of other machines' runs, until it is told to stop."""

import argparse
import asyncio

from skillshelf.cli._output import Output, complain
from skillshelf.cli.eval._consent import refuse_unconfined_worker
from skillshelf.errors import EvalError


def run_worker(args: argparse.Namespace, out: Output) -> int:
    if not args.engine or args.paths:
        raise EvalError("a worker takes --engine, and no paths", "skillshelf eval worker --engine postgresql://host/db")
    refuse_unconfined_worker(args)
    asyncio.run(_work(args.engine))
    return 0


async def _work(url: str) -> None:
    """DBOS runs the trials in the loop that it is started in, which is this one."""
    from skillshelf.evals.engine import LOOK_SECONDS, server_node

    node = server_node(url)
    complain("skillshelf: waiting for trials. Ctrl-C ends it; what it is at work on goes to another.")
    try:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await asyncio.to_thread(node.look_after)
    finally:
        node.close()
