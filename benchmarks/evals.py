"""Measure a trial of an eval, from the plan to its outcome, against the same work in bare pydantic-evals.

The work is one conversation: the model loads a skill, then answers, and two checks look at it. Scripted, the model is a
list of answers; live, it is a provider on loopback in a process of its own. pydantic-evals has an agent with one tool
and two evaluators: no workspace, no shelf, and nothing is kept.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from benchmarks.report import Row

CASES = 1_000
_TRIED = 50
_SECONDS = 60.0
_MOST_SCRIPTED = 4.0
_MOST_LIVE = 2.5
_WHOLE = f"evals: {CASES:,} scripted cases, on one core"
_SCRIPTED = "evals: a scripted trial"
_LIVE = "evals: a live trial, on loopback"
_AGAINST = "pydantic-evals"
_SKILL = "---\nname: forms\ndescription: Fills in forms.\n---\n\nFill it in.\n"
_TOOL = "load_skill_instructions"

Job = Callable[[], object]


def measure(rounds: int) -> list[Row]:
    """CPU seconds of all cases, and of one trial, scripted and live, by that of pydantic-evals."""
    try:
        import skillshelf_evals.engine._runner  # noqa: F401
    except ImportError:
        return [Row(what, None, against="needs skillshelf[evals]") for what in (_WHOLE, _SCRIPTED, _LIVE)]
    try:
        import pydantic_evals  # noqa: F401
    except ImportError:
        return [Row(what, None, against="needs pydantic-evals") for what in (_WHOLE, _SCRIPTED, _LIVE)]

    with tempfile.TemporaryDirectory(prefix="skillshelf-bench-") as folder, serve_model() as url:
        skill = os.path.join(folder, "forms")
        os.mkdir(skill)
        with open(os.path.join(skill, "SKILL.md"), "w", encoding="utf-8") as file:
            file.write(_SKILL)
        scripted, bare_scripted = _best(rounds, _trials(skill), _bare_trials())
        live, bare_live = _best(rounds, _trials(skill, url), _bare_trials(url))
    return [
        Row(_WHOLE, scripted * CASES, most=_SECONDS),
        Row(_SCRIPTED, scripted, against=_AGAINST, other=bare_scripted, most_ratio=_MOST_SCRIPTED),
        Row(_LIVE, live, against=_AGAINST, other=bare_live, most_ratio=_MOST_LIVE),
    ]


def _best(rounds: int, *jobs: Job) -> list[float]:
    """Return the best CPU seconds per trial of each job. They take turns, so that a busy machine slows down all."""
    times = [[_cpu(job) for job in jobs] for _ in range(rounds + 1)][1:]  # the first pays for imports
    return [min(column) / _TRIED for column in zip(*times, strict=True)]


def _cpu(job: Job) -> float:
    start = time.process_time()
    job()
    return time.process_time() - start


def _script() -> tuple[Any, ...]:
    from skillshelf_agent.testing import call

    return call(_TOOL, skill_name="forms"), "done"


def _trials(skill: str, url: str = "") -> Job:
    """All of a run but the report."""
    from skillshelf_agent import Settings
    from skillshelf_evals import Case, Message, check, make_plan
    from skillshelf_evals.engine import Options, PackedPlan, begin_run, run_plan

    checks = (check.skill_loaded("forms"), check.response_contains("done"))
    script = None if url else _script()
    cases = [
        Case(f"case {number}", (Message("hi"),), checks, "forms", skills=(skill,), script=script)
        for number in range(_TRIED)
    ]
    options = Options(Settings(model="tiny", base_url=url)) if url else Options()

    def run() -> None:
        with tempfile.TemporaryDirectory(prefix="skillshelf-bench-run-") as folder:
            work = PackedPlan(make_plan(cases), options)
            outcomes = asyncio.run(run_plan(work, begin_run(folder, work.fingerprint, {})))
        assert all(outcome.status == "passed" for outcome in outcomes)

    return run


def _bare_trials(url: str = "") -> Job:
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_evals import Case, Dataset
    from pydantic_evals.evaluators import Contains, Evaluator, EvaluatorContext

    from skillshelf_agent.testing import ScriptedModel

    class HasLoaded(Evaluator[str, str, None]):
        def evaluate(self, ctx: EvaluatorContext[str, str, None]) -> bool:
            return bool(ctx.output)

    agent = Agent(instructions="You help. <skills><skill>forms: Fills in forms.</skill></skills>")

    @agent.tool_plain
    def load_skill_instructions(skill_name: str) -> str:
        """Load a skill."""
        assert skill_name == "forms"
        return _SKILL

    evaluators: list[Any] = [Contains(value="done"), HasLoaded()]
    dataset = Dataset(
        name="forms",
        cases=[Case[str, str, None](name=f"case {number}", inputs="hi") for number in range(_TRIED)],
        evaluators=evaluators,
    )

    def run() -> None:
        live = OpenAIChatModel("tiny", provider=OpenAIProvider(base_url=url, api_key="none")) if url else None

        async def answer(prompt: str) -> str:
            result = await agent.run(prompt, model=live or ScriptedModel(*_script()))
            return result.output

        async def evaluate() -> None:
            report = await dataset.evaluate(answer, max_concurrency=4, progress=False)
            assert len(report.cases) == _TRIED

        asyncio.run(evaluate())

    return run


@contextmanager
def serve_model() -> Iterator[str]:
    """Serve a model with OpenAI's interface in a process of its own, and yield its address."""
    with subprocess.Popen([sys.executable, "-m", "benchmarks.evals"], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.kill()


_COMMON = {"id": "x", "created": 1, "model": "tiny"}
_USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def _stream(delta: dict[str, Any], reason: str) -> bytes:
    common = {**_COMMON, "object": "chat.completion.chunk"}
    chunks = [
        {**common, "choices": [{"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": None}]},
        {**common, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
        {**common, "choices": [], "usage": _USAGE},
    ]
    return b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"


def _whole(delta: dict[str, Any], reason: str) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", "content": None, **delta}, "finish_reason": reason}
    return json.dumps({**_COMMON, "object": "chat.completion", "choices": [choice], "usage": _USAGE}).encode()


class _Handler(BaseHTTPRequestHandler):
    """Loads the skill, then answers."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        function = {"name": _TOOL, "arguments": '{"skill_name": "forms"}'}
        delta: dict[str, Any] = {"tool_calls": [{"index": 0, "id": "c0", "type": "function", "function": function}]}
        reason = "tool_calls"
        if any(message["role"] == "assistant" for message in body["messages"]):
            delta = {"content": "done"}
            reason = "stop"

        is_stream = bool(body.get("stream"))
        data = _stream(delta, reason) if is_stream else _whole(delta, reason)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream" if is_stream else "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *words: object) -> None:
        """Keep requests out of the output."""


if __name__ == "__main__":
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as model:
        model.daemon_threads = True
        print(f"http://127.0.0.1:{model.server_port}/v1", flush=True)
        model.serve_forever()
