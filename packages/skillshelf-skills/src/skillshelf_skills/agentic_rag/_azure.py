"""An index of Azure AI Search."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

from skillshelf.errors import MissingExtraError
from skillshelf.text import clean_line, truncate
from skillshelf_skills.agentic_rag._errors import RagError, SourceFailedError
from skillshelf_skills.agentic_rag._limits import MAX_CHARACTERS, MAX_REASON
from skillshelf_skills.agentic_rag._sources import Passage

try:
    from azure.core import exceptions
    from azure.core.credentials import AzureKeyCredential, TokenCredential
    from azure.search.documents import SearchClient
    from azure.search.documents.models import VectorizableTextQuery, VectorQuery
except ModuleNotFoundError as error:
    raise MissingExtraError("Azure AI Search", "rag-azure") from error

KEY_VARIABLE = "AZURE_SEARCH_KEY"
_PREFIX = "AZURE_SEARCH_"


class AzureOptions(NamedTuple):
    """The fields of the index, and how it is asked. The reference `azure_search_config.md` explains them."""

    text_field: str = "content"
    title_field: str = "title"
    """Empty if the index has none."""
    locator_field: str = "url"
    """Empty if the index has none."""
    vector_field: str = ""
    """A vector field whose vectorizer turns the question into a vector. Without one, words alone are searched."""
    semantic_configuration: str = ""
    """The semantic ranker orders the results if its configuration is named."""
    filter: str = ""
    """An OData filter that every passage must pass."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Return the options that variables such as AZURE_SEARCH_TEXT_FIELD give."""
        given = {name: environment.get(f"{_PREFIX}{name.upper()}") for name in cls._fields}
        return cls(**{name: value for name, value in given.items() if value is not None})


class AzureIndex:
    """An index of Azure AI Search: words, vectors made by the service, its semantic ranker."""

    def __init__(
        self,
        endpoint: str,
        index: str,
        *,
        options: AzureOptions | None = None,
        credential: TokenCredential | AzureKeyCredential | None = None,
        name: str = "azure",
        seconds: float = 15.0,
    ) -> None:
        """Connect to nothing yet.

        The credential is the query key in the environment variable AZURE_SEARCH_KEY, unless one is given: any
        credential of `azure-identity` will do.
        """
        self.name = name
        self.remarks: list[str] = []
        self._endpoint = endpoint
        self._index = index
        self._options = options or AzureOptions()
        self._credential = credential
        self._seconds = seconds

    async def search(self, question: str, limit: int) -> Sequence[Passage]:
        if not question.strip():
            raise RagError("There is nothing to look for.")
        return await asyncio.to_thread(self._search, question, limit)

    def _search(self, question: str, limit: int) -> list[Passage]:
        options = self._options
        vectors: list[VectorQuery] = []
        if options.vector_field:
            vectors.append(VectorizableTextQuery(text=question, k_nearest_neighbors=limit, fields=options.vector_field))
        fields = [field for field in (options.text_field, options.title_field, options.locator_field) if field]
        ranking: dict[str, Any] = {}
        if options.semantic_configuration:
            ranking = {"query_type": "semantic", "semantic_configuration_name": options.semantic_configuration}
        try:
            with SearchClient(
                self._endpoint,
                self._index,
                self._find_credential(),
                retry_total=0,
                connection_timeout=self._seconds,
                read_timeout=self._seconds,
            ) as client:
                found = client.search(
                    search_text=question,
                    top=limit,
                    select=fields,
                    filter=options.filter or None,
                    vector_queries=vectors or None,
                    **ranking,
                )
                return [self._make_passage(document) for document in found]
        except exceptions.AzureError as error:
            raise self._explain(error) from None

    def _find_credential(self) -> TokenCredential | AzureKeyCredential:
        if self._credential is not None:
            return self._credential
        key = os.environ.get(KEY_VARIABLE)
        if not key:
            raise self._fail(f"there is no key. Tell the user to put a query key into {KEY_VARIABLE}.")
        return AzureKeyCredential(key)

    def _make_passage(self, document: Mapping[str, Any]) -> Passage:
        options = self._options
        text = str(document.get(options.text_field) or "")[:MAX_CHARACTERS]
        locator = str(document.get(options.locator_field) or "") or self._index
        title = str(document.get(options.title_field) or "") or locator
        return Passage(self.name, locator, title, text)

    def _explain(self, error: exceptions.AzureError) -> SourceFailedError:
        if isinstance(error, exceptions.HttpResponseError):
            reason = truncate(clean_line(error.message), MAX_REASON).rstrip(".")
            return self._fail(f"Azure AI Search answered with status {error.status_code}: {reason}.")
        return self._fail(f"there is no connection to Azure AI Search ({type(error).__name__}).")

    def _fail(self, reason: str) -> SourceFailedError:
        return SourceFailedError(self.name, reason, reference="azure_search_config.md")
