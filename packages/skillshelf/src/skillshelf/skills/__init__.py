"""What a skill is: descriptors, the catalog of them, code skills and their tools."""

from skillshelf.skills._catalog import (
    Candidate,
    Catalog,
    Place,
)
from skillshelf.skills._descriptor import (
    MAX_DESCRIPTION,
    Activation,
    Choice,
    Delta,
    Diagnostic,
    Disclosure,
    Found,
    ListingForm,
    ReadOnlyDict,
    Severity,
    SkillDescriptor,
)
from skillshelf.skills._skill import (
    BaseSkill,
    describe_class,
)
from skillshelf.skills._tools import (
    Errors,
    Permission,
    Tool,
    describe_denial,
    describe_unknown_tool,
    is_tool,
    parse_arguments,
    tool,
    tool_methods,
    typed_errors,
)

__all__ = [
    "MAX_DESCRIPTION",
    "Activation",
    "BaseSkill",
    "Candidate",
    "Catalog",
    "Choice",
    "Delta",
    "Diagnostic",
    "Disclosure",
    "Errors",
    "Found",
    "ListingForm",
    "Permission",
    "Place",
    "ReadOnlyDict",
    "Severity",
    "SkillDescriptor",
    "Tool",
    "describe_class",
    "describe_denial",
    "describe_unknown_tool",
    "is_tool",
    "parse_arguments",
    "tool",
    "tool_methods",
    "typed_errors",
]
