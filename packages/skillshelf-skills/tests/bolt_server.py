"""A server that speaks Bolt 5.4, the protocol of Neo4j, as far as a driver needs it to ask a query."""

import struct
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Any, NamedTuple, Self

_MAGIC = bytes.fromhex("6060B017")
_VERSION = bytes((0, 0, 4, 5))
_MESSAGES = {
    0x01: "HELLO",
    0x02: "GOODBYE",
    0x0F: "RESET",
    0x10: "RUN",
    0x11: "BEGIN",
    0x12: "COMMIT",
    0x13: "ROLLBACK",
    0x2F: "DISCARD",
    0x3F: "PULL",
    0x54: "TELEMETRY",
    0x66: "ROUTE",
    0x6A: "LOGON",
    0x6B: "LOGOFF",
}
_SUCCESS = 0x70
_RECORD = 0x71
_IGNORED = 0x7E
_FAILURE = 0x7F


class Structure(NamedTuple):
    """A value with a tag, such as a node."""

    tag: int
    fields: Sequence[Any]


def node(number: int, label: str, **properties: Any) -> Structure:
    return Structure(0x4E, [number, [label], properties, f"node-{number}"])


def relationship(number: int, start: int, end: int, kind: str) -> Structure:
    return Structure(0x52, [number, start, end, kind, {}, f"edge-{number}", f"node-{start}", f"node-{end}"])


@dataclass
class Answer:
    """What the server answers to a query."""

    fields: Sequence[str] = ()
    records: Sequence[Sequence[Any]] = ()
    failure: tuple[str, str] | None = None
    """The code and the message of an error."""
    kind: str = "r"
    """What EXPLAIN says that the query does."""
    operators: Sequence[str] = ("ProduceResults@neo4j", "AllNodesScan@neo4j")
    """The steps of its plan, each the only child of the one before."""


@dataclass
class Received:
    """A message of the driver."""

    name: str
    fields: list[Any] = field(default_factory=list)


class BoltServer(ThreadingTCPServer):
    """A server on this machine. It answers a query by the first text in `answers` that occurs in it."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, password: str) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.password = password
        self.answers: dict[str, Answer] = {}
        self.silent_after = ""
        """The name of a message after which the server says nothing any more."""
        self.received: list[Received] = []
        self.host = f"127.0.0.1:{self.server_address[1]}"

    @classmethod
    @contextmanager
    def running(cls, password: str = "secret") -> Iterator[Self]:
        with cls(password) as server:
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
            thread.start()
            try:
                yield server
            finally:
                server.shutdown()
                thread.join()

    def find(self, query: str) -> Answer:
        for text, answer in self.answers.items():
            if text in query:
                return answer
        return Answer(failure=("Neo.ClientError.Statement.SyntaxError", "Invalid input"))

    def of(self, name: str) -> list[Received]:
        return [message for message in self.received if message.name == name]


class _Connection(StreamRequestHandler):
    server: BoltServer

    def handle(self) -> None:
        with suppress(ConnectionError, struct.error):
            self._serve()

    def _serve(self) -> None:
        if self.rfile.read(20)[:4] != _MAGIC:
            return
        self.wfile.write(_VERSION)
        query = ""
        is_failed = False
        while True:
            message = self._receive()
            if message is None or message.name == "GOODBYE":
                return
            self.server.received.append(message)
            if message.name == self.server.silent_after:
                self.rfile.read()  # until the driver goes away
                return
            if message.name == "RESET":
                is_failed = False
            if is_failed:
                self._send(_IGNORED)
                continue
            if message.name == "RUN":
                query = message.fields[0]
            failure = self._find_failure(message, query)
            if failure:
                is_failed = True
                self._send(_FAILURE, {"code": failure[0], "message": failure[1]})
            else:
                self._answer(message, query)

    def _find_failure(self, message: Received, query: str) -> tuple[str, str] | None:
        if message.name == "LOGON" and message.fields[0].get("credentials") != self.server.password:
            return "Neo.ClientError.Security.Unauthorized", "The client is unauthorized"
        return self.server.find(query).failure if message.name == "RUN" else None

    def _answer(self, message: Received, query: str) -> None:
        answer = self.server.find(query)
        is_explained = query.startswith("EXPLAIN ")
        match message.name:
            case "HELLO":
                self._send(_SUCCESS, {"server": "Neo4j/5.26.0", "connection_id": "bolt-1"})
            case "RUN":
                self._send(_SUCCESS, {"fields": list(answer.fields), "t_first": 0, "qid": 0})
            case "PULL" | "DISCARD":
                summary: dict[str, Any] = {"type": answer.kind, "t_last": 0, "db": "neo4j", "has_more": False}
                if is_explained:
                    summary["plan"] = _make_plan(answer.operators)
                elif message.name == "PULL":
                    for record in answer.records:
                        self._send(_RECORD, list(record))
                self._send(_SUCCESS, summary)
            case "ROUTE":
                servers = [{"addresses": [self.server.host], "role": role} for role in ("READ", "WRITE", "ROUTE")]
                self._send(
                    _SUCCESS, {"rt": {"ttl": 300, "db": message.fields[2].get("db", "neo4j"), "servers": servers}}
                )
            case _:
                self._send(_SUCCESS, {})

    def _receive(self) -> Received | None:
        """Return the next message, from as many chunks as it has."""
        data = b""
        while True:
            header = self.rfile.read(2)
            if len(header) < 2:
                return None
            (size,) = struct.unpack(">H", header)
            if size == 0 and data:
                break
            data += self.rfile.read(size)
        value = _Reader(data).read()
        return Received(_MESSAGES[value.tag], list(value.fields))

    def _send(self, tag: int, *fields: Any) -> None:
        data = pack(Structure(tag, fields))
        self.wfile.write(struct.pack(">H", len(data)) + data + b"\0\0")


def _make_plan(operators: Sequence[str]) -> dict[str, Any]:
    plan: dict[str, Any] = {}
    for operator in reversed(operators):
        plan = {"operatorType": operator, "args": {}, "identifiers": [], "children": [plan] if plan else []}
    return plan


# -- PackStream -------------------------------------------------------------------------------------------------------


def pack(value: Any) -> bytes:
    match value:
        case None:
            return b"\xc0"
        case bool():
            return b"\xc3" if value else b"\xc2"
        case int():
            return b"\xcb" + struct.pack(">q", value)
        case float():
            return b"\xc1" + struct.pack(">d", value)
        case str():
            data = value.encode()
            return b"\xd2" + struct.pack(">I", len(data)) + data
        case Structure():
            return bytes([0xB0 + len(value.fields), value.tag]) + b"".join(map(pack, value.fields))
        case Mapping():
            items = b"".join(pack(key) + pack(item) for key, item in value.items())
            return b"\xda" + struct.pack(">I", len(value)) + items
        case _:
            return b"\xd6" + struct.pack(">I", len(value)) + b"".join(map(pack, value))


class _Reader:
    """Reads packed values one after the other."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def read(self) -> Any:
        marker = self._take(1)[0]
        if marker < 0x80 or marker >= 0xF0:
            return marker if marker < 0x80 else marker - 0x100
        match marker & 0xF0:
            case 0x80:
                return self._take(marker & 0x0F).decode()
            case 0x90:
                return [self.read() for _ in range(marker & 0x0F)]
            case 0xA0:
                return {self.read(): self.read() for _ in range(marker & 0x0F)}
            case 0xB0:
                tag = self._take(1)[0]
                return Structure(tag, [self.read() for _ in range(marker & 0x0F)])
        return self._read_sized(marker)

    def _read_sized(self, marker: int) -> Any:
        plain = {0xC0: None, 0xC2: False, 0xC3: True}
        if marker in plain:
            return plain[marker]
        numbers = {0xC1: ">d", 0xC8: ">b", 0xC9: ">h", 0xCA: ">i", 0xCB: ">q"}
        if marker in numbers:
            return self._unpack(numbers[marker])
        sizes = {0: ">B", 1: ">H", 2: ">I"}
        kinds = {0xD0: "text", 0xD4: "list", 0xD8: "map"}
        size = self._unpack(sizes[marker & 0x03])
        match kinds[marker & 0xFC]:
            case "text":
                return self._take(size).decode()
            case "list":
                return [self.read() for _ in range(size)]
            case _:
                return {self.read(): self.read() for _ in range(size)}

    def _unpack(self, form: str) -> Any:
        (value,) = struct.unpack(form, self._take(struct.calcsize(form)))
        return value

    def _take(self, count: int) -> bytes:
        data = self._data[self._at : self._at + count]
        self._at += count
        return data
