"""A model on loopback: it answers "Done." in the API of three providers, and keeps every request."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ANSWER = "Done."


class ModelServer:
    """Speaks Anthropic's Messages, OpenAI's Responses and Google's generateContent, streamed."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        """The bodies of the model calls, in order."""

    @contextmanager
    def serve(self) -> Iterator[str]:
        """Yield the address of the server."""
        server = ThreadingHTTPServer(("127.0.0.1", 0), self._make_handler())
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            server.server_close()

    def _make_handler(self) -> type[BaseHTTPRequestHandler]:
        requests = self.requests

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                data = self.rfile.read(int(self.headers.get("content-length") or 0))
                path = self.path.partition("?")[0]
                if path.endswith("/messages"):
                    self._answer_with_events(_stream_message(self._keep(data)))
                elif path.endswith("/responses"):
                    self._answer_with_events(_stream_response(self._keep(data)))
                elif path.endswith(":streamGenerateContent"):
                    self._keep(data)
                    self._answer("text/event-stream", f"data: {json.dumps(_GENERATED)}\r\n\r\n")
                else:  # counts of tokens, lists of models, telemetry
                    self._answer("application/json", "{}")

            def do_GET(self) -> None:
                self._answer("application/json", '{"data": [], "models": []}')

            def do_HEAD(self) -> None:
                self._answer("application/json", "")

            def _keep(self, data: bytes) -> dict[str, Any]:
                body: dict[str, Any] = json.loads(data)
                requests.append(body)
                return body

            def _answer_with_events(self, events: Iterator[dict[str, Any]]) -> None:
                lines = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]
                self._answer("text/event-stream", "".join(lines))

            def _answer(self, content_type: str, text: str) -> None:
                data = text.encode()
                self.send_response(200)
                self.send_header("content-type", content_type)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *arguments: Any) -> None:
                """Keep the output of the script clean."""

        return Handler


def _stream_message(request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    usage = {"input_tokens": 10, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": request["model"], "usage": usage}
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None, "stop_sequence": None}}
    yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    yield {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": ANSWER}}
    yield {"type": "content_block_stop", "index": 0}
    yield {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": usage}
    yield {"type": "message_stop"}


def _stream_response(request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    content = [{"type": "output_text", "text": ANSWER, "annotations": []}]
    item = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": content}
    response = {"id": "r", "object": "response", "created_at": 1, "model": request["model"]}
    usage = {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 1,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 11,
    }
    yield {"type": "response.created", "response": {**response, "status": "in_progress", "output": []}}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    yield {
        "type": "response.completed",
        "response": {**response, "status": "completed", "output": [item], "usage": usage},
    }


_GENERATED = {
    "candidates": [{"content": {"role": "model", "parts": [{"text": ANSWER}]}, "finishReason": "STOP", "index": 0}],
    "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 1, "totalTokenCount": 11},
}
