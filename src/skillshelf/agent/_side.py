"""Side conversations: a skill with `context: fork` runs in one of its own, and only its result comes back."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from pydantic_ai import RunContext
from pydantic_ai.exceptions import RunCancelled, ToolFailed
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import FunctionToolset

from skillshelf.agent._conversation import Conversation
from skillshelf.agent._exchange import Exchange, Prompt
from skillshelf.agent._explain import explain_error
from skillshelf.agent._tool_schemas import make_tool
from skillshelf.agent._translation import EventTranslator
from skillshelf.agent.events import Event, SideStarted, Text, Thinking
from skillshelf.agent.sessions import SideTranscript
from skillshelf.catalog import Catalog
from skillshelf.discovery import is_for_user_only
from skillshelf.errors import SessionError, SkillError, SkillNotFoundError
from skillshelf.slash import apply_message
from skillshelf.turn import Requester, Turn, use_turn

if TYPE_CHECKING:
    from skillshelf.agent._core import AgentCore
    from skillshelf.agent._models import ChosenModel
    from skillshelf.descriptor import SkillDescriptor

_INSTRUCTIONS = (
    "You work on one task, apart from the main conversation, which you do not see. Your last message is the result: it "
    "is all that the main conversation gets, so make it complete."
)
_NO_RESULT = "[The skill ended without a result.]"

current_side: ContextVar[SideExchange | None] = ContextVar("skillshelf_side", default=None)
"""The exchange of the side conversation that the caller is in, if it is in one."""


class SideExchange(Exchange):
    """A task and its result, in a conversation of its own.

    Its tools are the agent's, under the same gate and policy. Its events carry the name of the skill, and its cost
    counts in the session.
    """

    def __init__(
        self, core: AgentCore, skill: SkillDescriptor, emit: Callable[[Event], None], model: ChosenModel
    ) -> None:
        super().__init__(core, "", self._emit_marked)
        self._conversation = Conversation()
        self._model = model
        self._instructions = _INSTRUCTIONS
        self._skill = skill
        self._emit_outside = emit

    async def run_task(self, reach: str, task: str, by: Requester, invoked: set[str], call_id: str) -> str:
        """Follow the skill with this task, and return the result. Raises whatever a model raises."""
        turn = Turn(self._core.shelf, invoked)
        self._turn = turn
        self._translator = EventTranslator(turn)
        token = current_side.set(self)
        try:
            with use_turn(turn):
                loaded = await to_thread.run_sync(lambda: turn.load(reach, by=by))
                self._report_loads()
                prompt = Prompt(apply_message(self._skill, loaded.text, task, reach=reach))
                await self._run_model(self._translator, prompt)
                self._report_loads()
        finally:
            current_side.reset(token)
            self._keep_transcript(call_id)
        return self._answer_text() or _NO_RESULT

    def redirect_load(self, arguments: dict[str, Any]) -> str | None:
        """Let a skill be loaded even if it asks for a conversation of its own: this is one, and there is no second."""
        return None

    def _emit_marked(self, event: Event) -> None:
        """Pass an event on with the name of the skill. The words on the way are in the transcript alone."""
        if not isinstance(event, Text | Thinking):
            self._emit_outside(replace(event, side=self._skill.name))

    def _keep_transcript(self, call_id: str) -> None:
        session = self._core.conversation.session
        if session is None:
            return
        transcript = SideTranscript(self._skill.name, self._model.name, self._conversation.messages, call_id)
        try:
            session.add_side(transcript)
        except SessionError as error:
            self._report(str(error))


async def run_side(
    core: AgentCore,
    emit: Callable[[Event], None],
    *,
    name: str,
    task: str,
    by: Requester,
    invoked: set[str],
    call_id: str = "",
) -> str:
    """Run a skill in a side conversation and return its result. `call_id`: the tool call that asked for it."""
    skill = core.shelf.catalog.find(name).descriptor
    model = core.find_model_for(skill, emit)
    emit(SideStarted(skill.name, task, model.name))
    return await SideExchange(core, skill, emit, model).run_task(name, task, by, invoked, call_id)


class SideTool:
    """Offers `run_skill` if a skill on the shelf runs apart."""

    def __init__(self, core: AgentCore) -> None:
        self._core = core
        self.toolset: FunctionToolset[Any] = FunctionToolset([make_tool(self.run_skill, self._offer)])
        self._searched: Catalog | None = None
        self._found = False

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """The tool as the model gets it now; empty if no skill runs apart."""
        if not self._has_skills():
            return ()
        return tuple(tool.tool_def for tool in self.toolset.tools.values())

    async def _offer(self, ctx: RunContext[Any], definition: ToolDefinition) -> ToolDefinition | None:
        is_inside = current_side.get() is not None
        return definition if self._has_skills() and not is_inside else None

    def _has_skills(self) -> bool:
        catalog = self._core.shelf.catalog
        if catalog is not self._searched:
            self._searched = catalog
            self._found = any(skill.runs_apart for skill in catalog.values())
        return self._found

    async def run_skill(self, ctx: RunContext[Any], skill_name: str, task: str) -> str:
        """Have a skill marked context="fork" do a task in a conversation of its own, and get the result.

        It sees nothing of this conversation, and uses the same tools.

        Args:
            skill_name: The skill's name as listed.
            task: The whole task, with every fact and path that it needs.
        """
        if current_side.get() is not None:
            raise ToolFailed("A skill that runs apart cannot start another one. Load the skill instead.")
        turn = self._core.turn
        assert turn is not None
        try:
            skill = self._core.shelf.catalog.find(skill_name).descriptor
            if is_for_user_only(skill_name, turn):
                raise SkillNotFoundError(skill_name)
            if not skill.runs_apart:
                raise ToolFailed(f"{skill.name!r} does not run apart: load it with load_skill_instructions.")
            return await self._core.run_side(
                skill_name, task, by="model", invoked=set(turn.invoked), call_id=ctx.tool_call_id or ""
            )
        except SkillError as error:
            raise ToolFailed(str(error)) from error
        except (ToolFailed, RunCancelled):
            raise
        except Exception as error:  # whatever a provider raises: the main conversation goes on
            raise ToolFailed(f"The skill could not finish: {explain_error(error).message}") from error
