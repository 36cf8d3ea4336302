"""A small shop's database, for tests and evals."""

import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from skillshelf.bundled.database.skill import DatabaseSkill

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
