"""Retrieval over several stores. The stores are the caller's; the skill brings the tools and the guidance."""

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
    Call `ask` with the person's question in their own words, and answer from the passages alone. Name the source of
    each statement.

    - No passages: ask again with fewer and broader words, once. Then say that nothing was found.
    - A question about how things are connected (who owns, what depends on): take a query from the reference
      `cypher_templates.py` and pass it to `ask_graph`.
    - Empty or strange answers from Azure: load the reference `azure_search_config.md`.
    """

    def __init__(self, stores: Mapping[str, Sequence[str]]) -> None:
        self.stores = stores

    @tool
    def ask(self, question: str, store: Literal["all", "vectors", "web"] = "all", limit: int = 5) -> list[Passage]:
        """Passages that answer a question, best first.

        Args:
            question: In the person's own words.
            store: Where to look.
            limit: At most so many passages.
        """
        words = {word.strip("?.,").lower() for word in question.split() if len(word) > 3}
        found = [
            (sum(word in text.lower() for word in words), source, text)
            for source, texts in self.stores.items()
            if store in ("all", source)
            for text in texts
        ]
        best = sorted((one for one in found if one[0]), key=lambda one: -one[0])[:limit]
        return [Passage(source=source, text=text) for _, source, text in best]

    @tool
    async def ask_graph(self, query: str) -> list[str]:
        """Rows of a Cypher query, as text.

        Args:
            query: Read-only Cypher, from the templates.
        """
        return list(self.stores.get("graph", ()))  # a real one would run the query
