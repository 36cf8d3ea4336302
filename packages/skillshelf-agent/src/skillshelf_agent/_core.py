"""AgentCore: the agent as a library. A message goes in, events come out, and every interface reads these events."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic_ai.messages import ModelRequest, UserPromptPart

from skillshelf.adapters.pydantic_ai import Skills
from skillshelf.errors import CheckpointError, SessionError, SkillError
from skillshelf.listing import Level
from skillshelf.sandbox import GitGuard, Sandbox, find_sandbox
from skillshelf.shelf import Shelf
from skillshelf.shelf.workspace_skills import WorkspaceSkills
from skillshelf.skills import Choice, Delta
from skillshelf.slash import SKILL_PREFIX, Invocation, parse_invocation
from skillshelf.sources.workspace import Workspace
from skillshelf.text.tokens import DEFAULT_BUDGET
from skillshelf_agent._attachments import Attachment, AttachmentFinder, FoundAttachments
from skillshelf_agent._commands import Shell
from skillshelf_agent._compaction import Compacted, shorten
from skillshelf_agent._conversation import Conversation, Spending
from skillshelf_agent._exchange import Exchange, TakeSteering
from skillshelf_agent._gate import Gate
from skillshelf_agent._jobs import Jobs
from skillshelf_agent._loop import make_file_access, make_loop
from skillshelf_agent._models import ChosenModel
from skillshelf_agent._policy import Approve, Policy
from skillshelf_agent._retries import Retries
from skillshelf_agent._scripts import AskVariable, Scripts
from skillshelf_agent._todos import TodoTool
from skillshelf_agent._tool_names import OWN_TOOLS
from skillshelf_agent._window import Context
from skillshelf_agent.checkpoints import ChangedFile, Checkpoints, Undone
from skillshelf_agent.events import NOTHING_SPENT, Event, Failed, Usage
from skillshelf_agent.servers import ToolServers
from skillshelf_agent.sessions import InUse, SentMessage, Sessions, list_sent, loaded_skills, typed_text

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from skillshelf.explain import RequestExplanation
    from skillshelf.listing import Listing, ListingForm
    from skillshelf.search import Match

_CLEAR_SCORE = 0.7
"""A match below it may have nothing to do with the request: everyday requests score up to 0.7 by chance."""

ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True)
class Unused:
    """Whether a skill comes up for a request of this conversation, and what became of it."""

    explanation: RequestExplanation
    verdict: str
    """What the model did or could not do, in a sentence or two."""
    is_loaded: bool
    """True if the skill was loaded in this conversation after all."""


class AgentCore:
    """An agent on a workspace: `process_message` answers one message after the other, in one conversation."""

    def __init__(
        self,
        model: ChosenModel | Model[Any],
        workspace: str | os.PathLike[str] | Workspace | WorkspaceSkills | None = None,
        *,
        policy: Policy | None = None,
        approve: Approve | None = None,
        ask_variable: AskVariable | None = None,
        disclosure: ListingForm = "auto",
        budget: int = DEFAULT_BUDGET,
        sandbox: bool = True,
        sessions: Sessions | None = None,
        servers: ToolServers | None = None,
        retries: Retries | None = None,
        todo_list: bool = False,
    ) -> None:
        """Make an agent that works in this folder, with its skills, the user's and the bundled ones.

        Without `workspace`, it works in the current folder, with the skills of the whole repository around it;
        `find_workspace` does the same for another folder. `WorkspaceSkills(folder, ...)` chooses which skills it has.
        File tools and commands stay in the folder in any case.

        `approve` is asked before a tool runs that needs approval; without it, such a call is refused. `ask_variable`
        is asked for the value of an environment variable that a skill declares for its scripts. `disclosure` is how
        much of each skill the listing shows: with `full`, every call carries all instructions. `budget` is the most
        tokens that a listing of the form `auto` may take. With `sandbox`, commands can write in the workspace only, as
        far as the system supports that; the property `sandbox` says how far.

        With `sessions`, the conversation is saved in files, and so are the files that each turn changes: `undo` takes a
        turn back. `servers` are MCP servers whose tools the model gets inside of `async with core.servers:`. `retries`
        is how patient the agent is with a provider that fails. With `todo_list`, the model keeps a list in
        `core.conversation.todos`, for an interface that shows it.

        Raises SourceError if there is no such folder.
        """
        self.model = model if isinstance(model, ChosenModel) else ChosenModel.from_model(model)
        self.skills = workspace if isinstance(workspace, WorkspaceSkills) else WorkspaceSkills(workspace)
        """The workspace's shelf, and the skills that await the user's review."""
        self.disclosure: ListingForm = disclosure
        self.budget = budget
        self.sessions = sessions
        self.servers = servers or ToolServers()
        self.shelf.reserve_tools(OWN_TOOLS)

        self._access = make_file_access(self.skills.folder)
        self.checkpoints: Checkpoints | None = None
        """The files that each turn changed. There are none without sessions."""
        if sessions and sessions.checkpoints:
            self.checkpoints = Checkpoints(self._access, sessions.checkpoints)
        self._find_sandbox = find_sandbox if sandbox else _find_no_sandbox
        git = GitGuard(self.skills.folder)
        self.scripts = Scripts(self.skills, self._find_sandbox, git, ask_variable)
        shell = Shell(self.skills.folder, self._find_sandbox, git)
        self.jobs = Jobs(shell, git, self._access)
        """The commands that run in the background. They end with the session: use `async with core.jobs:`."""
        self.gate = Gate(
            self._access,
            self.skills,
            self.scripts,
            shell,
            self.jobs,
            git,
            policy=policy or Policy(),
            approve=approve,
            checkpoints=self.checkpoints,
            find_sandbox=self._find_sandbox,
        )
        """Decides about each tool call, by the policy and the user's answers."""
        self.loop = make_loop(
            self._access,
            self.skills,
            Skills(self.shelf, disclosure=disclosure, budget=budget),
            gate=self.gate,
            scripts=self.scripts,
            shell=shell,
            jobs=self.jobs,
            todos=TodoTool(is_offered=todo_list),
            servers=self.servers,
            retries=retries or Retries(),
            checkpoints=self.checkpoints,
        )
        self.take_steering: TakeSteering | None = None
        """Called before the model gets the results of tools, for messages that the user has sent during the turn."""
        self._task: asyncio.Task[None] | None = None
        self._spendings: list[Spending] = []
        """Those of all conversations so far. A fork shares that of the original."""
        self.conversation = self._open(self._make_conversation())

    @property
    def shelf(self) -> Shelf:
        return self.skills.shelf

    @property
    def sandbox(self) -> Sandbox:
        """What commands run in, and what they can still do. The first time, this starts a process to find out."""
        return self._find_sandbox()

    @property
    def _in_use(self) -> InUse:
        return InUse(model=self.model.name, base_url=self.model.base_url, policy=self.gate.policy.mode)

    def use_model(self, model: ChosenModel) -> None:
        """Let another model answer from here on. Raises SessionError if that cannot be saved; it answers anyway."""
        self.model = model
        if self.conversation.session:
            self.conversation.session.use(self._in_use)

    @property
    def tool_names(self) -> frozenset[str]:
        """The names of all tools there are now, withheld or not. A server that is starting has none yet."""
        return OWN_TOOLS.union(tool.name for tool in self.loop.window.list_tools())

    @property
    def withheld_tools(self) -> tuple[str, ...]:
        """The names of tools that the model is not offered, because the policy refuses every call of them."""
        return tuple(sorted(self.gate.find_withheld(self.loop.window.list_tools())))

    @property
    def listing(self) -> Listing:
        """The Available Skills section as it is now in this conversation."""
        return self.loop.window.feed(self.conversation).listing()

    @property
    def context(self) -> Context:
        """What fills the model's window. It is measured again only if the conversation or the listing has changed."""
        return self.loop.window.measure_saved(self.conversation, self.model)

    @property
    def spent(self) -> Usage:
        """The tokens and the price of all conversations so far. `conversation.spent` has those of the present one."""
        return sum((spending.total for spending in self._spendings), NOTHING_SPENT)

    # -- skills -------------------------------------------------------------------------------------------------------

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
        self.loop.window.feed(self.conversation).renew()

    def find_clear_match(self, request: str) -> Match | None:
        """Return the skill that fits a request best, if it clearly does."""
        matches = self.shelf.search(request, 1, min_score=_CLEAR_SCORE)
        return matches[0] if matches and matches[0].is_clear else None

    def is_left_out(self, match: Match, used: Collection[str]) -> bool:
        """Return True if the model could have loaded a skill and did not.

        `used` has the names of tools that it called, and of skills that ran apart.
        """
        if match.name not in self.shelf.catalog or self.listing.level_of(match.name) == Level.FULL:
            return False
        names = {match.name, *match.copies, *self.shelf.permissions_of(match.name)}
        loaded = (text.name for text in loaded_skills(self.conversation.messages))
        return names.isdisjoint([*used, *loaded])

    def explain_unused(self, name: str, request: str = "") -> Unused:
        """Explain why the model did not use a skill for a request, by default the user's last message.

        Without a name, this is about the skill that fits best. For the last message, it is about the listing that the
        model got. Raises SkillError if there is no request, or no name and no skill that fits.
        """
        from skillshelf.explain import explain_request  # brings the search

        last = self._find_last_request()
        wanted = request.strip() or last
        if not wanted:
            raise SkillError("Nothing was said yet. Give the request: /why-not NAME fill in this form")

        if not name:
            matches = self.shelf.search(wanted, 1)
            if not matches:
                raise SkillError("No skill fits your last message. To ask about one of them: /why-not NAME")
            name = matches[0].name

        listing = self.listing if wanted == last else None
        explanation = explain_request(
            self.shelf,
            name,
            wanted,
            disclosure=self.disclosure,
            budget=self.budget,
            listing=listing,
            command="/skills",
        )
        if not self.skills.trusted:  # this session trusts the workspace: nothing waits for a review
            reasons = [reason for reason in explanation.reasons if reason.code not in ("unreviewed", "outdated")]
            explanation = replace(explanation, reasons=tuple(reasons))

        is_loaded = any(text.name == explanation.name for text in loaded_skills(self.conversation.messages))
        verdict = explanation.describe_use(is_loaded=is_loaded, was_offered=listing is not None)
        return Unused(explanation, verdict, is_loaded)

    def _find_last_request(self) -> str:
        for message in reversed(self.conversation.messages):
            if isinstance(message, ModelRequest) and any(isinstance(part, UserPromptPart) for part in message.parts):
                return typed_text(message)
        return ""

    # -- messages -----------------------------------------------------------------------------------------------------

    def process_message(self, text: str, attachments: Sequence[Attachment] = ()) -> AsyncGenerator[Event, None]:
        """Answer a message. `/skills:<name> [arguments]` invokes a skill; any other text goes to the model as it is.

        `attachments` are what `find_attachments` found in it. Nothing is attached unless the caller asks for it: not
        every text that a program sends was typed by the user.
        """
        invocation = parse_invocation(text, self.shelf.catalog)
        if invocation is not None:
            return self.invoke_skill(invocation.skill, invocation.arguments, attachments)
        return self._answer(text, attachments)

    def invoke_skill(
        self, name: str, arguments: str = "", attachments: Sequence[Attachment] = ()
    ) -> AsyncGenerator[Event, None]:
        """Follow a skill, with these arguments."""
        message = f"/{SKILL_PREFIX}{name} {arguments}".rstrip()
        return self._answer(message, attachments, Invocation(name, arguments))

    async def _answer(
        self, message: str, attachments: Sequence[Attachment], invocation: Invocation | None = None
    ) -> AsyncGenerator[Event, None]:
        """Run a turn in a task of its own: a reader that goes away stops it, and its context stays its own."""
        if self._task:
            yield Failed("busy", "A turn is in progress: wait for its end, or cancel it.")
            return

        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[Event | None] = asyncio.Queue()

        def emit(event: Event | None) -> None:  # tools run in threads; in the loop's own, this keeps the order
            loop.call_soon_threadsafe(queue.put_nowait, event)

        if self.conversation.session:
            with suppress(SessionError):  # the message itself will not be saved either, and says so
                self.conversation.session.use(self._in_use)
        exchange = Exchange(self.loop, self.conversation, self.model, emit, self.take_steering)
        task = asyncio.create_task(exchange.run(message, attachments, invocation))
        task.add_done_callback(lambda _: emit(None))
        self._task = task
        try:
            while (event := await queue.get()) is not None:
                yield event
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            self._task = None

    def cancel(self) -> None:
        """Stop the turn in progress, if there is one. The answer so far is kept."""
        if self._task:
            self._task.cancel()

    def find_attachments(
        self, message: str, *, dropped: bool = False, pasted: Mapping[str, bytes] | None = None
    ) -> FoundAttachments:
        """Read the files that a message mentions as `@path`; with `dropped`, images by their absolute path, too.

        `pasted` are images that come without a file, by the words that stand for each in the message.
        """
        return AttachmentFinder(self._access, self.model).find(message, dropped=dropped, pasted=pasted or {})

    # -- the conversation ---------------------------------------------------------------------------------------------

    def new_session(self) -> Delta:
        """Start over with an empty history and reloaded skills. Background commands end."""
        self.jobs.end_all()
        self._switch_to(self._make_conversation())
        return self.reload_skills()

    def resume(self, session: str = "") -> Sequence[str]:
        """Continue an earlier session, by default the last. Return notes on parts that could not be read.

        Background commands end. Raises SessionError.
        """
        if not self.sessions:
            raise SessionError("This conversation is not saved in files, so there is none to continue.")
        if not session:
            others = [identifier for identifier in self.sessions.ids() if identifier != self.conversation.id]
            if not others:
                raise SessionError("There is no earlier session in this workspace.")
            session = others[0]

        opened = self.sessions.open(session)
        self.jobs.end_all()
        self._switch_to(Conversation(opened))
        self.reload_skills()
        return opened.notes

    def fork(self) -> str:
        """Go on in a copy of the session. Return the id of the original, which stays as it is. Raises SessionError."""
        session = self.conversation.session
        if not self.sessions or session is None:
            raise SessionError("This conversation is not saved in files, so it cannot be forked.")
        if self._task:
            raise SessionError("A turn is in progress: wait for its end, or stop it.")
        forked = Conversation(self.sessions.fork(session))
        forked.spending = self.conversation.spending
        self._switch_to(forked)
        return session.id

    def list_sent(self) -> Sequence[SentMessage]:
        """Return the messages that began turns of this conversation, the ones before a compaction included."""
        session = self.conversation.session
        return list_sent(session.transcript if session else self.conversation.messages)

    def rewind(self, message: SentMessage, *, files: bool = False, commands: bool = False) -> Sequence[Undone]:
        """Go back to before a message of `list_sent`: it and what came after are no longer in the conversation.

        With `files`, the changes of these turns are taken back as by `undo`, and the results are returned, the last
        turn's first. Otherwise the model learns with the next message which files have changed. Raises SessionError or
        CheckpointError.
        """
        if self._task:
            raise SessionError("A turn is in progress: wait for its end, or stop it.")
        undone: Sequence[Undone] = ()
        if self.checkpoints:
            undone = self._restore_files(lambda kept: kept.rewind(message.sent, files=files, commands=commands))
        self.conversation.rewind(message.position)
        self.renew_listing()
        return undone

    async def compact(self, focus: str = "") -> Compacted:
        """Replace the conversation by a summary and the skills that were loaded.

        If the model fails, its error is raised and nothing has changed. If there is nothing to gain, nothing changes
        either.
        """
        conversation = self.conversation
        if not conversation.messages:
            raise SessionError("The conversation is empty, so there is nothing to shorten.")
        result = await shorten(
            conversation, conversation.messages, self.model, self.loop.window, focus=focus, fallback=False
        )
        if result.is_shorter:
            conversation.replace(result.messages)
        return result

    def _make_conversation(self) -> Conversation:
        if self.sessions is None:
            return Conversation()
        return Conversation(self.sessions.create(in_use=self._in_use))

    def _switch_to(self, conversation: Conversation) -> None:
        self.conversation.close()
        self.conversation = self._open(conversation)

    def _open(self, conversation: Conversation) -> Conversation:
        """Prepare the listing and the checkpoints for a conversation that begins or goes on."""
        if conversation.spending not in self._spendings:
            self._spendings.append(conversation.spending)
        self.loop.window.feed(conversation).pin(text.name for text in loaded_skills(conversation.messages))
        if self.checkpoints:
            self.checkpoints.open_session(conversation.id)
        return conversation

    # -- files --------------------------------------------------------------------------------------------------------

    def undo(self, file: str = "", *, commands: bool = False) -> Undone:
        """Take back the files that the last turn changed, or one file that an undo has left.

        A file that is not as the turn left it stays as it is. So does one that changed while a command ran, unless
        `commands` is given: the user may have edited it meanwhile. The model learns of it with the next message. Raises
        CheckpointError.
        """
        return self._restore_files(lambda kept: kept.undo_file(file) if file else kept.undo(commands=commands))

    def redo(self) -> Undone:
        """Bring back the turn that was taken back last. Raises CheckpointError."""
        return self._restore_files(lambda kept: kept.redo())

    def list_changes(self, *, whole_session: bool = False, since: SentMessage | None = None) -> Sequence[ChangedFile]:
        """Return what the last turn has changed in the workspace, by path; or the whole session, or since a message."""
        sent = since.sent if since else None
        return self._get_checkpoints().list_changes(whole_session=whole_session, since=sent)

    def _get_checkpoints(self) -> Checkpoints:
        if self.checkpoints is None:
            raise CheckpointError("This conversation is not saved in files, and neither are the changes of its turns.")
        return self.checkpoints

    def _restore_files(self, restore: Callable[[Checkpoints], ResultT]) -> ResultT:
        checkpoints = self._get_checkpoints()
        if self._task:
            raise CheckpointError("A turn is in progress: wait for its end, or stop it.")
        try:
            # What comes back may be the work of an earlier turn, which must not pass for the user's own edit.
            with self.skills.agent_at_work():
                return restore(checkpoints)
        finally:
            self.reload_skills()


def _find_no_sandbox() -> Sandbox:
    return Sandbox("none", "the sandbox is switched off")
