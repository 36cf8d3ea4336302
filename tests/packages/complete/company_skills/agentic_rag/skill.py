from __future__ import annotations

from typing import TYPE_CHECKING

from skillshelf.skills import BaseSkill, tool

if TYPE_CHECKING:
    from company_graph import Graph, Passage


class AgenticRAGSkill(BaseSkill):
    name = "agentic-rag"
    description = "Answers questions from graph, vectors and web. Use for questions about the company."
    instructions = """
        Multi-source retrieval over graph + vector + web. For Azure-specific
        configuration patterns, load reference 'azure_search_config.md' via
        `load_skill_instructions`. Cypher is in `references/neo4j/cypher_templates.py`,
        a runner in scripts/sandbox_runner.py.
    """
    references = (
        "company_skills/agentic_rag/references/azure_search_config.md",
        "references/neo4j/cypher_templates.py",
        "scripts/sandbox_runner.py",
    )

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    @tool
    async def ask(self, question: str, limit: int = 5) -> list[Passage]:
        """Passages that answer a question.

        Args:
            question: In the user's own words.
            limit: How many to return.
        """
        return self.graph.passages(question)[:limit]
