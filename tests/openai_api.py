"""A server that speaks Chat Completions and Responses and follows a script, for programs that use OpenAI's client."""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Step = str | tuple[str, str]
"""An answer, or the name of a tool and the text of its arguments."""


class OpenAIApi:
    """`requests` holds the body of every call."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = list(steps)
        self.requests: list[dict[str, Any]] = []

    @contextmanager
    def serve(self) -> Iterator[str]:
        """Yield the address for a client's `base_url`."""
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                api.requests.append(body)
                step = api.steps.pop(0)
                reply = _response(step) if self.path.endswith("/responses") else _completion(step)
                text = json.dumps(reply).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *arguments: Any) -> None:
                """Keep the output of the tests clean."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()
            server.server_close()


def _completion(step: Step) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None}
    if isinstance(step, str):
        message["content"] = step
    else:
        function = {"name": step[0], "arguments": step[1]}
        message["tool_calls"] = [{"id": "call_1", "type": "function", "function": function}]
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    return {"id": "x", "object": "chat.completion", "created": 1, "model": "tiny", "choices": [choice]}


def _response(step: Step) -> dict[str, Any]:
    item: dict[str, Any]
    if isinstance(step, str):
        content = [{"type": "output_text", "text": step, "annotations": []}]
        item = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": content}
    else:
        item = {"type": "function_call", "id": "f", "call_id": "call_1", "name": step[0], "arguments": step[1]}
    return {
        "id": "r",
        "object": "response",
        "created_at": 1,
        "model": "tiny",
        "output": [item],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }
