"""Why a skill isn't available, isn't in the listing, or isn't found for a request: one sentence for each reason."""

from typing import TYPE_CHECKING

from skillshelf.explain._places import Occurrence, explain_candidate, search_elsewhere
from skillshelf.explain._reasons import (
    Reason,
    describe_broken,
    describe_level,
    describe_outdated,
    describe_pending,
    describe_review,
    describe_waiting,
    explain_absence,
    explain_off,
    explain_to_model,
    explain_unavailable,
)
from skillshelf.lazy import export_lazily

if TYPE_CHECKING:
    from skillshelf.explain._request import BetterMatch, RequestExplanation, explain_request

__all__ = [
    "BetterMatch",
    "Occurrence",
    "Reason",
    "RequestExplanation",
    "describe_broken",
    "describe_level",
    "describe_outdated",
    "describe_pending",
    "describe_review",
    "describe_waiting",
    "explain_absence",
    "explain_candidate",
    "explain_off",
    "explain_request",
    "explain_to_model",
    "explain_unavailable",
    "search_elsewhere",
]

# `show`, `doctor` and the command without arguments start without the search, which takes 22 ms to import.
__getattr__ = export_lazily(__name__, {"_request": ["BetterMatch", "RequestExplanation", "explain_request"]})
