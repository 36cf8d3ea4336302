"""A server that speaks the Messages API and follows a script: Claude Code uses it as its model."""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Step = str | tuple[str, dict[str, Any]]
"""An answer, or a tool and its arguments."""


class MessagesApi:
    def __init__(self, steps: Sequence[Step], full_at: int = 0) -> None:
        """Set up the script. `full_at` is the step at which the context is full, so that Claude Code compacts it."""
        self.steps, self.full_at = list(steps), full_at
        self.requests: list[dict[str, Any]] = []
        """The bodies of the calls, except Claude Code's own calls for a title or a summary."""

    @contextmanager
    def serve(self) -> Iterator[str]:
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                events = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in api.answer(body))
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("content-length", str(len(events.encode())))
                self.end_headers()
                self.wfile.write(events.encode())

            def do_HEAD(self) -> None:
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *arguments: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            server.server_close()

    def answer(self, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the events of one streamed message."""
        step: Step = "<summary>They went on.</summary>"
        if body.get("tools") and "<summary>" not in json.dumps(body["messages"][-1]):
            self.requests.append(body)
            step = self.steps.pop(0)
        usage = {"input_tokens": 990_000 if len(self.requests) == self.full_at else 10, "output_tokens": 1}
        head = {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "usage": usage}
        yield {"type": "message_start", "message": {**head, "content": [], "stop_reason": None, "stop_sequence": None}}
        if isinstance(step, str):
            block: dict[str, Any] = {"type": "text", "text": ""}
            delta = {"type": "text_delta", "text": step}
        else:
            block = {
                "type": "tool_use",
                "id": f"toolu_{len(self.requests)}",
                "name": step[0],
                "input": {},
            }
            delta = {"type": "input_json_delta", "partial_json": json.dumps(step[1])}
        yield {"type": "content_block_start", "index": 0, "content_block": block}
        yield {"type": "content_block_delta", "index": 0, "delta": delta}
        yield {"type": "content_block_stop", "index": 0}
        reason = "end_turn" if isinstance(step, str) else "tool_use"
        yield {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage}
        yield {"type": "message_stop"}
