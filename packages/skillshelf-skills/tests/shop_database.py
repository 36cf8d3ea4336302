"""A small shop's database, for tests and evals."""

import os
import socket
import sqlite3
import struct
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from skillshelf_skills.database.skill import DatabaseSkill

SCHEMA = """
CREATE TABLE customers (id integer PRIMARY KEY, name text NOT NULL);
CREATE TABLE orders (id integer PRIMARY KEY, customer_id integer REFERENCES customers (id), status text, total numeric);
CREATE INDEX by_status ON orders (status);
CREATE VIEW paid AS SELECT * FROM orders WHERE status = 'paid';
INSERT INTO customers VALUES (1, 'Ada'), (2, 'Grace');
INSERT INTO orders VALUES (1, 1, 'paid', 10), (2, 1, 'open', 20), (3, 2, 'paid', 30);
"""


def write_shop(folder: Path) -> Path:
    path = folder / "shop.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SCHEMA)
    return path


def open_for_evals() -> DatabaseSkill:
    """Return the skill on a database of its own, without questions to the user."""
    skill = DatabaseSkill(str(write_shop(Path(tempfile.mkdtemp(prefix="shop-")))))
    return skill.with_policy(dict.fromkeys(("list_tables", "describe_table", "run_query", "explain_query"), "safe"))


_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
_LOCK_BYTE = 0x40000000


def plant_journal(database: Path, victim: Path) -> None:
    """Put a journal beside a database after which SQLite, to undo a write that never was, deletes the victim."""
    data = database.read_bytes()
    (page_size,) = struct.unpack(">H", data[16:18])
    header = _JOURNAL_MAGIC + struct.pack(">5I", 0, 0, len(data) // page_size, 512, page_size)
    name = os.fsencode(victim)
    super_journal = struct.pack(">I", _LOCK_BYTE // page_size + 1) + name + struct.pack(">2I", len(name), sum(name))
    Path(f"{database}-journal").write_bytes(header.ljust(512, b"\0") + super_journal + _JOURNAL_MAGIC)


@contextmanager
def forward_port(path: str) -> Iterator[int]:
    """Provide a port of this machine that leads to a Unix socket."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_accept, args=(listener, path), daemon=True).start()
        yield int(listener.getsockname()[1])
        listener.shutdown(socket.SHUT_RDWR)


def _accept(listener: socket.socket, path: str) -> None:
    while True:
        try:
            outer, _ = listener.accept()
        except OSError:  # the end
            return
        inner = socket.socket(socket.AF_UNIX)
        inner.connect(path)
        for source, target in ((outer, inner), (inner, outer)):
            threading.Thread(target=_forward, args=(source, target), daemon=True).start()


def _forward(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        return
