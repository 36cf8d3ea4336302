"""What an agent changes in a repository of the user's own, which must not become instructions by itself.

Only the user's own edits apply unasked. A change made while a command of the agent runs, or by a write that the user
has not seen, is held: the version before it stays in use until the user has looked at the new one, in this session or a
later one.
"""

from collections.abc import Sequence

from skillshelf.trust._agent_marks import AgentMark
from skillshelf.trust._other_content import INSTRUCTION_FILES, find_file_trees
from skillshelf.trust._source import TrustedSource


class AgentHold:
    """A time in which an agent may change files. Call `end` when it is over, whatever happened."""

    def __init__(self, source: TrustedSource, mark: AgentMark, files: Sequence[str]) -> None:
        self._source = source
        self._mark = mark
        self._files = files
        self._before = self._find_trees()

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
        return {**self._source.find_trees(), **find_file_trees(self._source.root, self._files)}


def begin_hold(source: TrustedSource, files: Sequence[str] = INSTRUCTION_FILES) -> AgentHold | None:
    """Hold back what an agent changes from now on. Return None if the repository is not the user's own.

    `files` are the files of project instructions, as paths below the root. Raises TrustError if it cannot be recorded.
    """
    if source.trust.find_own(source.root) is None:
        return None
    return AgentHold(source, source.trust.mark_agent(source.root), files)
