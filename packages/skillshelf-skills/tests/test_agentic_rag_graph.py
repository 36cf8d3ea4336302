"""The skill `agentic-rag` with its embedded graph, in a real file."""

import asyncio
import hashlib
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from calling import call
from handbook import ALL, write_graph, write_handbook
from skillshelf.errors import SkillError
from skillshelf.sandbox import Sandbox, find_sandbox
from skillshelf_skills.agentic_rag import DocumentFolder, GraphFile, Sources, Template
from skillshelf_skills.agentic_rag.skill import AgenticRagSkill

pytestmark = pytest.mark.skipif(find_spec("ladybug") is None, reason="the extra rag is not installed")
needs_sandbox = pytest.mark.skipif(not find_sandbox(), reason="this machine cannot confine a process")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "graph").mkdir()
    return write_graph(tmp_path / "graph")


def open_skill(path: Path, *, seconds: float = 15.0, **options: Any) -> AgenticRagSkill:
    return AgenticRagSkill(Sources(graph=GraphFile(str(path), seconds=seconds)), **options).with_policy(ALL)


def query(path: Path, template: str, **parameters: str) -> list[list[Any]]:
    rows: list[list[Any]] = call(open_skill(path), "query_graph", template=template, parameters=parameters)["result"][
        "rows"
    ]
    return rows


def names(rows: list[list[Any]]) -> set[str]:
    return {row[0]["properties"]["name"] for row in rows}


def test_the_graph_is_described_with_its_templates(path: Path) -> None:
    """Labels, properties, relationships, and the parameters of each template."""
    described = call(open_skill(path), "describe_graph")
    assert {"label": "Service", "properties": ["name", "tier"]} in described["schema"]["nodes"]
    assert {"type": "OWNS", "start": "Team", "end": "Service"} in described["schema"]["relationships"]
    parameters = {template["name"]: template["parameters"] for template in described["templates"]}
    assert parameters["paths"] == ["first", "second"]


def test_every_template_runs_as_it_stands_in_the_reference(path: Path) -> None:
    """With the text that the model can read."""
    assert names(query(path, "find", name="PAY")) == {"payments"}
    assert names(query(path, "reachable", name="Checkout")) == {"payments", "ledger"}
    assert names(query(path, "reaching", name="ledger")) == {"payments", "checkout", "Billing"}
    neighbours = query(path, "neighbours", name="payments")
    assert {(start["properties"]["name"], edge["type"]) for start, edge, _ in neighbours} == {
        ("checkout", "DEPENDS_ON"),
        ("payments", "DEPENDS_ON"),
        ("Billing", "OWNS"),
    }
    ((route,),) = query(path, "paths", first="checkout", second="ledger")
    assert [node["properties"]["name"] for node in route["nodes"]] == ["checkout", "payments", "ledger"]
    assert names(query(path, "mentioned", question="Is checkout up?")) == {"checkout"}
    assert len(query(path, "mentioned_connections", question="Who owns the ledger?")) == 1


def test_values_are_parameters(path: Path) -> None:
    """A value that looks like Cypher is a name that nothing has."""
    assert query(path, "find", name="' OR 1=1 RETURN n //") == []


def test_an_unknown_template_or_parameter_is_explained(path: Path) -> None:
    """With the reference that has them."""
    skill = open_skill(path)
    with pytest.raises(
        SkillError, match=r"No template is called \"neighbors\". Did you mean neighbours.*templates\.py"
    ):
        call(skill, "query_graph", template="neighbors", parameters={"name": "a"})
    with pytest.raises(SkillError, match=r"'find' has the parameters name, and got names.*cypher_templates\.py"):
        call(skill, "query_graph", template="find", parameters={"names": "a"})


def test_hidden_characters_are_written_out(path: Path) -> None:
    """A model reads what a person would see."""
    echo = Template("The text itself.", "RETURN $text AS text")
    skill = open_skill(path, templates={"echo": echo})
    found = call(skill, "query_graph", template="echo", parameters={"text": "pay\u200bments"})
    assert found["result"]["rows"] == [["pay<U+200B>ments"]]


def test_a_program_can_add_templates(path: Path) -> None:
    """They are listed, and run, beside the others."""
    owners = Template("Teams that own a service.", "MATCH (t:Team)-[:OWNS]->(:Service {name: $name}) RETURN t.name")
    skill = open_skill(path, templates={"owners": owners})
    assert call(skill, "query_graph", template="owners", parameters={"name": "payments"})["result"]["rows"] == [
        ["Billing"]
    ]
    assert "owners" in [template["name"] for template in call(skill, "describe_graph")["templates"]]


def test_nodes_that_a_question_mentions_are_evidence(path: Path, tmp_path: Path) -> None:
    """Beside passages of documents; a name inside another word is not a mention."""
    sources = Sources([DocumentFolder(str(write_handbook(tmp_path)))], GraphFile(str(path)))
    skill = AgenticRagSkill(sources).with_policy(ALL)
    found = call(skill, "gather", question="Who owns payments, and how are they deployed?")
    (node,) = [each for each in found["evidence"] if each["source"] == "graph"]
    assert node["locator"] == "Service payments"
    assert "Billing (Team) -OWNS-> payments (Service)" in node["text"].splitlines()
    assert "documents" in {each["source"] for each in found["evidence"]}
    with pytest.raises(SkillError, match="No source has anything"):
        call(open_skill(path), "gather", question="Who gets repayments?")


# -- queries of the model's -------------------------------------------------------------------------------------------


def fingerprint(folder: Path) -> list[Any]:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return [(str(path), hashlib.sha256(path.read_bytes()).hexdigest()) for path in files]


@needs_sandbox
def test_a_query_that_reads_is_run(path: Path) -> None:
    """The number of rows is limited."""
    skill = open_skill(path)
    cypher = "MATCH (s:Service) WHERE s.tier = $tier RETURN s.name ORDER BY s.name"
    found = call(skill, "run_cypher", cypher=cypher, parameters={"tier": 1})
    assert found["result"] == {"columns": ["s.name"], "rows": [["checkout"], ["payments"]], "is_whole": True}
    assert call(skill, "run_cypher", cypher="MATCH (s) RETURN s.name", limit=1)["result"]["is_whole"] is False


@needs_sandbox
def test_every_value_has_a_json_form(path: Path) -> None:
    """Dates, times, decimal numbers and identifiers, too."""
    cypher = (
        "RETURN date('2026-11-16'), timestamp('2026-11-16 12:00:00'), interval('2 days'), "
        "CAST(1.5 AS DECIMAL(5, 2)), uuid('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'), [1, 2], {a: 1}, $flag, $missing"
    )
    parameters = {"flag": False, "missing": None}
    (row,) = call(open_skill(path), "run_cypher", cypher=cypher, parameters=parameters)["result"]["rows"]
    assert row == [
        "2026-11-16",
        "2026-11-16T12:00:00",
        "2 days, 0:00:00",
        "1.50",
        "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        [1, 2],
        {"a": 1},
        False,
        None,
    ]


@needs_sandbox
@pytest.mark.parametrize(
    "cypher",
    [
        "CREATE (:Team {name: 'Evil'})",
        "MATCH (n) DETACH DELETE n",
        "MATCH (n:Service) SET n.tier = 9",
        "DROP TABLE OWNS",
        "LOAD FROM '{outside}/secret.csv' RETURN *",
        "LOAD FROM '/etc/passwd' (file_format='csv') RETURN *",
        "COPY (MATCH (n) RETURN n.name) TO '{outside}/stolen.csv'",
        "EXPORT DATABASE '{outside}/dump'",
        "ATTACH '{outside}/other.db' AS other (dbtype sqlite)",
        "INSTALL httpfs",
        "LOAD EXTENSION '{outside}/evil.so'",
        "LOAD FROM connection RETURN *",
        "CHECKPOINT",
        "RETURN 1; CREATE (:Team {name: 'Evil'})",
        "CALL file_search_path='/etc'; LOAD FROM 'passwd' (file_format='csv') RETURN *",
    ],
)
def test_a_query_cannot_reach_beyond_the_graph(cypher: str, path: Path, tmp_path: Path) -> None:
    """Neither change it, nor read, write or create another file, nor fetch code."""
    (tmp_path / "secret.csv").write_text("a,b\n1,2\n")
    before = fingerprint(tmp_path)
    skill = open_skill(path)
    with pytest.raises(SkillError, match=r"cypher_templates\.py") as caught:
        call(skill, "run_cypher", cypher=cypher.replace("{outside}", str(tmp_path)))
    assert "root:" not in str(caught.value)
    assert fingerprint(tmp_path) == before
    assert not (tmp_path / "dump").exists()
    assert names(query(path, "find", name="a")) == {"payments"}


@needs_sandbox
def test_wrong_cypher_has_the_databases_own_words(path: Path) -> None:
    """And the reference with the rules."""
    with pytest.raises(SkillError, match=r"Cannot find property nope.*cypher_templates\.py"):
        call(open_skill(path), "run_cypher", cypher="MATCH (n:Team) RETURN n.nope")
    with pytest.raises(SkillError, match="There is no query"):
        call(open_skill(path), "run_cypher", cypher=" ")


@needs_sandbox
def test_a_query_that_never_ends_is_ended(path: Path) -> None:
    """So is one that needs too much memory; the skill goes on."""
    skill = open_skill(path, seconds=0.5)
    endless = (
        "UNWIND range(1, 100000) AS a UNWIND range(1, 100000) AS b WITH a, b WHERE (a * b) % 7 = 9 RETURN count(*)"
    )
    with pytest.raises(SkillError, match=r"took too long|needs more memory|refused the query"):
        call(skill, "run_cypher", cypher=endless)
    with pytest.raises(SkillError):
        call(skill, "run_cypher", cypher="UNWIND range(1, 1000000000) AS a RETURN collect(a)")
    assert call(open_skill(path), "run_cypher", cypher="RETURN 1 AS one")["result"]["rows"] == [[1]]


def test_without_a_sandbox_only_templates_run(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Because a query could create folders with EXPORT."""
    from skillshelf_skills.agentic_rag import _graph_file

    monkeypatch.setattr(_graph_file, "find_sandbox", lambda: Sandbox("none"))
    with pytest.raises(SkillError, match=r"need a sandbox.*Use a template"):
        call(open_skill(path), "run_cypher", cypher="RETURN 1")
    assert names(query(path, "find", name="led")) == {"ledger"}


def test_a_file_that_is_no_graph_is_explained(tmp_path: Path) -> None:
    """As is one that is gone."""
    path = tmp_path / "notes.lbug"
    path.write_text("not a graph\n" * 1000)
    with pytest.raises(SkillError, match=r"not a graph that can be opened.*error_codes\.md"):
        call(open_skill(path), "describe_graph")
    os.unlink(path)
    with pytest.raises(SkillError, match=r"cannot be opened.*error_codes\.md"):
        call(open_skill(path), "describe_graph")


def test_a_call_that_is_cancelled_leaves_nothing_running(path: Path) -> None:
    """The process of the database ends with it."""
    graph = GraphFile(str(path))

    async def cancel() -> None:
        task = asyncio.create_task(graph.query("RETURN 1", {}, 1, is_template=True))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert asyncio.run(graph.query("RETURN 1 AS one", {}, 1, is_template=True))["rows"] == [[1]]
