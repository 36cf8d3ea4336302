"""Errors that tell the model where the way out is described."""

from typing import ClassVar

from skillshelf.errors import SkillError, error_code


class GuidedError(SkillError):
    """Something that a bundled skill cannot do. The message names the reference that helps."""

    reference: ClassVar[str] = "error_codes.md"
    """The reference that says what to do about it."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"{reason} Load the reference {self.reference!r} for what to do about it.")

    @property
    def code(self) -> str:
        """The error's name for programs, such as `password-needed`."""
        return error_code(type(self))
