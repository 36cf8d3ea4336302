"""The skill `agentic-rag` with Neo4j, at the boundary of the protocol: a real driver, and a server that speaks Bolt."""

from collections.abc import Iterator

import pytest

from bolt_server import Answer, BoltServer, node, relationship
from calling import call
from handbook import ALL
from skillshelf.errors import SettingsError, SkillError
from skillshelf.sources.attachable import attach_skill
from skillshelf_skills.agentic_rag import Sources
from skillshelf_skills.agentic_rag.skill import AgenticRagSkill

pytest.importorskip("neo4j", reason="the extra rag-neo4j is not installed")
CHECKOUT = node(1, "Service", name="checkout", tier=1)
PAYMENTS = node(2, "Service", name="payments")
DEPENDS = relationship(1, 1, 2, "DEPENDS_ON")


@pytest.fixture
def server() -> Iterator[BoltServer]:
    with BoltServer.running() as server:
        yield server


def open_skill(server: BoltServer, *, scheme: str = "bolt", password: str = "secret") -> AgenticRagSkill:
    from skillshelf_skills.agentic_rag import Neo4jGraph

    graph = Neo4jGraph(f"{scheme}://reader@{server.host}/shop", password=password, seconds=5)
    return AgenticRagSkill(Sources(graph=graph)).with_policy(ALL)


@pytest.mark.parametrize("scheme", ["bolt", "neo4j"])
def test_a_template_returns_nodes_and_relationships(scheme: str, server: BoltServer) -> None:
    """In the same form as those of the embedded graph."""
    server.answers["RETURN n, r, m"] = Answer(["n", "r", "m"], [[CHECKOUT, DEPENDS, PAYMENTS]])
    skill = open_skill(server, scheme=scheme)
    found = call(skill, "query_graph", template="neighbours", parameters={"name": "checkout"})
    assert found["result"]["rows"] == [
        [
            {"label": "Service", "properties": {"name": "checkout", "tier": 1}},
            {"type": "DEPENDS_ON", "properties": {}},
            {"label": "Service", "properties": {"name": "payments"}},
        ]
    ]


def test_each_query_is_a_transaction_that_may_only_read(server: BoltServer) -> None:
    """With a time limit, on the database and as the user that the address names; values are parameters."""
    server.answers["MATCH"] = Answer(["n"], [[CHECKOUT]])
    call(open_skill(server), "query_graph", template="find", parameters={"name": "check"})
    (begin,) = server.of("BEGIN")
    assert begin.fields[0]["mode"] == "r"
    assert begin.fields[0]["db"] == "shop"
    assert begin.fields[0]["tx_timeout"] == 5000
    (logon,) = server.of("LOGON")
    assert logon.fields[0]["principal"] == "reader"
    (run,) = server.of("RUN")
    assert run.fields[1] == {"name": "check"}


def test_the_server_refuses_to_write(server: BoltServer) -> None:
    """Its own code and message reach the model."""
    failure = ("Neo.ClientError.Statement.AccessMode", "Writing in read access mode not allowed.")
    server.answers["CREATE"] = Answer(failure=failure)
    with pytest.raises(SkillError, match=r"AccessMode\): Writing in read access mode not allowed.*cypher_templates"):
        call(open_skill(server), "run_cypher", cypher="CREATE (n) RETURN n")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Answer(kind="rw"), "would do more than read"),
        (Answer(kind="s"), "would do more than read"),
        (Answer(operators=["ProduceResults@neo4j", "LoadCSV@neo4j"]), "its plan has the step LoadCSV"),
        (Answer(operators=["ProduceResults@neo4j", "Apply@neo4j", "ProcedureCall@neo4j"]), "step ProcedureCall"),
        (Answer(operators=["ShowTransactions@neo4j"]), "step ShowTransactions"),
    ],
)
def test_a_query_of_the_models_is_judged_by_the_servers_plan(answer: Answer, message: str, server: BoltServer) -> None:
    """One that reaches beyond the graph is never run."""
    server.answers["ANYTHING"] = answer
    with pytest.raises(SkillError, match=message):
        call(open_skill(server), "run_cypher", cypher="ANYTHING")
    assert [run.fields[0] for run in server.of("RUN")] == ["EXPLAIN ANYTHING"]


def test_a_query_of_the_models_that_reads_is_run(server: BoltServer) -> None:
    """The rows are limited, and the result says whether there are more."""
    server.answers["MATCH (n)"] = Answer(["n.name"], [["checkout"], ["payments"], ["ledger"]])
    found = call(open_skill(server), "run_cypher", cypher="MATCH (n) RETURN n.name", limit=2)
    assert found["result"] == {"columns": ["n.name"], "rows": [["checkout"], ["payments"]], "is_whole": False}


def test_the_graph_is_described_without_procedures(server: BoltServer) -> None:
    """From a sample of its nodes and relationships."""
    server.answers["RETURN label"] = Answer(["label", "keys"], [["Service", ["name", "tier"]]])
    server.answers["type(r)"] = Answer(["start", "type", "end"], [["Service", "DEPENDS_ON", "Service"]])
    schema = call(open_skill(server), "describe_graph")["schema"]
    assert schema == {
        "nodes": [{"label": "Service", "properties": ["name", "tier"]}],
        "relationships": [{"type": "DEPENDS_ON", "start": "Service", "end": "Service"}],
    }


def test_nodes_that_a_question_mentions_are_evidence(server: BoltServer) -> None:
    """With their properties and relationships."""
    server.answers["RETURN n, r, m"] = Answer(["n", "r", "m"], [[CHECKOUT, DEPENDS, PAYMENTS]])
    server.answers["RETURN n"] = Answer(["n"], [[CHECKOUT]])
    (evidence,) = call(open_skill(server), "gather", question="What does checkout depend on?")["evidence"]
    assert evidence["locator"] == "Service checkout"
    assert evidence["text"] == "checkout (Service)\ntier: 1\ncheckout (Service) -DEPENDS_ON-> payments (Service)"


def test_a_wrong_password_is_for_the_user(server: BoltServer) -> None:
    """The error names the variable, and not the password."""
    with pytest.raises(SkillError, match=r"refuses the user or the password.*NEO4J_PASSWORD") as caught:
        call(open_skill(server, password="hunter2"), "describe_graph")
    assert "hunter2" not in str(caught.value)


def test_a_server_that_is_not_there_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a closed port, the skill still answers."""
    monkeypatch.setenv("NEO4J_PASSWORD", "hunter2")
    skill = attach_skill("agentic-rag=bolt://reader@127.0.0.1:9")
    with pytest.raises(SkillError, match="there is no connection to Neo4j") as caught:
        call(skill, "describe_graph")
    assert "hunter2" not in str(caught.value)


def test_a_query_that_takes_too_long_is_ended_by_the_server(server: BoltServer) -> None:
    """The error says how to ask for less."""
    code = "Neo.ClientError.Transaction.TransactionTimedOut"
    server.answers["MATCH"] = Answer(failure=(code, "The transaction has been terminated."))
    with pytest.raises(SkillError, match=r"longer than 5 seconds.*add LIMIT"):
        call(open_skill(server), "query_graph", template="find", parameters={"name": "a"})


@pytest.mark.parametrize("message", ["BEGIN", "RUN", "PULL"])
def test_a_server_that_falls_silent_is_given_up(
    message: str, server: BoltServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit is on this side, too."""
    from skillshelf_skills.agentic_rag import Neo4jGraph, _neo4j

    monkeypatch.setattr(_neo4j, "_GRACE_SECONDS", -9.0)  # of the ten for connecting
    server.silent_after = message
    server.answers["MATCH"] = Answer(["n"], [[CHECKOUT]])
    graph = Neo4jGraph(f"bolt://reader@{server.host}/shop", password="secret", seconds=0.5)
    skill = AgenticRagSkill(Sources(graph=graph)).with_policy(ALL)
    with pytest.raises(SkillError, match=r"graph: Neo4j did not answer in time.*error_codes\.md"):
        call(skill, "query_graph", template="find", parameters={"name": "a"})


def test_a_password_in_the_address_is_refused() -> None:
    """Without repeating it."""
    with pytest.raises(SettingsError, match="NEO4J_PASSWORD") as caught:
        attach_skill("agentic-rag=neo4j://reader:hunter2@host")
    assert "hunter2" not in str(caught.value)
