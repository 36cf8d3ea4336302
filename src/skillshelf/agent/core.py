"""AgentCore: the agent as a library. A message goes in, events come out; every face is a reader of them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from pydantic_ai.exceptions import RunCancelled
from pydantic_ai.usage import UsageLimits
from pydantic_ai_harness.compaction import DEFAULT_CONTEXT_WINDOW, resolve_context_window

from skillshelf.adapters.pydantic_ai import Skills
from skillshelf.agent.build import Loop, routed_loop, tool_loop
from skillshelf.agent.compaction import KEEP_TOKENS, Compacted, compact, needs_compaction
from skillshelf.agent.conversation import Conversation, asked
from skillshelf.agent.events import Event, Failed, Finished, Notice, SkillInvoked, SkillsReloaded, Usage
from skillshelf.agent.gate import Gate
from skillshelf.agent.models import ChosenModel, explain, price
from skillshelf.agent.policy import Answer, Approval, Approve, Policy
from skillshelf.agent.routing import route, route_named
from skillshelf.agent.sessions import Sessions
from skillshelf.agent.skills import WorkspaceSkills
from skillshelf.agent.stream import Translator
from skillshelf.catalog import Catalog
from skillshelf.descriptor import Delta
from skillshelf.errors import PolicyError, SessionError, SkillError, SourceError
from skillshelf.shelf import Shelf
from skillshelf.skill import BaseSkill
from skillshelf.slash import apply_message, parse
from skillshelf.tokens import DEFAULT_BUDGET
from skillshelf.turn import Turn, current_turn

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.models import Model

    from skillshelf.agent.trust import Trust
    from skillshelf.listing import Listing

# A turn that needs more model calls than this goes in circles.
_CALLS = 200
_INVOKE = "skills:"
_ROUTED_TOKENS = 8_000
_Ask = Callable[[Turn], str]
"""Makes the user message of a turn, loading what belongs in it."""


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
    ) -> None:
        """`approve` is asked before a tool that needs it runs; without it, such a call is refused.

        `skills`: code skills whose tools the model gets. `budget`: tokens that the listing takes at most.
        """
        self.model = model if isinstance(model, ChosenModel) else _chosen(model)
        self.policy = policy or Policy()
        self.approve = approve
        self._code_skills, self._budget = skills, budget
        self.sessions: Sessions | None = None
        self.conversation = Conversation()
        self.spent = Usage(0, 0)
        """What the session took so far."""
        self.used = 0
        """Tokens of the window that the last model call filled."""
        self._emit: Callable[[Event], None] = lambda event: None
        self._turn: Turn | None = None
        self._routed_to: str | None = None
        """The skill that was put before a model without tools."""
        self._task: asyncio.Task[None] | None = None
        self._skills: WorkspaceSkills | None = None

    def load_skills(
        self,
        root: str | os.PathLike[str] = ".",
        *,
        trust: Trust | None = None,
        sessions: Sessions | None = None,
        frozen: bool = False,
    ) -> Catalog:
        """Work in this folder, with its skills, the user's and the bundled ones.

        With a `trust` store, the folder's own skills are used only as far as the person agreed to them. With
        `sessions`, what is said is kept in files. `frozen`: the skills stay as they are now; nothing reloads.
        """
        self._skills = WorkspaceSkills(root, self._code_skills, trust, frozen)
        self.sessions = sessions
        self._listing = Skills(self.shelf, budget=self._budget)
        gate = Gate(self.skills.root, self.policy, self._ask, self._wrote, self._answered)
        self._with_tools = tool_loop(self.skills.root, gate, self._listing, lambda: self.skills.guidance)
        self._routed = routed_loop(gate)
        self._begin(self._fresh())
        return self.shelf.catalog

    def _fresh(self) -> Conversation:
        return Conversation(self.sessions.create(self.model.name) if self.sessions else None)

    def _begin(self, conversation: Conversation) -> None:
        self.conversation.close()
        self.conversation = conversation
        self.spent, self.used, self._turn, self._routed_to = Usage(0, 0), 0, None, None

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
        return self.shelf.listing(budget=self._budget)

    def reload_skills(self) -> Delta:
        """Bring the skills up to date with the disk; the next model call gets them afresh."""
        delta = self.skills.reload()
        self._listing.feed(self.conversation.id).renew()
        return delta

    async def process_message(self, text: str) -> AsyncIterator[Event]:
        """Answer a message. `/skills:<name> [args]` invokes a skill; everything else goes to the model as it is."""
        command = parse(text)
        if command and command.name.startswith(_INVOKE):
            stream = self.invoke_skill(*self._split(f"{command.name.removeprefix(_INVOKE)} {command.arguments}"))
        else:
            stream = self._answer(lambda turn: self._message(turn, text))
        async for event in stream:
            yield event

    async def invoke_skill(self, name: str, arguments: str = "") -> AsyncIterator[Event]:
        """Answer as the skill says, with these arguments."""
        async for event in self._answer(lambda turn: self._invocation(turn, name, arguments)):
            yield event

    def _split(self, invocation: str) -> tuple[str, str]:
        """The name of a skill and its arguments. A name may have spaces; the longest that fits is meant."""
        fitting = [name for name in self.shelf.catalog if f"{invocation} ".startswith(f"{name} ")]
        name = max(fitting, key=len, default=invocation.partition(" ")[0])
        return name, invocation[len(name) :].strip()

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
            others = [one.id for one in self.sessions.list() if one.id != self.conversation.id]
            if not others:
                raise SessionError("There is no earlier session in this workspace.")
            session = others[0]
        opened = self.sessions.open(session)
        self._begin(Conversation(opened))
        self.reload_skills()
        return opened.notes

    async def compact(self, focus: str = "") -> Compacted:
        """Put a summary in the place of what was said, with the skills that were loaded. Raises what the model does."""
        kept = min(KEEP_TOKENS, self.model.window // 5)
        result = await compact(self.conversation.messages, self.model.model, focus=focus, keep_tokens=kept)
        self.conversation.compacted(result.messages)
        self._listing.feed(self.conversation.id).renew()
        return result

    async def _answer(self, ask: _Ask) -> AsyncIterator[Event]:
        """The turn runs in a task of its own: a reader who goes away stops it, and its context stays its own."""
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[Event | None] = asyncio.Queue()

        def emit(event: Event | None) -> None:  # tools run in threads; in the loop's own, this keeps the order
            loop.call_soon_threadsafe(queue.put_nowait, event)

        self._emit = emit
        self._task = task = asyncio.create_task(self._drive(ask))
        task.add_done_callback(lambda _: emit(None))
        try:
            while (event := await queue.get()) is not None:
                yield event
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            self._task = None

    async def _drive(self, ask: _Ask) -> None:
        text: list[str] = []
        try:
            await self._make_room()
            turn, delta = await to_thread.run_sync(self.skills.open_turn, self._turn)
            self._turn = turn
            self._reloaded(delta)
            current_turn.set(turn)
            told = Translator(turn)
            text = told.text
            prompt = await to_thread.run_sync(ask, turn)
            for event in told.loads():
                self._emit(event)
            await self._run(prompt, told)
            self._emit(Finished("".join(text)))
        except (asyncio.CancelledError, RunCancelled):
            self._notice(self.conversation.end_with("".join(text)))
            self._emit(Finished("".join(text), stopped=True))
        except SkillError as error:
            self._emit(Failed(type(error).__name__, str(error)))
        except Exception as error:  # whatever a provider raises: the session goes on
            self._notice(self.conversation.end_with("".join(text)))
            self._emit(Failed(*explain(error)))

    async def _run(self, prompt: str, told: Translator) -> None:
        stream = self.loop.agent.run_stream_events(
            prompt,
            message_history=list(self.conversation.messages),
            model=self.model.model,
            conversation_id=self.conversation.id,
            usage_limits=UsageLimits(request_limit=_CALLS),
        )
        run = None
        try:
            async with stream as run:
                async for event in run:
                    for one in told(event):
                        self._emit(one)
                    self._save_so_far(run)
        finally:  # after its teardown, which puts in order what was cut short
            self._save(run, prompt)
        for one in told.loads():
            self._emit(one)

    def _save_so_far(self, run: Any) -> None:
        messages = run.all_messages()
        # The last one may still grow: it is kept when the next has begun, or at the end.
        if len(messages) - 1 > len(self.conversation.messages):
            self._notice(self.conversation.keep(messages[:-1]))

    def _save(self, run: Any, prompt: str) -> None:
        try:
            messages = run.all_messages()
        except Exception:  # it never began: what the person said is kept all the same
            messages = [*self.conversation.messages, asked(prompt)]
        self._notice(self.conversation.keep(messages))

    def _message(self, turn: Turn, text: str) -> str:
        if self.model.tools:
            return text
        found = route(self.shelf, turn, text, budget=self._room(), previous=self._routed_to)
        self._routed_to = found.skill if found else None
        return f"{found.text}\n\n{text}" if found else text

    def _invocation(self, turn: Turn, name: str, arguments: str) -> str:
        skill = self.shelf.catalog.find(name).descriptor
        if not skill.user_invocable:
            raise PolicyError(f"Skill {skill.name!r} is for the model alone: its author set `user-invocable: false`.")
        self._emit(SkillInvoked(skill.name, arguments))
        if self.model.tools:
            return apply_message(skill, turn.load(name, by="user").text, arguments, reach=name)
        self._routed_to = skill.name
        found = route_named(self.shelf, turn, name, arguments, budget=self._room())
        return f'Apply Skill "{name}"\n\n{found.text}\n\n{arguments}'.rstrip()

    def _room(self) -> int:
        """Tokens for the skill that is put before a model without tools: a small one reads slowly."""
        return min(self.model.window // 4, _ROUTED_TOKENS)

    async def _ask(self, approval: Approval) -> Answer | None:
        return await self.approve(approval) if self.approve else None

    def _wrote(self, path: str, confirmed: bool) -> str:
        assert self._turn is not None
        delta, said = self.skills.wrote(self._turn, path, confirmed)
        self._reloaded(delta)
        return said

    def _reloaded(self, delta: Delta) -> None:
        if delta:
            self._emit(SkillsReloaded(delta.added, delta.changed, delta.removed))

    def _answered(self, response: ModelResponse) -> None:
        used, cost = response.usage, price(response)
        one = Usage(used.input_tokens, used.output_tokens, used.cache_read_tokens, cost)
        total = self.spent
        self.spent = Usage(
            total.input + one.input,
            total.output + one.output,
            total.cached + one.cached,
            total.cost if cost is None else (total.cost or 0.0) + cost,
        )
        self.used = one.input + one.output
        self._emit(one)

    async def _make_room(self) -> None:
        if not needs_compaction(self.conversation.messages, self.model.window, self.used):
            return
        try:
            result = await self.compact()
        except SkillError as error:
            self._emit(Notice(str(error)))
        except Exception as error:  # the history stays whole; the provider will say if it is too long
            self._emit(Notice(f"The conversation could not be shortened: {explain(error)[1]}"))
        else:
            self.used = 0
            told = f"The conversation was shortened from {result.before:,} to {result.after:,} tokens."
            self._emit(Notice(f"{told} {result.problem}".rstrip()))

    def _notice(self, problem: str) -> None:
        if problem:
            self._emit(Notice(problem))


def _chosen(model: Model[Any]) -> ChosenModel:
    """A model that a program brings: it knows what it can do."""
    return ChosenModel(model, model.model_name, True, resolve_context_window(model) or DEFAULT_CONTEXT_WINDOW, False)
