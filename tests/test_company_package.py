"""The walkthrough for a company's package: from an empty folder to a wheel that other projects use."""

import asyncio
import os
import shlex
from pathlib import Path

import pytest
import yaml

from docs_examples import Shell, open_workspace, run_page, strip_styles
from repository import REPO

pytest.importorskip("ensurepip", reason="Python's venv is not installed")
pytest.importorskip("hatchling", reason="the dependency group `test` is not installed")
pytest.importorskip("mcp", reason="the MCP server needs skillshelf[mcp]")
pytest.importorskip("psycopg", reason="the database skill needs skillshelf[database]")
pytest.importorskip("pydantic_evals", reason="the eval needs skillshelf[evals]")

from mcp import Client, StdioServerParameters, types
from mcp.client.context import ClientRequestContext

PAGE = REPO / "docs" / "guides" / "company-package.md"


@pytest.mark.long
def test_the_walkthrough_leads_from_an_empty_folder_to_agents_that_use_the_wheel() -> None:
    """Its files and commands give the outputs that the page shows, and the package does what the page says."""
    with open_workspace() as session:
        text = run_page(PAGE, session)
        assert text == PAGE.read_text(encoding="utf-8"), "run `python tests/docs_examples.py --write`, read the diff"
        assert session.shell
        check_that_the_wheel_is_used(session.shell)
        check_that_a_program_can_replace_the_policy(session.shell)
        check_that_a_host_is_asked_before_a_query(session.shell)
        check_that_the_workflow_succeeds(session.shell)


def check_that_the_wheel_is_used(shell: Shell) -> None:
    """Nothing of the company's repository is imported in the agent's project."""
    places = strip_styles(shell.run("python -c 'import acme_skills; print(*acme_skills.__path__)'")).strip()
    assert Path(places).is_relative_to(shell.folder / ".venv")


def check_that_a_program_can_replace_the_policy(shell: Shell) -> None:
    """The skill that a program constructs comes before the one of the package."""
    program = (
        "from skillshelf import Shelf; from acme_skills.orders.skill import OrdersSkill;"
        "skills = [OrdersSkill().with_policy({'list_tables': 'ask'})];"
        "shelf = Shelf.open('.', packages=['acme_skills'], skills=skills);"
        "print({tool.name: tool.permission for tool in (*shelf.tools(), *shelf.blocked_tools())})"
    )
    permissions = strip_styles(shell.run(f"python -c {shlex.quote(program)}"))
    assert "'list_tables': 'ask'" in permissions
    assert "'run_query': 'blocked'" in permissions
    assert "'calculate_refund': 'safe'" in permissions


def check_that_a_host_is_asked_before_a_query(shell: Shell) -> None:
    """An MCP server in the agent's environment has the tools. A no reaches the model, a yes gets the rows."""
    questions: list[str] = []

    async def answer(context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        questions.append(params.message)
        return types.ElicitResult(action="decline" if len(questions) == 1 else "accept", content={})

    async def talk() -> list[str]:
        query = {"sql": "SELECT cents FROM orders"}
        refund = {"paid_cents": 4000, "days_since_delivery": 60, "is_opened": False}
        async with Client(serve(shell), elicitation_callback=answer) as client:
            results = [
                await client.call_tool("run_query", query),
                await client.call_tool("run_query", query),
                await client.call_tool("calculate_refund", refund),
            ]
        return [str(result.content) for result in results]

    refused, rows, error = asyncio.run(talk())
    assert "denied this call" in refused
    assert "4000" in rows
    assert "exceptions.md" in error
    assert len(questions) == 2


def serve(shell: Shell) -> StdioServerParameters:
    folder = str(shell.folder)
    python = f"{folder}/.venv/bin/python"
    environment = {**os.environ, "ACME_ORDERS": f"{folder}/orders.db"}
    return StdioServerParameters(command=python, args=["-m", "skillshelf", "serve", "-C", folder], env=environment)


def check_that_the_workflow_succeeds(shell: Shell) -> None:
    """Its last commands check the wheel in an environment of its own."""
    project = shell.folder.parent / "acme_skills"
    workflow = yaml.safe_load((project / ".github/workflows/skills.yml").read_text())
    commands = [step["run"] for step in workflow["jobs"]["check"]["steps"] if "run" in step]
    shell.check(f"cd {shlex.quote(str(project))}; export RUNNER_TEMP={shlex.quote(str(project.parent))}")
    shell.check(". ../.venv/bin/activate; rm -r dist")
    for command in commands:
        shell.check(f"set -e\n{command.strip()}")
    assert [path.name for path in (project / "dist").iterdir()] == ["acme_skills-0.1.0-py3-none-any.whl"]
