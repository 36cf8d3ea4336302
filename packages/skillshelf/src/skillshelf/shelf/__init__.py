"""The shelf: its sources and catalog, the turns that load from it, and the tools it offers a model."""

from skillshelf.shelf._discovery import (
    LOAD_TOOL,
    SkillDiscoverySkill,
    all_tools,
    find_for_model,
    is_for_user_only,
    own_tool_names,
)
from skillshelf.shelf._shelf import (
    Shelf,
    environment_source,
    pause_gc,
    project_sources,
    workspace_sources,
)
from skillshelf.shelf._turn import (
    MAX_CACHED_BYTES,
    Loaded,
    Requester,
    Turn,
    current_turn,
    current_turn_of,
    list_references,
    resolve_reference,
    use_turn,
)

__all__ = [
    "LOAD_TOOL",
    "MAX_CACHED_BYTES",
    "Loaded",
    "Requester",
    "Shelf",
    "SkillDiscoverySkill",
    "Turn",
    "all_tools",
    "current_turn",
    "current_turn_of",
    "environment_source",
    "find_for_model",
    "is_for_user_only",
    "list_references",
    "own_tool_names",
    "pause_gc",
    "project_sources",
    "resolve_reference",
    "use_turn",
    "workspace_sources",
]
