"""Skills with scripts, for tests that run them through the agent's tool."""

from pathlib import Path
from typing import Any

from agent_kit import agent, of, say
from skillshelf_agent import AgentCore, VariableRequest
from skillshelf_agent.events import ToolReturned
from skillshelf_agent.testing import call


def write_skill(folder: Path, scripts: dict[str, str], frontmatter: str = "", body: str = "Run the script.\n") -> Path:
    """Write a skill with these files, by their paths in its folder. Return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    head = f"name: {folder.name}\ndescription: Does it.\n{frontmatter}"
    (folder / "SKILL.md").write_text(f"---\n{head}---\n\n{body}")
    for path, text in scripts.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


def run_call(script: str, *args: str, skill: str = "pdf", **others: Any) -> Any:
    """Return the model's call of the tool."""
    return call("run_skill_script", skill_name=skill, script=script, args=list(args), **others)


def run_script(root: Path, script: str, *args: str, **others: Any) -> ToolReturned:
    """Run a script in an agent that asks nothing, and return the result."""
    result: ToolReturned
    (result,) = of(say(agent(root, run_call(script, *args, **others), "ok"), "go"), ToolReturned)
    return result


class Giver:
    """A user who gives these values for variables, and remembers the questions."""

    def __init__(self, core: AgentCore, **values: str) -> None:
        self.values = values
        self.requests: list[VariableRequest] = []
        core.scripts.ask_variable = self

    async def __call__(self, request: VariableRequest) -> str | None:
        self.requests.append(request)
        return self.values.get(request.name)
