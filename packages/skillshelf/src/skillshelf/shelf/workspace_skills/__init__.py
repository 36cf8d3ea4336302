"""The skills, instruction files and commands of a workspace, as far as the user approved them.

skills = WorkspaceSkills(".", trust=Trust.open())
skills.shelf.listing()      # approved skills only
skills.pending              # what waits for a review
"""

from skillshelf.shelf.workspace_skills._project_files import MarkdownCommand
from skillshelf.shelf.workspace_skills._skills import RecordedWrite, WorkspaceSkills, describe_delta

__all__ = ["MarkdownCommand", "RecordedWrite", "WorkspaceSkills", "describe_delta"]
