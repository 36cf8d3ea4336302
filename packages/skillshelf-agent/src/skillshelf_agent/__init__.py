"""The agent: a loop around a model that uses the skills on its shelf. Needs the extra `chat`.

core = AgentCore(resolve(Settings(model="anthropic:claude-sonnet-5-5")), ".")
async for event in core.process_message("Write the release notes."):
    print(event)
"""

from typing import TYPE_CHECKING

from skillshelf.lazy import export_lazily
from skillshelf.settings import MODES, Settings, load_settings

if TYPE_CHECKING:
    from skillshelf_agent._attachments import Attachment, FoundAttachments, attach_command
    from skillshelf_agent._commands import run_sandboxed
    from skillshelf_agent._core import AgentCore, Unused
    from skillshelf_agent._exchange import SteeringMessage, TakeSteering
    from skillshelf_agent._explain import explain_error, hide_keys
    from skillshelf_agent._jobs import Job
    from skillshelf_agent._models import (
        DEFAULTS,
        ChosenModel,
        ModelPreview,
        list_offered_models,
        preview_model,
        require_model,
        resolve,
        usage_of,
    )
    from skillshelf_agent._policy import Answer, Approval, Approve, Policy, Refusal
    from skillshelf_agent._retries import Retries
    from skillshelf_agent._scripts import AskVariable, VariableRequest
    from skillshelf_agent._todos import Todo
    from skillshelf_agent._tool_names import SHELL, WRITING
    from skillshelf_agent._window import Context
    from skillshelf_agent.checkpoints import ChangedFile, LeftFile, Undone
    from skillshelf_agent.rules import Rule, RuleBook
    from skillshelf_agent.scripts import SkillScript
    from skillshelf_agent.sessions import Sessions

__all__ = [
    "DEFAULTS",
    "MODES",
    "SHELL",
    "WRITING",
    "AgentCore",
    "Answer",
    "Approval",
    "Approve",
    "AskVariable",
    "Attachment",
    "ChangedFile",
    "ChosenModel",
    "Context",
    "FoundAttachments",
    "Job",
    "LeftFile",
    "ModelPreview",
    "Policy",
    "Refusal",
    "Retries",
    "Rule",
    "RuleBook",
    "Sessions",
    "Settings",
    "SkillScript",
    "SteeringMessage",
    "TakeSteering",
    "Todo",
    "Undone",
    "Unused",
    "VariableRequest",
    "attach_command",
    "explain_error",
    "hide_keys",
    "list_offered_models",
    "load_settings",
    "preview_model",
    "require_model",
    "resolve",
    "run_sandboxed",
    "usage_of",
]

# A chat has its prompt a second before the rest of the agent is imported, and `doctor` needs no pydantic-ai.
__getattr__ = export_lazily(
    __name__,
    {
        "_attachments": ["Attachment", "FoundAttachments", "attach_command"],
        "_commands": ["run_sandboxed"],
        "_core": ["AgentCore", "Unused"],
        "_exchange": ["SteeringMessage", "TakeSteering"],
        "_explain": ["explain_error", "hide_keys"],
        "_jobs": ["Job"],
        "_models": [
            "ChosenModel",
            "DEFAULTS",
            "ModelPreview",
            "list_offered_models",
            "preview_model",
            "require_model",
            "resolve",
            "usage_of",
        ],
        "_policy": ["Answer", "Approval", "Approve", "Policy", "Refusal"],
        "_retries": ["Retries"],
        "_scripts": ["AskVariable", "VariableRequest"],
        "_todos": ["Todo"],
        "_tool_names": ["SHELL", "WRITING"],
        "_window": ["Context"],
        "rules": ["Rule", "RuleBook"],
        "scripts": ["SkillScript"],
        "checkpoints": ["ChangedFile", "LeftFile", "Undone"],
        "sessions": ["Sessions"],
    },
    extra="chat",
)
