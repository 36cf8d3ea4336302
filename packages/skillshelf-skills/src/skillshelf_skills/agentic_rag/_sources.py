"""The protocols: what a source has to offer to be asked by the skill."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from skillshelf_skills.agentic_rag._results import GraphSchema
from skillshelf_skills.database import Parameter, Rows


class Passage(NamedTuple):
    """A piece of a text that is small enough to be quoted, and knows where it comes from."""

    source: str
    """The name of the source that has it."""
    locator: str
    """Where it stands there: `guides/chat.md:12`, an address, a node of the graph."""
    title: str
    text: str


class PassageSource(Protocol):
    """Something that finds passages by words or by meaning: documents, a table with vectors, a search service."""

    @property
    def name(self) -> str: ...

    @property
    def remarks(self) -> Sequence[str]:
        """What a reader of the latest result should know, such as files that were left out."""
        ...

    async def search(self, question: str, limit: int) -> Sequence[Passage]:
        """Return the passages that fit best, best first. Raises SkillError."""
        ...


class GraphSource(Protocol):
    """A graph that is asked in Cypher."""

    @property
    def name(self) -> str: ...

    async def describe(self) -> GraphSchema: ...

    async def query(self, cypher: str, parameters: Mapping[str, Parameter], limit: int, *, is_template: bool) -> Rows:
        """Run one query that reads. Raises SkillError.

        `is_template` is True if the user or this package wrote the query. Otherwise a model did, and the source must
        refuse everything but reading the graph, without relying on the text. A node is a value with `label` and
        `properties`, a relationship one with `type` and `properties`.
        """
        ...


class WebPage(NamedTuple):
    """The readable text of a page, as Markdown."""

    url: str
    """After redirects."""
    title: str
    text: str
    is_whole: bool
    """False if the page was longer than may be fetched."""


class WebSource(PassageSource, Protocol):
    """Pages of the web. `search` asks the pages that the user named, and no other address."""

    async def read(self, url: str) -> WebPage:
        """Return a page. Raises SkillError."""
        ...


class Sources(NamedTuple):
    """Everything that the skill may ask."""

    documents: Sequence[PassageSource] = ()
    graph: GraphSource | None = None
    web: WebSource | None = None
    """Without one, any public page can be read, and none is searched."""
