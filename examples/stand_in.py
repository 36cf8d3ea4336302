"""A server on this machine in the place of a provider, so that an example with a "live" model needs no key.

`StandIn({"release notes": "release-notes"})` has words, and the skill that they stand for; its `url` is for --base-url.
"""

import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class StandIn:
    """Loads a skill when its words are in the request and in the system prompt, and says what it was told to."""

    def __init__(self, loads: Mapping[str, str], says: str = "## Added\n\n- Export as CSV. (#12)") -> None:
        self.loads, self.says, self.asked = loads, says, 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, messages: list[dict[str, Any]]) -> tuple[dict[str, Any], str]:
        self.asked += 1
        said = str(next(one["content"] for one in messages if one["role"] == "user"))
        system = str([one["content"] for one in messages if one["role"] in ("system", "developer")])
        skill = next((skill for words, skill in self.loads.items() if words in said and words in system), "")
        if not skill or any(one["role"] == "assistant" for one in messages):
            return {"content": self.says if skill else "4"}, "stop"
        function = {"name": "load_skill_instructions", "arguments": json.dumps({"skill_name": skill})}
        return {"tool_calls": [{"index": 0, "id": "1", "type": "function", "function": function}]}, "tool_calls"


def _handler(stand_in: StandIn) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            data = _streamed(*stand_in.answer(body["messages"]))
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *words: object) -> None:
            """Not in the output of an example."""

    return Handler


def _streamed(delta: dict[str, Any], reason: str) -> bytes:
    common = {"id": "1", "created": 1, "model": "stand-in", "object": "chat.completion.chunk"}
    usage = {"prompt_tokens": 1000, "completion_tokens": 20, "total_tokens": 1020}
    chunks = [
        {**common, "choices": [{"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": None}]},
        {**common, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
        {**common, "choices": [], "usage": usage},
    ]
    return b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"


if __name__ == "__main__":
    serving = StandIn({"release notes": "release-notes", "has changed since": "release-notes"})
    print(f"export SKILLSHELF_BASE_URL={serving.url} SKILLSHELF_MODEL=stand-in", flush=True)
    threading.Event().wait()
