"""A company's handbook and its graph of services, for tests and evals."""

import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from skillshelf.skills import Permission
from skillshelf_skills.agentic_rag import DocumentFolder, GraphFile, Sources
from skillshelf_skills.agentic_rag.skill import AgenticRagSkill

ALL: dict[str, Permission] = {
    "gather": "safe",
    "search_documents": "safe",
    "describe_graph": "safe",
    "query_graph": "safe",
    "run_cypher": "safe",
    "read_page": "safe",
}
REFUNDS = """
# Refunds

Customers get their money back within five working days, to the card they paid with.

## Exceptions

Software licences are not refunded once they were activated.

```sh
# this is not a heading
refund --order 4711
```
"""
DEPLOYING = """
# Deploying

The release robot deploys the shop every Tuesday at noon, after all tests have passed.

## Rolling back

Call `robot undo`. The previous version is live again after a minute.
"""
HOLIDAYS = """
<html><head><title>Holidays</title></head><body><nav><a href="/">Start</a></nav><article><h1>Holidays</h1>
<p>The office in Graz is closed between Christmas and New Year, and everyone has thirty days of leave besides.</p>
<p>Ask your team lead two weeks before a longer leave, so that somebody can take over what you are working on.</p>
</article></body></html>
"""
GRAPH = (
    "CREATE NODE TABLE Service (name STRING PRIMARY KEY, tier INT64)",
    "CREATE NODE TABLE Team (name STRING PRIMARY KEY)",
    "CREATE REL TABLE DEPENDS_ON (FROM Service TO Service)",
    "CREATE REL TABLE OWNS (FROM Team TO Service)",
    "CREATE (:Service {name: 'checkout', tier: 1}), (:Service {name: 'payments', tier: 1}), "
    "(:Service {name: 'ledger', tier: 2}), (:Team {name: 'Billing'})",
    "MATCH (a:Service {name: 'checkout'}), (b:Service {name: 'payments'}) CREATE (a)-[:DEPENDS_ON]->(b)",
    "MATCH (a:Service {name: 'payments'}), (b:Service {name: 'ledger'}) CREATE (a)-[:DEPENDS_ON]->(b)",
    "MATCH (a:Team {name: 'Billing'}), (b:Service {name: 'payments'}) CREATE (a)-[:OWNS]->(b)",
)


def write_handbook(folder: Path) -> Path:
    handbook = folder / "handbook"
    (handbook / "shop").mkdir(parents=True)
    (handbook / "shop" / "refunds.md").write_text(REFUNDS)
    (handbook / "deploying.md").write_text(DEPLOYING)
    (handbook / "holidays.html").write_text(HOLIDAYS)
    return handbook


def write_graph(folder: Path) -> Path:
    """Write the graph of services."""
    path = folder / "services.lbug"
    path.write_bytes(_make_graph())
    return path


@cache
def _make_graph() -> bytes:
    """Return the file that the database itself writes.

    In a process of its own: the database's library shares its symbols with every library that is loaded later, such as
    the runtime of the local model, which ends the process.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "services.lbug")
        subprocess.run([sys.executable, "-c", _WRITE_GRAPH, str(path), *GRAPH], check=True)
        return path.read_bytes()


_WRITE_GRAPH = """
import sys, ladybug

with ladybug.Database(sys.argv[1]) as database, ladybug.Connection(database) as connection:
    for statement in sys.argv[2:]:
        connection.execute(statement)
"""


@cache
def open_for_evals() -> AgenticRagSkill:
    """Return the skill on a handbook, a graph, and an index in Azure whose key nobody has set."""
    from skillshelf_skills.agentic_rag import AzureIndex

    folder = Path(tempfile.mkdtemp(prefix="handbook-"))
    handbook = DocumentFolder(str(write_handbook(folder)))
    index = AzureIndex("https://docs.search.windows.net", "faq")
    sources = Sources([handbook, index], GraphFile(str(write_graph(folder))))
    return AgenticRagSkill(sources).with_policy(ALL)
