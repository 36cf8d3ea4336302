"""Retrieval over several stores. The caller provides the stores; the skill provides tools and guidance.

This is a sketch that shows how a code skill is built. The real one is `skillshelf_skills.agentic_rag`.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict

from skillshelf import BaseSkill, tool


class Passage(TypedDict):
    source: str
    text: str


class AgenticRAGSkill(BaseSkill):
    name = "agentic-rag"
    description = (
        "Answer questions from the team's own documents: graph, vectors and web. "
        "Use when a question is about our products, customers or decisions."
    )
    references = ("references/azure_search_config.md", "references/cypher_templates.py")
    instructions = """
    Call `ask` with the user's question in their own words, and answer only from the passages. Name the source of each
    statement.

    - No passages: ask once more with fewer and broader words. Then say that nothing was found.
    - A question about connections (who owns, what depends on): take a query from the reference
      `cypher_templates.py` and pass it to `ask_graph`.
    - Empty or strange answers from Azure: load the reference `azure_search_config.md`.
    """

    def __init__(self, stores: Mapping[str, Sequence[str]]) -> None:
        self.stores = stores

    @tool
    def ask(self, question: str, store: Literal["all", "vectors", "web"] = "all", limit: int = 5) -> list[Passage]:
        """Find passages that answer a question, best first.

        Args:
            question: In the user's own words.
            store: Where to look.
            limit: The maximum number of passages.
        """
        words = {word.strip("?.,").lower() for word in question.split() if len(word) > 3}
        scored: list[tuple[int, Passage]] = []
        for source, texts in self.stores.items():
            if store not in ("all", source):
                continue
            for text in texts:
                score = sum(word in text.lower() for word in words)
                if score:
                    scored.append((score, Passage(source=source, text=text)))

        scored.sort(key=lambda match: -match[0])
        return [passage for _, passage in scored[:limit]]

    @tool
    async def ask_graph(self, query: str) -> list[str]:
        """Run a Cypher query and return its rows as text.

        Args:
            query: Read-only Cypher, from the templates.
        """
        return list(self.stores.get("graph", ()))  # a real skill would run the query
