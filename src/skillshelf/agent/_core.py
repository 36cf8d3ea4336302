"""AgentCore: the agent as a library. A message goes in, events come out, and every interface reads these events."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from skillshelf.adapters.pydantic_ai import Skills
from skillshelf.agent._attachments import Attachment, AttachmentFinder, FoundAttachments
from skillshelf.agent._compaction import Compacted, CompactionLimits, compact
from skillshelf.agent._confinement import Confinement, find_confinement
from skillshelf.agent._context import Context, Room, measure_context
from skillshelf.agent._conversation import Conversation
from skillshelf.agent._exchange import Exchange, MakePrompt, Prompt
from skillshelf.agent._gate import Gate
from skillshelf.agent._loop import KeepInWindow, make_file_access, make_tool_loop
from skillshelf.agent._models import ChosenModel, find_sibling
from skillshelf.agent._policy import Approve, Policy
from skillshelf.agent._retries import Retries
from skillshelf.agent._script_runs import ScriptRuns
from skillshelf.agent._side import SideTool, current_side, run_side
from skillshelf.agent._skills import WorkspaceSkills
from skillshelf.agent._tool_names import OWN_TOOLS
from skillshelf.agent._withheld import WithheldTools
from skillshelf.agent.checkpoints import ChangedFile, CheckpointLimits, Checkpoints, Undone
from skillshelf.agent.events import Event, Failed, Notice, Usage
from skillshelf.agent.scripts import AskVariable, ScriptTool, VariableRequest
from skillshelf.agent.servers import ToolServers
from skillshelf.agent.sessions import Sessions, loaded_skills
from skillshelf.catalog import Catalog
from skillshelf.descriptor import Choice, Delta, SkillDescriptor
from skillshelf.errors import CheckpointError, MissingExtraError, ModelUnavailableError, SessionError, SourceError
from skillshelf.shelf import Shelf
from skillshelf.skill import BaseSkill
from skillshelf.slash import SKILL_PREFIX, parse_invocation
from skillshelf.tokens import DEFAULT_BUDGET
from skillshelf.turn import Requester, Turn
from skillshelf.workspace import Workspace

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage
    from pydantic_ai.models import Model

    from skillshelf.listing import Feed, Listing, ListingForm
    from skillshelf.trust import Trust

_NOTHING_SPENT = Usage(0, 0, cost=0.0)


class _ContextState(NamedTuple):
    """What the context depends on. A history grows at its end, or is replaced by another list."""

    messages: Sequence[ModelMessage]
    length: int
    listing: Listing | None
    model: ChosenModel
    guidance: str

    def is_same(self, other: _ContextState) -> bool:
        """Compare without looking into the messages, which would take as long as counting them."""
        return (
            self.messages is other.messages
            and self.length == other.length
            and self.listing is other.listing
            and self.model is other.model
            and self.guidance == other.guidance
        )


class AgentCore:
    """An agent on a workspace. Call `load_skills`, then `process_message` for each message."""

    def __init__(
        self,
        model: ChosenModel | Model[Any],
        *,
        policy: Policy | None = None,
        approve: Approve | None = None,
        ask_variable: AskVariable | None = None,
        skills: Sequence[BaseSkill] = (),
        disclosure: ListingForm = "auto",
        budget: int = DEFAULT_BUDGET,
        sandbox: bool = True,
        servers: ToolServers | None = None,
        retries: Retries | None = None,
    ) -> None:
        """Make an agent.

        `approve` is asked before a tool runs that needs approval; without it, such a call is refused. `ask_variable`
        is asked for the value of an environment variable that a skill declares for its scripts. `skills` are
        code skills whose tools the model gets. `disclosure` is how much of each skill the listing shows: with `full`,
        every call carries all instructions. `budget` is the most tokens that a listing of the form `auto` may take.
        `servers` are MCP servers whose tools the model gets inside of `async with core.servers:`.
        With `sandbox`, commands can write in the workspace only, as far as the system supports that; `confinement`
        says how far. `retries` is how patient it is with a provider that fails.
        """
        self.model = model if isinstance(model, ChosenModel) else ChosenModel.from_model(model)
        self.policy = policy or Policy()
        self.approve = approve
        self.servers = servers or ToolServers()
        """The MCP servers whose tools the model may call."""
        self.ask_variable = ask_variable
        self.retries = retries or Retries()
        self._reported_models: set[str] = set()
        """Skills about whose model the user was informed."""

        self.disclosure: ListingForm = disclosure
        """How much of each skill the listing shows. Set it before `load_skills`."""
        self.sessions: Sessions | None = None
        self.checkpoints: Checkpoints | None = None
        """The files that each turn changed. There are none without sessions."""
        self.conversation = Conversation()
        self.spent = _NOTHING_SPENT
        """The tokens and the price of the session so far."""
        self.turn: Turn | None = None
        """The shelf's turn in progress, or the last one."""
        self._code_skills = skills
        self.budget = budget
        """The most tokens that a listing of the form `auto` may take."""
        self._sandbox = sandbox
        self._skills: WorkspaceSkills | None = None
        self._exchange: Exchange | None = None
        self._task: asyncio.Task[None] | None = None
        self._waiting_attachments: list[Attachment] = []
        self._measured: tuple[_ContextState, Context] | None = None
        """The last measured context, and the state of the conversation that it is about."""

    def load_skills(
        self,
        root: str | os.PathLike[str] | Workspace | None = None,
        *,
        trust: Trust | None = None,
        sessions: Sessions | None = None,
        frozen: bool = False,
        shelf: Shelf | None = None,
        packages: Sequence[str] = (),
        entry_points: bool = False,
        choices: Mapping[str, Choice] | None = None,
        checkpoint_limits: CheckpointLimits | None = None,
    ) -> Catalog:
        """Work in this folder, with its skills, the user's and the bundled ones, or with a `shelf` of your own.

        Without `root`, work in the current folder, with the skills of the whole repository around it. `find_workspace`
        does the same for another folder. File tools and commands stay in the folder in any case.

        With a `trust` store, the project's own skills are used only as the user approved them. With `sessions`, the
        conversation is saved in files, and so are the files that each turn changes, within `checkpoint_limits`: `undo`
        takes a turn back. `frozen`: the skills stay as they are now and are never reloaded. `packages`
        and `entry_points` add installed code skills, and `choices` are the user's, as in `Shelf.open`.
        """
        self._skills = WorkspaceSkills(
            root,
            shelf or self._code_skills,
            trust,
            frozen,
            packages=packages,
            entry_points=entry_points,
            choices=choices,
        )
        self.sessions = sessions
        self.shelf.reserve_tools(OWN_TOOLS)
        self._skills_capability = Skills(self.shelf, disclosure=self.disclosure, budget=self.budget)

        access = make_file_access(self.skills.folder)
        self._access = access
        if sessions and sessions.checkpoints:
            self.checkpoints = Checkpoints(access, sessions.checkpoints, checkpoint_limits)
        self._withheld = WithheldTools(lambda: self.policy, lambda: self.shelf)
        gate = Gate(access, self._get_exchange, self._withheld)
        window = KeepInWindow(self._get_exchange)
        self.scripts = ScriptRuns(self.skills, lambda: self.confinement, self._ask_variable)
        self.loop = make_tool_loop(
            access,
            gate=gate,
            window=window,
            skills=self._skills_capability,
            scripts=ScriptTool(lambda: self.shelf),
            side=SideTool(self),
            servers=self.servers,
            guidance=lambda: self.skills.guidance,
            sandbox=self._sandbox,
            withheld=self._withheld,
        )

        self._begin(self._new_conversation())
        return self.shelf.catalog

    @property
    def confinement(self) -> Confinement:
        """How commands are confined, and what they can still do. The first time, this starts a process to find out."""
        if not self._sandbox:
            return Confinement("none", "the sandbox is switched off")
        return find_confinement()

    @property
    def confined(self) -> bool:
        """True if commands can write in the workspace only."""
        return bool(self.confinement)

    @property
    def skills(self) -> WorkspaceSkills:
        """The workspace's shelf, and the skills that await the user's review."""
        if self._skills is None:
            raise SourceError("The agent has no workspace yet: call load_skills(root) first.")
        return self._skills

    @property
    def shelf(self) -> Shelf:
        return self.skills.shelf

    @property
    def withheld_tools(self) -> tuple[str, ...]:
        """The names of tools that the model is not offered, because the policy refuses every call of them."""
        return tuple(sorted(self._withheld.find(self.loop.list_tools())))

    @property
    def listing(self) -> Listing:
        """The Available Skills section as it is now in this conversation."""
        return self._feed.listing()

    def reload_skills(self) -> Delta:
        """Bring the skills up to date with the disk. The next model call gets a fresh listing."""
        delta = self.skills.reload()
        self.renew_listing()
        return delta

    def choose_skills(self, choices: Mapping[str, Choice]) -> Delta:
        """Follow the user's choices for single skills from now on. The next model call gets a fresh listing."""
        delta = self.shelf.choose(choices)
        self.renew_listing()
        return delta

    def renew_listing(self) -> None:
        """Give the next model call a fresh listing, because the beginning of its prompt changes anyway."""
        self._feed.renew()

    @property
    def _feed(self) -> Feed:
        return self._skills_capability.feeds.get_or_make(self.conversation.id)

    def process_message(self, text: str, attachments: Sequence[Attachment] = ()) -> AsyncGenerator[Event, None]:
        """Answer a message. `/skills:<name> [arguments]` invokes a skill; any other text goes to the model as it is.

        `attachments` are what `find_attachments` found in it. Nothing is attached unless the caller asks for it: not
        every text that a program sends was typed by the user.
        """
        invocation = parse_invocation(text, self.shelf.catalog)
        if invocation is not None:
            return self.invoke_skill(invocation.skill, invocation.arguments, attachments)
        return self._answer(text, lambda exchange, turn: Prompt(text), attachments)

    def invoke_skill(
        self, name: str, arguments: str = "", attachments: Sequence[Attachment] = ()
    ) -> AsyncGenerator[Event, None]:
        """Follow a skill, with these arguments."""
        message = f"/{SKILL_PREFIX}{name} {arguments}".rstrip()
        return self._answer(
            message, lambda exchange, turn: exchange.make_skill_prompt(turn, name, arguments), attachments
        )

    def find_attachments(self, message: str, *, dropped: bool = False) -> FoundAttachments:
        """Read the files that a message mentions as `@path`; with `dropped`, images by their absolute path, too."""
        return AttachmentFinder(self._access, self.model).find(message, dropped=dropped)

    def attach(self, attachment: Attachment) -> None:
        """Keep something for the user's next message."""
        self._waiting_attachments.append(attachment)

    def take_attachments(self) -> list[Attachment]:
        """Return what waits for the user's next message, once."""
        waiting = self._waiting_attachments
        self._waiting_attachments = []
        return waiting

    def cancel(self) -> None:
        """Stop the turn in progress, if there is one. The answer so far is kept."""
        if self._task:
            self._task.cancel()

    def new_session(self) -> Delta:
        """Start over with an empty history and reloaded skills."""
        self._begin(self._new_conversation())
        return self.reload_skills()

    def resume(self, session: str = "") -> Sequence[str]:
        """Continue an earlier session, by default the last. Return notes on parts that could not be read.

        Raises SessionError.
        """
        if not self.sessions:
            raise SessionError("This conversation is not saved in files, so there is none to continue.")
        if not session:
            others = [identifier for identifier in self.sessions.ids() if identifier != self.conversation.id]
            if not others:
                raise SessionError("There is no earlier session in this workspace.")
            session = others[0]

        opened = self.sessions.open(session)
        self._begin(Conversation(opened))
        self.reload_skills()
        return opened.notes

    @property
    def context(self) -> Context:
        """What fills the model's window. It is measured again only if the conversation or the listing has changed."""
        messages = self.conversation.messages
        state = _ContextState(messages, len(messages), self.listing, self.model, self.skills.guidance)
        if self._measured is None or not self._measured[0].is_same(state):
            self._measured = state, measure_context(self)
        return self._measured[1]

    def fork(self) -> str:
        """Go on in a copy of the session. Return the id of the original, which stays as it is. Raises SessionError."""
        session = self.conversation.session
        if not self.sessions or session is None:
            raise SessionError("This conversation is not saved in files, so it cannot be forked.")
        if self._task:
            raise SessionError("A turn is in progress: wait for its end, or stop it.")
        spent = self.spent
        self._begin(Conversation(self.sessions.fork(session)))
        self.spent = spent
        return session.id

    def undo(self, file: str = "") -> Undone:
        """Take back the files that the last turn changed, or one file that an undo has left.

        A file that is not as the turn left it stays as it is. The model learns of it with the next message. Raises
        CheckpointError.
        """
        return self._restore_files(lambda kept: kept.undo_file(file) if file else kept.undo())

    def redo(self) -> Undone:
        """Bring back the turn that was taken back last. Raises CheckpointError."""
        return self._restore_files(lambda kept: kept.redo())

    def list_changes(self, *, whole_session: bool = False) -> Sequence[ChangedFile]:
        """Return what the last turn, or the whole session, has changed in the workspace, by path."""
        return self._get_checkpoints().list_changes(whole_session=whole_session)

    async def compact(self, focus: str = "", *, fallback: bool = False) -> Compacted:
        """Replace the conversation by a summary and the skills that were loaded.

        If the model fails, its error is raised and nothing has changed. With `fallback`, the oldest messages are
        dropped instead. If there is nothing to gain, nothing changes either.
        """
        if not self.conversation.messages:
            raise SessionError("The conversation is empty, so there is nothing to shorten.")
        result = await self.shorten(self.conversation.messages, focus=focus, fallback=fallback)
        if result.is_shorter:
            self.conversation.replace(result.messages)
        return result

    async def shorten(
        self, messages: Sequence[ModelMessage], *, room: Room | None = None, focus: str = "", fallback: bool = True
    ) -> Compacted:
        """Return these messages in a shorter form, which is not saved yet. With `room`, shorten only to make them fit.

        The price of a summary is added to the session's.
        """
        defaults = CompactionLimits()
        window = self.model.window
        limits = CompactionLimits(
            keep_tokens=min(defaults.keep_tokens, window // 5),
            skill_tokens=min(defaults.skill_tokens, window // 4),
            counter=self.shelf.counter,
        )
        result = await compact(messages, self.model.model, room=room, focus=focus, fallback=fallback, limits=limits)
        self.spent += result.usage
        if result.is_shorter:
            self.renew_listing()
        return result

    async def _ask_variable(self, request: VariableRequest) -> str | None:
        if self.ask_variable is None:
            return None
        return await self.ask_variable(request)

    def _get_checkpoints(self) -> Checkpoints:
        if self.checkpoints is None:
            raise CheckpointError("This conversation is not saved in files, and neither are the changes of its turns.")
        return self.checkpoints

    def _restore_files(self, restore: Callable[[Checkpoints], Undone]) -> Undone:
        checkpoints = self._get_checkpoints()
        if self._task:
            raise CheckpointError("A turn is in progress: wait for its end, or stop it.")
        # What comes back may be the work of an earlier turn, which must not pass for the user's own edit.
        hold = self.skills.begin_hold()
        try:
            return restore(checkpoints)
        finally:
            hold.end()
            self.reload_skills()

    async def run_side(
        self,
        name: str,
        task: str,
        *,
        by: Requester,
        invoked: set[str],
        call_id: str = "",
        emit: Callable[[Event], None] | None = None,
    ) -> str:
        """Have a skill do a task in a side conversation, and return its result. Its events are those of this turn."""
        report = emit or self._get_exchange().emit
        return await run_side(self, report, name=name, task=task, by=by, invoked=invoked, call_id=call_id)

    def find_model_for(self, skill: SkillDescriptor, report: Callable[[Event], None]) -> ChosenModel:
        """Return the model that a skill asks for, if the provider in use has it, and otherwise the one in use.

        The user is informed either way, because another model has another price.
        """
        if not skill.model:
            return self.model
        try:
            model = find_sibling(self.model, skill.model)
        except (ModelUnavailableError, MissingExtraError) as error:
            if skill.qualified not in self._reported_models:
                self._reported_models.add(skill.qualified)
                report(Notice(f"{skill.name} asks for another model: {error}. {self.model.name} answers instead."))
            return self.model
        if model.name != self.model.name:
            report(Notice(f"{skill.name} asks for the model {model.name}, which answers now, at its own price."))
        return model

    def _get_exchange(self) -> Exchange:
        side = current_side.get()
        if side is not None:
            return side
        assert self._exchange is not None
        return self._exchange

    def _new_conversation(self) -> Conversation:
        if self.sessions is None:
            return Conversation()
        return Conversation(self.sessions.create(self.model.name))

    def _begin(self, conversation: Conversation) -> None:
        self.conversation.close()
        self.conversation = conversation
        self.spent = _NOTHING_SPENT
        self.turn = None
        self._waiting_attachments = []
        self._feed.pin(text.name for text in loaded_skills(conversation.messages))
        if self.checkpoints:
            self.checkpoints.open_session(conversation.id)

    async def _answer(
        self, message: str, make_prompt: MakePrompt, attachments: Sequence[Attachment] = ()
    ) -> AsyncGenerator[Event, None]:
        """Run a turn in a task of its own: a reader that goes away stops it, and its context stays its own."""
        if self._task:
            yield Failed("busy", "A turn is in progress: wait for its end, or cancel it.")
            return

        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[Event | None] = asyncio.Queue()

        def emit(event: Event | None) -> None:  # tools run in threads; in the loop's own, this keeps the order
            loop.call_soon_threadsafe(queue.put_nowait, event)

        self._exchange = Exchange(self, message, emit, attachments)
        task = asyncio.create_task(self._exchange.run(make_prompt))
        task.add_done_callback(lambda _: emit(None))
        self._task = task
        try:
            while (event := await queue.get()) is not None:
                yield event
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            self._task = None
