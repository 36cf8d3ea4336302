"""What can go wrong with a database, in words that a model can act on."""

from skillshelf.errors import GuidedError


class DatabaseError(GuidedError):
    """A database cannot be used, or refused a statement."""

    def __init__(self, message: str, *, code: str = "", reference: str = "") -> None:
        """`code` is the database's own: an SQLSTATE, or the name of SQLite's error."""
        self.code = code
        super().__init__(message, reference=reference)


class StatementRefusedError(DatabaseError):
    """The database refused a statement: it is wrong, or it tried to write."""

    def __init__(self, reason: str, *, code: str) -> None:
        shown = f" ({code})" if code else ""
        super().__init__(f"The database refused the statement{shown}: {reason}", code=code, reference="error_codes.md")
        self.reason = reason


class TooSlowError(DatabaseError):
    """A statement took longer than it may."""

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"The statement was ended after {seconds:g} seconds. Look at its plan with explain_query.",
            reference="explain_plans.md",
        )
        self.reason = f"A statement was ended after {seconds:g} seconds."
