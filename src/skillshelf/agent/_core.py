"""AgentCore: the agent as a library. A message goes in, events come out; every face is a reader of them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Literal

from pydantic_ai.messages import ModelResponse
from pydantic_ai.usage import RequestUsage, RunUsage
from pydantic_ai_harness.compaction import DEFAULT_CONTEXT_WINDOW, resolve_context_window

from skillshelf.adapters.pydantic_ai import Skills
from skillshelf.agent._build import Loop, file_access, routed_loop, tool_loop
from skillshelf.agent._compaction import KEEP_TOKENS, Compacted, compact
from skillshelf.agent._confinement import Confinement, find_confinement
from skillshelf.agent._conversation import Conversation
from skillshelf.agent._exchange import Exchange
from skillshelf.agent._gate import Gate
from skillshelf.agent._models import ChosenModel, usage_of
from skillshelf.agent._policy import Approve, Policy
from skillshelf.agent._skills import WorkspaceSkills
from skillshelf.agent.events import Event, Failed, Usage
from skillshelf.agent.sessions import Sessions
from skillshelf.catalog import Catalog
from skillshelf.descriptor import Delta
from skillshelf.errors import SessionError, SourceError
from skillshelf.shelf import Shelf
from skillshelf.skill import BaseSkill
from skillshelf.slash import SKILL_PREFIX, parse_invocation
from skillshelf.tokens import DEFAULT_BUDGET
from skillshelf.turn import Turn

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from skillshelf.listing import Listing
    from skillshelf.trust import Trust

_NOTHING_SPENT = Usage(0, 0, cost=0.0)
_Prompt = Callable[[Exchange, Turn], str]


class AgentCore:
    """An agent on a workspace: `load_skills`, then one `process_message` after the other."""

    def __init__(
        self,
        model: ChosenModel | Model[Any],
        *,
        policy: Policy | None = None,
        approve: Approve | None = None,
        skills: Sequence[BaseSkill] = (),
        budget: int = DEFAULT_BUDGET,
        sandbox: bool = True,
    ) -> None:
        """`approve` is asked before a tool that needs it runs; without it, such a call is refused.

        `skills`: code skills whose tools the model gets. `budget`: tokens that the listing takes at most. `sandbox`:
        commands can write in the workspace only, if the system can see to that; `confinement` says how far it can.
        """
        self.model = model if isinstance(model, ChosenModel) else _chosen(model)
        self.policy = policy or Policy()
        self.approve = approve
        self._sandbox = sandbox
        self._code_skills, self._budget = skills, budget
        self.disclosure: Literal["auto", "catalog", "full"] = "auto"
        """How much of each skill the listing shows; `load_skills` takes it from here."""
        self.sessions: Sessions | None = None
        self.conversation = Conversation()
        self.spent = _NOTHING_SPENT
        """The tokens and the price of the session so far."""
        self.used = 0
        """Tokens of the window that the last model call filled."""
        self.turn: Turn | None = None
        """The last turn of the shelf, or the one that is going on."""
        self.routed_to: str | None = None
        """The skill that was put before a model without tools."""
        self._skills: WorkspaceSkills | None = None
        self._exchange: Exchange | None = None
        self._task: asyncio.Task[None] | None = None

    def load_skills(
        self,
        root: str | os.PathLike[str] = ".",
        *,
        trust: Trust | None = None,
        sessions: Sessions | None = None,
        frozen: bool = False,
        shelf: Shelf | None = None,
    ) -> Catalog:
        """Work in this folder, with its skills, the user's and the bundled ones; or with a `shelf` of your own.

        With a `trust` store, the folder's own skills are used only as far as the person agreed to them. With
        `sessions`, what is said is kept in files. `frozen`: the skills stay as they are now; nothing reloads.
        """
        self._skills = WorkspaceSkills(root, shelf or self._code_skills, trust, frozen)
        self.sessions = sessions
        self._listing = Skills(self.shelf, disclosure=self.disclosure, budget=self._budget)
        access = file_access(self.skills.root)
        gate = Gate(access, self._current)
        self._with_tools = tool_loop(access, gate, self._listing, lambda: self.skills.guidance, self._sandbox)
        self._routed = routed_loop(gate)
        self._begin(self._fresh())
        return self.shelf.catalog

    @property
    def confinement(self) -> Confinement:
        """How commands are confined, and what they can still do. The first time, this starts a process to find out."""
        if not self._sandbox:
            return Confinement("none", "the sandbox is switched off")
        return find_confinement()

    @property
    def confined(self) -> bool:
        """Whether commands can write in the workspace only."""
        return bool(self.confinement)

    @property
    def skills(self) -> WorkspaceSkills:
        """The workspace's shelf, and what waits for the person's word."""
        if self._skills is None:
            raise SourceError("The agent has no workspace yet: call load_skills(root) first.")
        return self._skills

    @property
    def shelf(self) -> Shelf:
        return self.skills.shelf

    @property
    def loop(self) -> Loop:
        """The agent for the model in use, and what it always sends."""
        return self._with_tools if self.model.tools else self._routed

    @property
    def listing(self) -> Listing:
        """The Available Skills section, as it is now."""
        return self.shelf.listing(self.disclosure, self._budget)

    def reload_skills(self) -> Delta:
        """Bring the skills up to date with the disk; the next model call gets them afresh."""
        delta = self.skills.reload()
        self.renew()
        return delta

    def renew(self) -> None:
        """The next model call gets the listing as it is then: there is no beginning of a prompt to keep."""
        self._listing.feeds.of(self.conversation.id).renew()

    def process_message(self, text: str) -> AsyncGenerator[Event, None]:
        """Answer a message. `/skills:<name> [args]` invokes a skill; everything else goes to the model as it is."""
        invocation = parse_invocation(text, self.shelf.catalog)
        if invocation is not None:
            return self.invoke_skill(invocation.skill, invocation.arguments)
        return self._answer(text, lambda exchange, turn: exchange.message(turn))

    def invoke_skill(self, name: str, arguments: str = "") -> AsyncGenerator[Event, None]:
        """Answer as the skill says, with these arguments."""
        typed = f"/{SKILL_PREFIX}{name} {arguments}".rstrip()
        return self._answer(typed, lambda exchange, turn: exchange.invocation(turn, name, arguments))

    def cancel(self) -> None:
        """Stop the turn that is going on, if one is. What was said so far is kept."""
        if self._task:
            self._task.cancel()

    def new_session(self) -> Delta:
        """Begin anew: no history, the skills reloaded."""
        self._begin(self._fresh())
        return self.reload_skills()

    def resume(self, session: str = "") -> Sequence[str]:
        """Go on with an earlier session, by default the last: what could not be read of it. Raises SessionError."""
        if not self.sessions:
            raise SessionError("This conversation is not kept in files, so there is none to go on with.")
        if not session:
            others = [one for one in self.sessions.ids() if one != self.conversation.id]
            if not others:
                raise SessionError("There is no earlier session in this workspace.")
            session = others[0]
        opened = self.sessions.open(session)
        self._begin(Conversation(opened))
        self.reload_skills()
        return opened.notes

    async def compact(self, focus: str = "", *, fallback: bool = False) -> Compacted:
        """Put a summary in the place of what was said, with the skills that were loaded.

        Raises what the model raises, and then nothing has changed; with `fallback`, the oldest messages go instead.
        """
        kept, usage = min(KEEP_TOKENS, self.model.window // 5), RunUsage()
        messages = self.conversation.messages
        if not messages:
            raise SessionError("Nothing was said yet, so there is nothing to shorten.")
        result = await compact(
            messages, self.model.model, focus=focus, keep_tokens=kept, usage=usage, fallback=fallback
        )
        self.spent += self._usage_of_summary(usage)
        self.used = 0
        self.renew()
        self.conversation.compacted(result.messages)
        return result

    def _usage_of_summary(self, run: RunUsage) -> Usage:
        model = self.model.model
        counted = {field.name: getattr(run, field.name) for field in fields(RequestUsage)}
        return usage_of(
            ModelResponse(
                parts=[],
                usage=RequestUsage(**counted),
                model_name=model.model_name,
                provider_name=model.system,
                provider_url=model.base_url,
            )
        )

    def _current(self) -> Exchange:
        assert self._exchange is not None
        return self._exchange

    def _fresh(self) -> Conversation:
        return Conversation(self.sessions.create(self.model.name) if self.sessions else None)

    def _begin(self, conversation: Conversation) -> None:
        self.conversation.close()
        self.conversation = conversation
        self.spent = _NOTHING_SPENT
        self.used = 0
        self.turn = None
        self.routed_to = None

    async def _answer(self, said: str, prompt: _Prompt) -> AsyncGenerator[Event, None]:
        """The turn runs in a task of its own: a reader who goes away stops it, and its context stays its own."""
        if self._task:
            yield Failed("Busy", "A turn is going on: wait for its end, or cancel it.")
            return
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[Event | None] = asyncio.Queue()

        def emit(event: Event | None) -> None:  # tools run in threads; in the loop's own, this keeps the order
            loop.call_soon_threadsafe(queue.put_nowait, event)

        self._exchange = Exchange(self, said, emit)
        self._task = task = asyncio.create_task(self._exchange.drive(prompt))
        task.add_done_callback(lambda _: emit(None))
        try:
            while (event := await queue.get()) is not None:
                yield event
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            self._task = None


def _chosen(model: Model[Any]) -> ChosenModel:
    """A model that a program brings: it knows what it can do."""
    return ChosenModel(model, model.model_name, True, resolve_context_window(model) or DEFAULT_CONTEXT_WINDOW, False)
