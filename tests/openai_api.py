"""A server that speaks Chat Completions and Responses and follows a script, for programs that use OpenAI's client."""

import json
import threading
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_GZIP_BITS = 16 + zlib.MAX_WBITS


@dataclass(frozen=True)
class Fault:
    """An answer with an error."""

    status: int
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Broken:
    """A stream that does not end as it should, after these lines."""

    lines: Sequence[str] = ()
    then: str = "end"
    """`end`: nothing follows. `cut`: the connection breaks. `hang`: it stays open until the client goes away."""
    encoding: str = ""
    """`gzip`: the stream is compressed."""


Step = str | tuple[str, str] | Fault | Broken
"""An answer, the name of a tool and the text of its arguments, or a failure."""


def chunk(text: str) -> str:
    """Return the line of a stream with a piece of an answer."""
    return f"data: {json.dumps(_chunk({'content': text}))}"


class OpenAIApi:
    """`requests` holds the body of every call. A client that asks for a stream gets one."""

    def __init__(
        self, steps: Sequence[Step] = (), *, usage: Mapping[str, int] | None = None, listing: Step | None = None
    ) -> None:
        """`listing` is the answer to a request for the server's models: its JSON, or a failure. By default, none."""
        self.steps = list(steps)
        self.listing = listing or Fault(404)
        self.requests: list[dict[str, Any]] = []
        self.usage = usage

    @contextmanager
    def serve(self) -> Iterator[str]:
        """Yield the address for a client's `base_url`."""
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                listing = api.listing
                if isinstance(listing, Broken):
                    self._break(listing)
                elif isinstance(listing, Fault):
                    self._answer(listing.status, listing.body, listing.headers)
                else:
                    self._answer(200, str(listing), {"content-type": "application/json"})

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                api.requests.append(body)
                step = api.steps.pop(0)
                if isinstance(step, Fault):
                    self._answer(step.status, step.body, step.headers)
                elif isinstance(step, Broken):
                    self._break(step)
                elif body.get("stream"):
                    self._stream([*_stream_lines(step, api.usage), "data: [DONE]"])
                else:
                    reply = _response(step) if self.path.endswith("/responses") else _completion(step)
                    self._answer(200, json.dumps(reply), {"content-type": "application/json"})

            def _answer(self, status: int, body: str, headers: Mapping[str, str]) -> None:
                text = body.encode()
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def _stream(self, lines: Sequence[str]) -> None:
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("connection", "close")
                self.end_headers()
                for line in lines:
                    self.wfile.write(f"{line}\n\n".encode())
                self.wfile.flush()
                self.close_connection = True

            def _break(self, step: Broken) -> None:
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("transfer-encoding", "chunked")
                if step.encoding:
                    self.send_header("content-encoding", step.encoding)
                self.end_headers()
                compressor = zlib.compressobj(wbits=_GZIP_BITS)
                for line in step.lines:
                    data = f"{line}\n\n".encode()
                    if step.encoding:
                        data = compressor.compress(data) + compressor.flush(zlib.Z_SYNC_FLUSH)
                    self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
                self.wfile.flush()
                if step.then == "end":
                    self.wfile.write(b"0\r\n\r\n")
                if step.then == "hang":
                    with suppress(OSError):
                        self.connection.settimeout(60)
                        self.connection.recv(1)  # returns when the client closes the connection
                self.close_connection = True

            def log_message(self, *arguments: Any) -> None:
                """Keep the output of the tests clean."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()
            server.server_close()


def _stream_lines(step: str | tuple[str, str], usage: Mapping[str, int] | None) -> Iterator[str]:
    deltas: list[dict[str, Any]]
    if isinstance(step, str):
        deltas = [{"content": f"{word} "} for word in step.split()]
    else:
        function = {"name": step[0], "arguments": step[1]}
        deltas = [{"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}]}]
    for delta in deltas:
        yield f"data: {json.dumps(_chunk(delta))}"
    yield f"data: {json.dumps(_chunk({}, finish='stop' if isinstance(step, str) else 'tool_calls'))}"
    if usage:
        yield f"data: {json.dumps({**_chunk({}), 'choices': [], 'usage': dict(usage)})}"


def _chunk(delta: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": finish}
    return {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "tiny", "choices": [choice]}


def _completion(step: str | tuple[str, str]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None}
    if isinstance(step, str):
        message["content"] = step
    else:
        function = {"name": step[0], "arguments": step[1]}
        message["tool_calls"] = [{"id": "call_1", "type": "function", "function": function}]
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    return {"id": "x", "object": "chat.completion", "created": 1, "model": "tiny", "choices": [choice]}


def _response(step: str | tuple[str, str]) -> dict[str, Any]:
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
