"""The file tools as the model gets them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import BinaryContent
from pydantic_ai.toolsets import FunctionToolset

from skillshelf.adapters.threads import in_thread
from skillshelf.errors import FileAccessError
from skillshelf_agent._own_tools import make_tool
from skillshelf_agent.filetools import _finding
from skillshelf_agent.filetools._access import FileAccess
from skillshelf_agent.filetools._changes import Replacement
from skillshelf_agent.filetools._limits import SEARCH_SECONDS
from skillshelf_agent.filetools._reading import Media, read_page

_NOT_ALLOWED = "The file was not changed: nothing has allowed it."

T = TypeVar("T")


class FileTools:
    """Tools that read, write and search the files of a workspace. They have no way to run a command.

    A tool that cannot do its work fails with a message to the model, and the turn goes on. The gate makes the changes
    of `write_file` and `edit_file`, once they are allowed: by themselves, these two change nothing.
    """

    def __init__(self, access: FileAccess, *, search_seconds: float = SEARCH_SECONDS) -> None:
        self.access = access
        self._search_seconds = search_seconds
        methods = (
            self.read_file,
            self.write_file,
            self.edit_file,
            self.list_directory,
            self.search_files,
            self.find_files,
        )
        self.toolset: FunctionToolset[Any] = FunctionToolset([make_tool(method) for method in methods])

    async def read_file(self, path: str, offset: int = 0, limit: int | None = None) -> str | list[str | BinaryContent]:
        """Read a text file with line numbers, or view an image or PDF.

        A page has at most 2000 lines and 50,000 characters, and says where to continue.

        Args:
            path: File path relative to the working directory.
            offset: Zero-based line offset to start reading from.
            limit: Maximum number of lines to return.
        """
        page = await _run(lambda: read_page(self.access, path, offset, limit))
        if isinstance(page, Media):
            return [page.header, BinaryContent(data=page.data, media_type=page.media_type)]
        return page

    async def write_file(self, path: str, content: str) -> str:
        """Create a file or replace its whole content. Missing folders are made.

        Args:
            path: File path relative to the working directory.
            content: The text content to write.
        """
        raise ToolFailed(_NOT_ALLOWED)

    async def edit_file(
        self,
        path: str,
        old_text: str | None = None,
        new_text: str | None = None,
        replacements: list[Replacement] | None = None,
    ) -> str:
        """Edit a file by exact string replacement.

        Pass one `old_text`/`new_text` pair, or several as `replacements`. Each old_text must appear exactly once in the
        file as edited by the previous replacements; include surrounding context lines to ensure uniqueness. The file is
        only written once every replacement has matched.

        Args:
            path: File path relative to the working directory.
            old_text: The exact text to find (must appear exactly once).
            new_text: The replacement text.
            replacements: Replacements to apply in order, instead of a single pair.
        """
        raise ToolFailed(_NOT_ALLOWED)

    async def list_directory(self, path: str = ".") -> str:
        """List the contents of a directory, with the sizes of files. Hidden entries are only counted.

        Args:
            path: Directory path relative to the working directory.
        """
        return await _run(lambda: _finding.list_directory(self.access, path))

    async def search_files(self, pattern: str, path: str = ".", include_glob: str | None = None) -> str:
        """Search file contents using a regular expression.

        The result has lines of the form file:line_number:text. Binary and hidden files and what .gitignore names are
        left out, unless `path` names them.

        Args:
            pattern: Regex pattern to search for, in Python's syntax.
            path: Directory or file to search in, relative to the working directory.
            include_glob: If provided, only search files whose path matches this glob, where `*` also spans `/`:
                '*.py' for every Python file, 'src/*.py' for those anywhere under `src`.
        """
        return await _run(lambda: _finding.search_files(self.access, pattern, path, include_glob, self._search_seconds))

    async def find_files(self, pattern: str, path: str = ".") -> str:
        """Find files by glob pattern (name matching, not content search).

        Args:
            pattern: Glob pattern to match, relative to `path` (e.g. '*.py', '**/*.json'). Absolute patterns are
                rejected.
            path: Directory to search in, relative to the working directory.
        """
        return await _run(lambda: _finding.find_files(self.access, pattern, path))


async def _run(job: Callable[[], T]) -> T:
    """Do file work in a thread. If it cannot be done, the tool fails with the reason."""
    try:
        return await in_thread(job, "files")
    except FileAccessError as error:
        raise ToolFailed(str(error)) from None
