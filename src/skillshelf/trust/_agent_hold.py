"""What an agent changes in a repository of the user's own, which must not become instructions by itself.

Only the user's own edits apply unasked. A change made while a command of the agent runs, or by a write that the user
has not seen, is held: the version before it stays in use until the user has looked at the new one, in this session or a
later one.
"""

from skillshelf.errors import TrustError
from skillshelf.trust._agent_marks import AgentMark
from skillshelf.trust._other_content import find_file_trees
from skillshelf.trust._source import TrustedSource


class AgentHold:
    """A time in which an agent may change files. Call `end` when it is over, whatever happened."""

    def __init__(self, source: TrustedSource, mark: AgentMark) -> None:
        self._source = source
        self._mark = mark
        try:
            self._before = self._find_trees()
        except OSError as error:
            mark.remove()  # nothing has changed yet
            mark.release()
            raise TrustError(f"{source.root} cannot be read: {error.strerror or error}.") from None

    def end(self) -> None:
        """Hold everything that has changed and that the user has not approved meanwhile."""
        changed: list[str] = []
        try:
            for key, tree in self._find_trees().items():
                is_same = bool(tree) and self._before.get(key) == tree
                if not is_same and not self._source.is_usable(tree):
                    changed.append(key)
        except BaseException:
            self._mark.release()  # it stays, so everything that differs is held
            raise
        self._source.trust.hold(self._source.root, changed, self._mark)

    def _find_trees(self) -> dict[str, str]:
        return {**self._source.find_trees(), **find_file_trees(self._source.root)}


def begin_hold(source: TrustedSource) -> AgentHold | None:
    """Hold back what an agent changes from now on. Return None if the repository is not the user's own.

    Raises TrustError if it cannot be recorded.
    """
    if source.trust.find_own(source.root) is None:
        return None
    return AgentHold(source, source.trust.mark_agent(source.root))
