"""A provider on loopback with OpenAI's interface. It counts its answers, and can kill the process that asks.

Every conversation is the same: the model lists the folder a few times, then answers.
"""

import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CALLS = 3
"""Model calls in each trial."""


class Provider:
    """A provider that serves at `provider.url` within a `with` block."""

    def __init__(self, calls: int = CALLS, says: str | Callable[[dict[str, Any], int], str] = "All is well.") -> None:
        """`says` is the last answer of a trial, or a function of the request and the number of the call."""
        self.calls, self.says = calls, says
        self.answered: Counter[tuple[str, int]] = Counter()
        """Answers by first message and number of the call. Each is paid for when its last byte is sent."""
        self.asked = 0
        """Calls of processes that were alive when they were read."""
        self.arrived: Callable[[int], None] = lambda number: None
        """Called with the number of each call before it is answered."""
        self.broken: Callable[[int], int] = lambda number: 0
        """An HTTP status to fail with, or 0."""
        self.lock = threading.Lock()

    def __enter__(self) -> "Provider":
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *fault: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def kill_at(self, number: int, kill: Callable[[], None], kept: Callable[[], int]) -> None:
        """Kill a process when this call has arrived and all answers before it are stored.

        `kill` returns when it is gone, and `kept` counts the stored answers. A call in flight at that moment is lost
        and made again. Hold `lock` from before the process starts until this returns: otherwise it may ask before its
        calls are counted.
        """
        at = self.asked + number

        def arrived(now: int) -> None:
            if now == at:
                deadline = time.monotonic() + 30  # no other call is answered meanwhile
                while kept() < len(self.answered) and time.monotonic() < deadline:
                    time.sleep(0.02)
                kill()

        self.arrived = arrived

    def _handler(provider) -> type[BaseHTTPRequestHandler]:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with provider.lock:
                    if _is_gone(self.connection):  # a call of a process that was killed before it was read
                        self.close_connection = True
                        return
                    provider.asked += 1
                    provider.arrived(provider.asked)
                    if _is_gone(self.connection):
                        self.close_connection = True
                        return
                    status = provider.broken(provider.asked)
                    messages = body["messages"]
                    said = next(one["content"] for one in messages if one["role"] == "user")
                    before = sum(one["role"] == "assistant" for one in messages)
                    told = _answer(body, before, provider)
                    text = b"{}" if status else _streamed(*told) if body.get("stream") else _whole(*told)
                    kind = "text/event-stream" if body.get("stream") and not status else "application/json"
                    if not status:
                        provider.answered[_text(said), before + 1] += 1
                self.send_response(status or 200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *words: object) -> None:
                """Keep requests out of the output of tests."""

        return Handler


def _is_gone(connection: socket.socket) -> bool:
    """True if the client is gone."""
    try:
        return connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


_COMMON = {"id": "x", "created": 1, "model": "tiny"}
_USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def _answer(body: dict[str, Any], before: int, provider: Provider) -> tuple[dict[str, Any], str]:
    if before + 1 >= provider.calls:
        says = provider.says
        return {"content": says if isinstance(says, str) else says(body, provider.asked)}, "stop"
    function = {"name": "list_directory", "arguments": '{"path": "."}'}
    return {"tool_calls": [{"index": 0, "id": f"c{before}", "type": "function", "function": function}]}, "tool_calls"


def _streamed(delta: dict[str, Any], reason: str) -> bytes:
    common = {**_COMMON, "object": "chat.completion.chunk"}
    chunks = [
        {**common, "choices": [{"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": None}]},
        {**common, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
        {**common, "choices": [], "usage": _USAGE},
    ]
    return b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"


def _whole(message: dict[str, Any], reason: str) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": reason}
    return json.dumps({**_COMMON, "object": "chat.completion", "choices": [choice], "usage": _USAGE}).encode()
