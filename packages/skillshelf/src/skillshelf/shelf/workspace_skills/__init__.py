"""The skills and instruction files of a workspace, as far as the user approved them.

skills = WorkspaceSkills(".", trust=Trust.open())
skills.shelf.listing()      # approved skills only
skills.pending              # what waits for a review
"""

from skillshelf.shelf.workspace_skills._skills import RecordedWrite, WorkspaceSkills, describe_delta

__all__ = ["RecordedWrite", "WorkspaceSkills", "describe_delta"]
