"""What can go wrong while looking something up, in words that a model can act on."""

from collections.abc import Iterable

from skillshelf.bundled._guided_errors import GuidedError
from skillshelf.errors import SkillError, error_code
from skillshelf.text import closest_names, quote_for_model


class RagError(GuidedError):
    """Something cannot be looked up, or not in this way."""


class WorkerEndedError(RagError):
    """A process that reads what others wrote took too much time or memory, and was ended."""


class EmptyQuestionError(RagError):
    """A question or a query has no words."""


class NothingFoundError(RagError):
    """No source has anything that fits the question."""

    reference = "sources.md"


class BudgetTooSmallError(RagError):
    """Not even the best passage fits into the budget."""

    def __init__(self, budget: int, needed: int) -> None:
        self.needed = needed
        super().__init__(f"The best passage takes {needed:,} tokens, and the budget is {budget:,}.")


class SourceMissingError(RagError):
    """The user has not attached such a source."""

    reference = "sources.md"


class SourceFailedError(RagError):
    """A source cannot be reached, refuses the credential, or does not answer in time."""

    def __init__(self, source: str, reason: str) -> None:
        self.source = source
        super().__init__(f"{source}: {reason}")


class AzureFailedError(SourceFailedError):
    """Azure AI Search refuses the request, or does not answer."""

    reference = "azure_search_config.md"


class UnknownTemplateError(RagError):
    """There is no such template for the graph."""

    reference = "cypher_templates.py"

    def __init__(self, name: str, known: Iterable[str]) -> None:
        names = list(known)
        close = closest_names(name, names)
        hint = f"Did you mean {' or '.join(close)}?" if close else f"There are: {', '.join(names)}."
        super().__init__(f"No template is called {quote_for_model(name)}. {hint}")


class TemplateParametersError(RagError):
    """A template did not get the parameters that it needs, or got others."""

    reference = "cypher_templates.py"


class CypherRefusedError(RagError):
    """The graph refuses a query: it is wrong, or would do more than read."""

    reference = "cypher_templates.py"


class PageUnreadableError(RagError):
    """A web page or a document has no text that can be read."""


ISOLATED_ERRORS: dict[str, type[RagError]] = {
    error_code(cls): cls for cls in (CypherRefusedError, PageUnreadableError, RagError)
}
"""The errors that the isolated process reports, by code."""


def find_reason(error: SkillError) -> str:
    """Return what an error says happened. It names a reference only if that is not the usual one."""
    if isinstance(error, GuidedError) and error.reference == RagError.reference:
        return error.reason
    return str(error)
