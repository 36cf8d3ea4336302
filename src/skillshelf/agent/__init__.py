"""The agent: a loop over a model that lives from its shelf. Needs the extra `chat`.

core = AgentCore(resolve(Settings(model="anthropic:claude-sonnet-5-5")))
core.load_skills(".")
async for event in core.process_message("Write the release notes."):
    print(event)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from skillshelf.errors import MissingExtraError

if TYPE_CHECKING:
    from skillshelf.agent._confinement import Confinement, can_confine, find_confinement
    from skillshelf.agent.core import AgentCore
    from skillshelf.agent.models import ChosenModel, resolve
    from skillshelf.agent.policy import Answer, Approval, Policy
    from skillshelf.agent.sessions import Sessions
    from skillshelf.agent.settings import Settings, load_settings
    from skillshelf.trust import Trust

_MODULES = {
    "AgentCore": "skillshelf.agent.core",
    "Answer": "skillshelf.agent.policy",
    "Approval": "skillshelf.agent.policy",
    "ChosenModel": "skillshelf.agent.models",
    "Confinement": "skillshelf.agent._confinement",
    "Policy": "skillshelf.agent.policy",
    "Sessions": "skillshelf.agent.sessions",
    "Settings": "skillshelf.agent.settings",
    "Trust": "skillshelf.trust",
    "can_confine": "skillshelf.agent._confinement",
    "find_confinement": "skillshelf.agent._confinement",
    "load_settings": "skillshelf.agent.settings",
    "resolve": "skillshelf.agent.models",
}
__all__ = [
    "AgentCore",
    "Answer",
    "Approval",
    "ChosenModel",
    "Confinement",
    "Policy",
    "Sessions",
    "Settings",
    "Trust",
    "can_confine",
    "find_confinement",
    "load_settings",
    "resolve",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:  # the model's libraries take seconds to import, and a look at the settings needs none of them
        try:
            return getattr(import_module(_MODULES[name]), name)
        except ModuleNotFoundError as error:
            if (error.name or "").startswith("skillshelf"):
                raise
            raise MissingExtraError(f"skillshelf.agent.{name}", "chat") from error
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
