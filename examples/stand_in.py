"""A local server that stands in for a provider, so that an example with a "live" model needs no key.

`StandIn({"release notes": "release-notes"})` maps words to the skill they should load. Pass its `url` as --base-url.
"""

import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class StandIn:
    """A model that loads a skill if its words are in the request and in the listing, then gives a fixed answer."""

    def __init__(self, loads: Mapping[str, str], says: str = "## Added\n\n- Export as CSV. (#12)") -> None:
        self.loads = loads
        self.says = says
        self.requests = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, messages: list[dict[str, Any]]) -> tuple[dict[str, Any], str]:
        """Return the delta of the answer, and why it ends."""
        self.requests += 1
        skill = self._find_skill(messages)
        has_answered = any(message["role"] == "assistant" for message in messages)
        if not skill:
            return {"content": "4"}, "stop"
        if has_answered:
            return {"content": self.says}, "stop"

        function = {"name": "load_skill_instructions", "arguments": json.dumps({"skill_name": skill})}
        return {"tool_calls": [{"index": 0, "id": "1", "type": "function", "function": function}]}, "tool_calls"

    def _find_skill(self, messages: list[dict[str, Any]]) -> str:
        prompt = str(next(message["content"] for message in messages if message["role"] == "user"))
        system = str([message["content"] for message in messages if message["role"] in ("system", "developer")])
        # The listing alone: the name of the workspace, a few random letters, may hold any short word.
        listing = system.partition("<available_skills>")[2]
        for words, skill in self.loads.items():
            if words in prompt and words in listing:
                return skill
        return ""


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
            """Keep requests out of the output of an example."""

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
