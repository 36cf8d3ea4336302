"""What can go wrong while looking something up, in words that a model can act on."""

from skillshelf.errors import GuidedError, SkillError

DEFAULT_REFERENCE = "error_codes.md"


class RagError(GuidedError):
    """Something can't be looked up, or not in this way."""


class WorkerEndedError(RagError):
    """A process that parses untrusted content took too much time or memory, and was killed."""


class SourceFailedError(RagError):
    """A source can't be reached, refuses the credential, or doesn't answer in time."""

    def __init__(self, source: str, reason: str, *, reference: str = DEFAULT_REFERENCE) -> None:
        super().__init__(f"{source}: {reason}", reference=reference)


def find_reason(error: SkillError) -> str:
    """Return what an error says happened. It names a reference only if that is not the usual one."""
    if isinstance(error, GuidedError) and error.reference == DEFAULT_REFERENCE:
        return error.reason
    return str(error)
