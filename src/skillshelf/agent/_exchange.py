"""One message and its answer: a run of the loop, told in events, kept in the conversation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from pydantic_ai.exceptions import RunCancelled
from pydantic_ai.messages import PartDeltaEvent
from pydantic_ai.usage import UsageLimits

from skillshelf.agent._compaction import needs_compaction
from skillshelf.agent._explain import explain
from skillshelf.agent._models import usage_of
from skillshelf.agent._policy import Answer, Approval, Policy
from skillshelf.agent._routing import route, route_named
from skillshelf.agent._stream import Translator
from skillshelf.agent.events import Event, Failed, Finished, Notice, SkillInvoked, SkillsReloaded
from skillshelf.descriptor import Delta
from skillshelf.errors import PolicyError, SkillError, SkillNotFoundError, TrustError
from skillshelf.slash import apply_message
from skillshelf.turn import Turn, current_turn

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse

    from skillshelf.agent._confinement import Confinement
    from skillshelf.agent._core import AgentCore
    from skillshelf.agent.filetools import Change
    from skillshelf.trust import UnreviewedFile

# A turn that needs more model calls than this goes in circles.
_CALLS = 200
_ROUTED_TOKENS = 8_000


class Exchange:
    """Lives as long as the turn. Its events go where it was told when it began, however late they come."""

    def __init__(self, core: AgentCore, said: str, emit: Callable[[Event], None]) -> None:
        self._core, self._said, self.emit = core, said, emit
        self._conversation = core.conversation
        self._told: Translator | None = None
        self._kept = 0
        """How many of the run's messages the conversation has."""

    async def drive(self, prompt: Callable[[Exchange, Turn], str]) -> None:
        """To the end, which is always an event: finished, stopped or failed."""
        try:
            await self._answer(prompt)
            self.emit(Finished(self._text()))
        except (asyncio.CancelledError, RunCancelled):
            self._cut_short()
            self.emit(Finished(self._text(), stopped=True))
        except SkillError as error:
            self.emit(Failed(type(error).__name__, str(error)))
        except Exception as error:  # whatever a provider raises: the session goes on
            self._cut_short()
            self.emit(Failed(*explain(error)))

    async def _answer(self, make_prompt: Callable[[Exchange, Turn], str]) -> None:
        core = self._core
        await self._make_room()
        turn, delta = await to_thread.run_sync(core.skills.open_turn, core.turn)
        core.turn = turn
        self._reloaded(delta)
        current_turn.set(turn)
        self._told = Translator(turn)
        prompt = await to_thread.run_sync(make_prompt, self, turn)
        self._tell_loads()
        before = len(self._conversation.messages)
        self._notice(self._conversation.settle())
        if len(self._conversation.messages) != before:  # the listing's notes count messages
            core.renew()
        await self._run(prompt)
        self._tell_loads()

    async def _run(self, prompt: str) -> None:
        core, told = self._core, self._told
        assert told is not None
        history = list(self._conversation.messages)
        before = len(history)
        # On the disk before the model is asked: whatever happens then, what the person said is there.
        self._notice(self._conversation.ask(prompt))
        self._kept = 1
        stream = core.loop.agent.run_stream_events(
            prompt,
            message_history=history,
            model=core.model.model,
            conversation_id=self._conversation.id,
            usage_limits=UsageLimits(request_limit=_CALLS),
        )
        run = None
        try:
            async with stream as run:
                async for event in run:
                    for one in told(event):
                        self.emit(one)
                    # The last one may still grow: it is kept when the next has begun, or at the end. A piece of text
                    # begins nothing, and there are thousands of them.
                    if not isinstance(event, PartDeltaEvent):
                        self._keep(run.all_messages()[before:-1])
        finally:  # after its teardown, which puts in order what was cut short
            if run is not None:
                self._keep(_messages(run)[before:])

    def _keep(self, messages: list[Any]) -> None:
        fresh = messages[self._kept :]
        self._kept += len(fresh)
        self._notice(self._conversation.add(fresh))

    def _cut_short(self) -> None:
        if not self._kept:
            self._notice(self._conversation.ask(self._said))
        self._notice(self._conversation.settle(self._text()))

    def _text(self) -> str:
        return "".join(self._told.text) if self._told else ""

    # -- the message --------------------------------------------------------------------------------------------------

    def message(self, turn: Turn) -> str:
        """What the person said, for a model without tools with the skill that fits it."""
        core = self._core
        if core.model.tools:
            return self._said
        found = route(core.shelf, turn, self._said, budget=self._room(), previous=core.routed_to)
        core.routed_to = found.skill if found else None
        return f"{found.text}\n\n{self._said}" if found else self._said

    def invocation(self, turn: Turn, name: str, arguments: str) -> str:
        """The skill that the person asked for, with its arguments."""
        core = self._core
        try:
            skill = core.shelf.catalog.find(name).descriptor
        except SkillNotFoundError:
            if name in [one.name for one in core.skills.pending]:
                raise TrustError(f"Skill {name!r} awaits your review: /skills trust, or `skillshelf trust`.") from None
            raise
        if not skill.user_invocable:
            raise PolicyError(f"Skill {skill.name!r} is for the model alone: its author set `user-invocable: false`.")
        self.emit(SkillInvoked(skill.name, arguments))
        if core.model.tools:
            return apply_message(skill, turn.load(name, by="user").text, arguments, reach=name)
        core.routed_to = skill.name
        found = route_named(core.shelf, turn, name, arguments, budget=self._room())
        return f'Apply Skill "{name}"\n\n{found.text}\n\n{arguments}'.rstrip()

    def _room(self) -> int:
        """Tokens for the skill that is put before a model without tools: a small one reads slowly."""
        return min(self._core.model.window // 4, _ROUTED_TOKENS)

    # -- for the gate -------------------------------------------------------------------------------------------------

    @property
    def policy(self) -> Policy:
        return self._core.policy

    async def ask(self, approval: Approval) -> Answer | None:
        """The person's answer; None where nobody is there."""
        return await self._core.approve(approval) if self._core.approve else None

    @property
    def confinement(self) -> Confinement:
        """How far commands are confined."""
        return self._core.confinement

    def unreviewed_files(self, command: str) -> tuple[UnreviewedFile, ...]:
        """Return the skills' files that a command mentions and that the user has not approved as they are now."""
        return self._core.skills.unreviewed_files(command)

    def is_agreed(self, path: str) -> bool:
        return self._core.skills.is_agreed(path)

    def wrote(self, change: Change, confirmed: bool) -> str:
        """What to tell the model of a write that has happened."""
        turn = self._core.turn
        assert turn is not None
        delta, said = self._core.skills.wrote(turn, change, confirmed)
        self._reloaded(delta)
        return said

    def answered(self, response: ModelResponse) -> None:
        usage = usage_of(response)
        self._core.spent += usage
        self._core.used = usage.input + usage.output
        self.emit(usage)
        if response.provider_name and response.finish_reason is None:
            self._notice("The answer may be cut short: the provider did not say that it ended.")

    # -- what is told -------------------------------------------------------------------------------------------------

    def _tell_loads(self) -> None:
        assert self._told is not None
        for event in self._told.loads():
            self.emit(event)

    def _reloaded(self, delta: Delta) -> None:
        if delta:
            self.emit(SkillsReloaded(delta.added, delta.changed, delta.removed))

    def _notice(self, problem: str) -> None:
        if problem:
            self.emit(Notice(problem))

    async def _make_room(self) -> None:
        core = self._core
        if not needs_compaction(self._conversation.messages, core.model.window, core.used):
            return
        try:
            result = await core.compact(fallback=True)
        except SkillError as error:
            self._notice(str(error))
        except Exception as error:  # the history stays whole; the provider will say if it is too long
            self._notice(f"The conversation could not be shortened: {explain(error)[1]}")
        else:
            told = f"The conversation was shortened from {result.before:,} to {result.after:,} tokens."
            self._notice(f"{told} {result.problem}".rstrip())


def _messages(run: Any) -> list[Any]:
    try:
        return list(run.all_messages())
    except Exception:  # it never began
        return []
