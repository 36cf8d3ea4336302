"""Errors that tell the model where the way out is described."""

from skillshelf.errors import SkillError


class GuidedError(SkillError):
    """Something that a bundled skill can't do. The message names the reference that helps."""

    def __init__(self, reason: str, *, reference: str = "error_codes.md") -> None:
        self.reason = reason
        """What happened, without the advice."""
        self.reference = reference
        super().__init__(f"{reason} Load the reference {reference!r} for what to do about it.")
