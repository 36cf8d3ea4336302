"""The command line: `skillshelf COMMAND …`. Exit codes: 0 success, 1 problems found, 2 wrong use.

The names below are for commands of other packages, found in the entry point group `skillshelf.commands`.
"""

from typing import TYPE_CHECKING

from skillshelf.cli._errors import CommandError, find_code
from skillshelf.cli._main import main
from skillshelf.cli._output import Output, complain, shown_path
from skillshelf.cli._parsers import (
    Parser,
    add_listing_options,
    add_shared_options,
    count_or_zero,
    positive_number,
)
from skillshelf.lazy import export_lazily

if TYPE_CHECKING:
    from skillshelf.cli._diagnostics import as_json, count_by_severity, github_annotation, print_diagnostic
    from skillshelf.cli._doctor import Remark
    from skillshelf.cli._workspace import attach_skills, find_packages, list_searched, locate_workspace

__all__ = [
    "CommandError",
    "Output",
    "Parser",
    "Remark",
    "add_listing_options",
    "add_shared_options",
    "as_json",
    "attach_skills",
    "complain",
    "count_by_severity",
    "count_or_zero",
    "find_code",
    "find_packages",
    "github_annotation",
    "list_searched",
    "locate_workspace",
    "main",
    "positive_number",
    "print_diagnostic",
    "shown_path",
]

# Each command imports only what it needs: `list` starts in 60 ms.
__getattr__ = export_lazily(
    __name__,
    {
        "_diagnostics": ["as_json", "count_by_severity", "github_annotation", "print_diagnostic"],
        "_doctor": ["Remark"],
        "_workspace": ["attach_skills", "find_packages", "list_searched", "locate_workspace"],
    },
)
