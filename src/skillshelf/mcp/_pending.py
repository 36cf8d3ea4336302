"""Skills that wait for the user's approval: what a client hears about them."""

import shlex
from collections.abc import Callable

from skillshelf.errors import SkillError, SkillNotFoundError
from skillshelf.text import clean_line


class PendingSkills:
    """The number of skills that wait for the user's approval, and the command that reviews them.

    A client hears the number and the command, and nothing else: names and texts of pending skills are still untrusted.
    """

    def __init__(self, count: Callable[[], int], folder: str = "") -> None:
        """Count with `count`, which may read files. `folder` is named in the command unless it is empty."""
        self._count = count
        self._command = review_command(folder)
        self._known = count()

    def refresh(self) -> None:
        """Count again. This may wait for a sweep of the workspace, so an event loop calls it in a thread."""
        self._known = self._count()

    @property
    def notice(self) -> str:
        """Sentences for the model and its user, as of the last count. Empty if no skill is pending."""
        count = self._known
        if count == 0:
            return ""
        if count == 1:
            waiting = "1 new or changed skill of this workspace is waiting for the user's approval"
        else:
            waiting = f"{count:,} new or changed skills of this workspace are waiting for the user's approval"
        return f"{waiting} and cannot be used before. The user can review them in a terminal with: {self._command}"


def add_pending_notice(error: SkillError, pending: PendingSkills | None) -> str:
    """Return an error's message. If a skill was not found and others are pending, it says so: it may be one of them."""
    if pending and pending.notice and isinstance(error, SkillNotFoundError):
        return f"{error} {pending.notice}"
    return str(error)


def review_command(folder: str) -> str:
    """Return the command that reviews a workspace's skills.

    A folder whose name holds control or hidden characters is left out: it may have been chosen to be read as text.
    """
    if not folder or clean_line(folder) != folder:
        return "skillshelf trust"
    return f"skillshelf trust -C {shlex.quote(folder)}"
