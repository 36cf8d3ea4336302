"""One message and its answer: a run of the loop, reported in events and saved in the conversation."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from anyio import to_thread
from pydantic_ai import Agent, RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ModelHTTPError, RunCancelled, UnexpectedModelBehavior
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    TextPart,
    ToolCallPart,
    UserContent,
)
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.settings import ModelSettings, ThinkingLevel
from pydantic_ai.usage import UsageLimits

from skillshelf.errors import (
    MissingExtraError,
    ModelUnavailableError,
    PolicyError,
    RepeatedCallError,
    SessionError,
    SkillError,
    SkillNotFoundError,
    error_code,
)
from skillshelf.explain import explain_unavailable
from skillshelf.shelf import Requester, Turn, current_turn, use_turn
from skillshelf.shelf.workspace_skills import WorkspaceSkills
from skillshelf.skills import Delta, SkillDescriptor
from skillshelf.slash import Invocation, apply_message
from skillshelf_agent._attachments import Attachment, leave_out_images, list_content
from skillshelf_agent._compaction import describe_compaction, shorten
from skillshelf_agent._conversation import Conversation
from skillshelf_agent._explain import explain_error, is_too_long
from skillshelf_agent._jobs import Jobs
from skillshelf_agent._models import ChosenModel, find_sibling, usage_of
from skillshelf_agent._repetition import CallHistory
from skillshelf_agent._retries import PlannedRetry, Retries
from skillshelf_agent._todos import find_todos, note_todos
from skillshelf_agent._translation import EventTranslator
from skillshelf_agent._window import Room, Window, count_messages, describe_largest, explain_full
from skillshelf_agent.checkpoints import Checkpoints
from skillshelf_agent.events import (
    Event,
    Failed,
    Finished,
    Notice,
    Retrying,
    ServerAwaited,
    SideStarted,
    SkillInvoked,
    SkillsReloaded,
    Steered,
    Text,
    Thinking,
)
from skillshelf_agent.servers import ToolServers
from skillshelf_agent.sessions import SideTranscript, make_prompt, prompt_content

# A turn that needs more model calls than this goes in circles.
_MAX_MODEL_CALLS = 200
# How much of a conversation is left if the provider finds it too long: our estimate of its size was too low.
_SHRUNK = 0.5
_REFUSED_CONTENT = (400, 413, 415, 422)
"""Answers of a provider that can mean: it does not take this image."""
_SIDE_INSTRUCTIONS = (
    "You work on one task, apart from the main conversation, which you do not see. Your last message is the result: it "
    "is all that the main conversation gets, so make it complete."
)
_NO_RESULT = "[The skill ended without a result.]"


@dataclass(frozen=True, slots=True)
class Loop:
    """A pydantic-ai agent, and what else stays the same from one message to the next."""

    agent: Agent[Any, str]
    """Its runs get the exchange as their `deps`, where the gate and the tools find it."""
    window: Window
    skills: WorkspaceSkills
    servers: ToolServers
    retries: Retries
    jobs: Jobs
    checkpoints: Checkpoints | None = None


class SteeringMessage(NamedTuple):
    """A message that the user sent during a turn."""

    text: str
    attachments: Sequence[Attachment] = ()


TakeSteering = Callable[[], Awaitable[Sequence[SteeringMessage]]]
"""Returns the messages that the user has sent during the turn, each of them once."""


class Exchange:
    """One message and its answer. It lives as long as the turn, and its events go to the reader it began with."""

    is_side = False
    """True in a side conversation."""
    _instructions: str | None = None
    """Instructions for this exchange alone."""

    def __init__(
        self,
        loop: Loop,
        conversation: Conversation,
        model: ChosenModel,
        emit: Callable[[Event], None],
        take_steering: TakeSteering | None = None,
    ) -> None:
        self.loop = loop
        self.emit = emit
        self.conversation = conversation
        self.turn = Turn(loop.skills.shelf, conversation.invoked)
        self.calls = CallHistory()
        """The calls of the turn, to notice a model that goes in circles."""
        self._model = model
        self._take_steering = take_steering
        self._message = ""
        self._begun = datetime.now(UTC)
        """When the message was sent. The turn's checkpoint has this time as well, so that one leads to the other."""
        self._attachments: tuple[Attachment, ...] = ()
        self._translator = EventTranslator(self.turn)
        self._first = 0
        """The index of the run's first message that was not in the conversation before."""
        self._saved = 0
        """How many messages from there on are in the conversation."""
        self._failures = 0
        """How often the current model call has failed."""
        self._has_arrived = False
        """True if something of the current model call's answer has arrived."""
        self._is_empty = False
        """True if the last answer had neither words nor calls."""
        self._is_shrunk = False
        """True if the provider found the conversation too long in this turn."""
        self._is_explained = False
        """True if the user knows that the conversation does not fit in the window."""

    async def run(self, message: str, attachments: Sequence[Attachment], invocation: Invocation | None) -> None:
        """Answer a message of the user, or follow the skill that it invokes.

        The last event says how that ended: finished, stopped or failed.
        """
        self._message = message
        checkpoints = self.loop.checkpoints
        if checkpoints:
            checkpoints.begin_turn(message, self._begun)
        try:
            await self._answer(attachments, invocation)
            end: Event = Finished(self._answer_text())
        except (asyncio.CancelledError, RunCancelled):
            self._cut_short()
            end = Finished(self._answer_text(), stopped=True)
        except RepeatedCallError as error:
            self._cut_short()
            end = Failed(error_code(type(error)), str(error))
        except SkillError as error:
            end = Failed(error_code(type(error)), str(error))
        except Exception as error:  # whatever a provider raises: the session goes on
            self._cut_short()
            if isinstance(error, ModelHTTPError) and error.status_code in _REFUSED_CONTENT:
                self._leave_out_images()
            end = self._explain(error)
        if checkpoints:
            for note in checkpoints.end_turn():
                self.report(note)
        self.emit(end)

    def _explain(self, error: Exception) -> Failed:
        if isinstance(error, UnexpectedModelBehavior) and (self._is_silent(error) or self._is_empty):
            again = "Say it in other words, or choose another model with /model."
            return Failed("empty-answer", f"{self._model.name} sent an empty answer, also when asked again. {again}")
        explanation = explain_error(error)
        message = explanation.message
        if is_too_long(error):
            context = self.loop.window.measure_saved(self.conversation, self._model)
            message += f" By our estimate it has {context.used:,} tokens ({describe_largest(context)})."
        if self._answer_text():
            message += ' The part of the answer that arrived is kept: say "go on" to continue.'
        return Failed(explanation.code, message)

    async def _answer(self, attachments: Sequence[Attachment], invocation: Invocation | None) -> None:
        skills = self.loop.skills
        self.conversation.invoked = self.turn.invoked
        self.report_reload(await to_thread.run_sync(skills.reload_for_turn))
        for notice in await to_thread.run_sync(skills.take_notices):
            self.report(notice)
        self._report_servers()
        current_turn.set(self.turn)

        apart: SkillDescriptor | None = None
        text = self._message
        if invocation is not None:
            skill = await to_thread.run_sync(self._find_invoked, invocation)
            if skill.runs_apart:
                apart = skill
            else:
                text = await to_thread.run_sync(self._apply, skill, invocation)
        notes = [self.loop.checkpoints.take_note() if self.loop.checkpoints else "", self.loop.jobs.take_note()]
        todos = self.conversation.todos
        if todos and not find_todos(self.conversation.messages):  # a summary has taken its place
            notes.append(note_todos(todos))
        note = "\n".join(filter(None, notes))
        self._report_loads()
        self._attachments = (*self.conversation.take_attachments(), *attachments)

        before = len(self.conversation.messages)
        self.report(self.conversation.settle())
        if len(self.conversation.messages) != before:  # the listing's notes count messages
            self.loop.window.feed(self.conversation).renew()
        if apart is not None and invocation is not None:
            await self._answer_apart(apart, invocation, note)
            return
        await self._run_model(text, note)
        self._report_loads()
        self._report_servers()

    def _find_invoked(self, invocation: Invocation) -> SkillDescriptor:
        """Return the skill that the user invoked. Raises SkillError."""
        name = invocation.skill
        try:
            skill = self.loop.skills.shelf.catalog.find(name).descriptor
        except SkillNotFoundError:
            raise explain_unavailable(self.loop.skills.shelf, name, command="/skills") from None
        if not skill.user_invocable:
            raise PolicyError(f"Skill {skill.name!r} is for the model alone: its author set `user-invocable: false`.")
        self.emit(SkillInvoked(skill.name, invocation.arguments))
        if skill.runs_apart:
            self.turn.invoked.add(skill.name)
        return skill

    def _apply(self, skill: SkillDescriptor, invocation: Invocation) -> str:
        """Return the text of a skill that the user invoked, with the arguments."""
        self._model = self._find_model_for(skill)
        loaded = self.turn.load(invocation.skill, by="user")
        return apply_message(skill, loaded.text, invocation.arguments, reach=invocation.skill)

    def _find_model_for(self, skill: SkillDescriptor) -> ChosenModel:
        """Return the model that a skill asks for, if the provider in use has it, and otherwise the one in use.

        The user is informed either way, because another model has another price.
        """
        if not skill.model:
            return self._model
        try:
            model = find_sibling(self._model, skill.model)
        except (ModelUnavailableError, MissingExtraError) as error:
            if skill.qualified not in self.conversation.refused_models:
                self.conversation.refused_models.add(skill.qualified)
                self.report(f"{skill.name} asks for another model: {error}. {self._model.name} answers instead.")
            return self._model
        if model.name != self._model.name:
            self.report(f"{skill.name} asks for the model {model.name}, which answers now, at its own price.")
        return model

    # -- a skill that runs apart --------------------------------------------------------------------------------------

    async def _answer_apart(self, skill: SkillDescriptor, invocation: Invocation, note: str) -> None:
        """Answer with the result of a skill that runs apart. The conversation gets the message and the result alone."""
        self.report(self.conversation.add([make_prompt(self._message, note=note, at=self._begun)]))
        self._saved = 1
        task = "\n\n".join([invocation.arguments, *(attachment.text for attachment in self._attachments)])
        result = await self.run_side(invocation.skill, skill, task, by="user")
        self._translator.answer.append(result)
        self.emit(Text(result))
        self.report(self.conversation.settle(result))

    async def run_side(self, reach: str, skill: SkillDescriptor, task: str, *, by: Requester, call_id: str = "") -> str:
        """Run a skill in a side conversation and return its result. Raises whatever a model raises.

        `reach` is the name that leads to the skill, and `call_id` the tool call that asked for it.
        """
        model = self._find_model_for(skill)
        self.emit(SideStarted(skill.name, task, model.name))
        side = _SideExchange(self, skill, model)
        try:
            return await side.run_task(reach, task, by)
        finally:
            self.conversation.spending.add_all(side.conversation.spending)
            self._keep_transcript(SideTranscript(skill.name, model.name, side.conversation.messages, call_id))

    def _keep_transcript(self, transcript: SideTranscript) -> None:
        session = self.conversation.session
        if session is None:
            return
        try:
            session.add_side(transcript)
        except SessionError as error:
            self.report(str(error))

    # -- the model ----------------------------------------------------------------------------------------------------

    async def _run_model(self, text: str, note: str = "") -> None:
        """Have the model answer. A call that fails for a passing reason, or for want of room, is made again."""
        history = list(self.conversation.messages)
        self._first = len(history)
        # On the disk before the model is asked: whatever happens then, the user's message is there.
        request = make_prompt(text, note=note, attachments=list_content(self._attachments), at=self._begun)
        self.report(self.conversation.add([request]))
        self._saved = 1
        await self._wait_for_servers()

        content: str | Sequence[UserContent] | None = prompt_content(request)
        while True:
            try:
                return await self._run_loop(content, history)
            except Exception as error:
                self._failures += 1
                if not await self._recover(error):
                    raise
            # The next run goes on where this one stopped: its last request is sent again.
            content = None
            history = list(self.conversation.messages)
            self._first = len(history)
            self._saved = 0

    async def _wait_for_servers(self) -> None:
        """Wait until the tools of all MCP servers are known. The loop would wait, too, but without a word."""
        for server in self.loop.servers.servers:
            if not server.settled.is_set():
                self.emit(ServerAwaited(server.name))
                await server.settled.wait()
                self.emit(ServerAwaited(server.name, over=True))
        self._report_servers()

    async def _run_loop(self, content: str | Sequence[UserContent] | None, history: list[ModelMessage]) -> None:
        """Run the agent once: with a message of the user, or without, to go on with the history."""
        model = self._model.model
        stream = self.loop.agent.run_stream_events(
            content,
            message_history=history,
            model=model,
            model_settings=self._make_settings(),
            instructions=self._instructions,
            conversation_id=self.conversation.id,
            usage_limits=UsageLimits(request_limit=_MAX_MODEL_CALLS),
            deps=self,
        )
        run = None
        try:
            async with stream as run:
                async for framework_event in run:
                    if not isinstance(framework_event, PartDeltaEvent):  # not in the middle of a text
                        self._report_servers()
                    for event in self._translator.translate(framework_event):
                        self.emit(event)
                    # The last message may still grow. It is saved when the next one has begun, or at the end. A piece
                    # of text begins none, and there are thousands of them.
                    if not isinstance(framework_event, PartDeltaEvent):
                        self._save(run.all_messages()[self._first : -1])
        except Exception:
            # An answer that broke off before a word of it was shown is not kept: the call may be made again.
            messages = _messages_of(run)
            if not self._translator.answer and not self._has_arrived:
                messages = _drop_response(messages)
            self._save(messages[self._first :])
            raise
        except BaseException:  # after the stream's teardown, which completes a message that was cut short
            self._save(_messages_of(run)[self._first :])
            raise
        self._save(_messages_of(run)[self._first :])

    def _make_settings(self) -> ModelSettings | None:
        settings = self.loop.retries.make_settings(self._model.model)
        effort = self._model.effort
        if not effort:
            return settings
        thinking: ThinkingLevel = False if effort == "off" else effort
        return ModelSettings(**(settings or {}), thinking=thinking)

    def _plan_retry(self, error: Exception) -> PlannedRetry | None:
        retries = self.loop.retries
        if self._is_silent(error):  # nothing came, and nothing says why
            is_first = self._failures == 1 and retries.attempts > 0
            return PlannedRetry("The provider ended its answer before it began", 1.0, 1) if is_first else None
        return retries.plan(error, self._failures)

    async def _recover(self, error: Exception) -> bool:
        """Prepare another try of the model call that failed, and return True if there is one."""
        if self._translator.answer:
            return False  # a part of the answer was shown, and another try would begin it anew
        if is_too_long(error):
            return await self._shrink()

        planned = self._plan_retry(error)
        if planned is None:
            return False
        self.emit(Retrying(planned.reason, planned.seconds, self._failures, planned.of))
        await self.loop.retries.wait(planned.seconds)
        return True

    async def _shrink(self) -> bool:
        """Make the conversation much shorter, because the provider found it too long. Once in a turn."""
        if self._is_shrunk:
            return False
        self._is_shrunk = True
        messages = self.conversation.messages
        size = int(count_messages(messages, self.loop.window.counter) * _SHRUNK)
        result = await shorten(self.conversation, messages, self._model, self.loop.window, room=Room(size, size))
        if not result.is_shorter:
            return False
        self.report(describe_compaction(result))
        self._replace(result.messages)
        return True

    def _is_silent(self, error: Exception) -> bool:
        """Return True if the provider ended its answer without a word."""
        return type(error) is UnexpectedModelBehavior and not self._has_arrived

    def _save(self, messages: list[Any]) -> None:
        fresh = messages[self._saved :]
        self._saved += len(fresh)
        self.report(self.conversation.add(fresh))

    def _cut_short(self) -> None:
        if not self._saved:
            self.report(self.conversation.add([make_prompt(self._message, at=self._begun)]))
        self.report(self.conversation.settle(self._answer_text()))

    def _leave_out_images(self) -> None:
        """Take the images of this message out of the conversation, so that the next message does not fail, too."""
        images = [attachment.image for attachment in self._attachments if attachment.image is not None]
        if images:
            self.report("The images are left out of the conversation from now on: the provider refused the message.")
            self._replace(leave_out_images(self.conversation.messages, images))

    def _answer_text(self) -> str:
        return "".join(self._translator.answer)

    # -- each call of the model ---------------------------------------------------------------------------------------

    async def steer(self, messages: Sequence[ModelMessage]) -> None:
        """Add what the user has sent meanwhile to the request with the results of the tools, which is about to be sent.

        As a request of its own it would be merged with that one when the next run begins.
        """
        request = messages[-1]
        is_saved = len(messages) <= self._first + self._saved
        if self._take_steering is None or is_saved or not isinstance(request, ModelRequest):
            return
        steering = await self._take_steering()
        if not steering:
            return

        for message in steering:
            prompt = make_prompt(message.text, attachments=list_content(message.attachments))
            request.parts = [*request.parts, *prompt.parts]
            self._attachments += tuple(message.attachments)
            self.emit(Steered(message.text))
        self.calls.clear()
        # On the disk before the model is asked. A copy, because the loop goes on to write into this one.
        self._save([*messages[self._first : -1], replace(request)])

    async def make_room(self, messages: Sequence[ModelMessage]) -> list[ModelMessage] | None:
        """Return the messages of the run in a shorter form if they fill the window, or else None.

        The saved conversation is replaced, too. If nothing makes them fit, the user learns what does, once in a turn.
        """
        self._has_arrived = False
        window = self.loop.window
        context = window.measure(self.conversation, self._model, messages, by_skill=False)
        if not context.is_full or self._is_explained:
            return None

        result = await shorten(self.conversation, messages, self._model, window, room=context.room)
        if not result.fits:
            self._is_explained = True
            self.report(explain_full(window.measure(self.conversation, self._model, result.messages), self._model.name))
        if not result.is_shorter:
            return None
        self.report(describe_compaction(result))
        self._replace(result.messages)
        return result.messages

    def _replace(self, messages: list[ModelMessage]) -> None:
        """Save a shortened history, with all messages of this turn so far."""
        try:
            self.conversation.replace(messages)
        except SessionError as error:  # it is replaced in memory
            self.report(str(error))
        self._first = 0
        self._saved = len(messages)

    def record_response(self, response: ModelResponse) -> None:
        """Add a response to the conversation's usage, and report it."""
        usage = usage_of(response)
        self.conversation.spending.add(self._model.name, usage)
        self.emit(usage)
        self._has_arrived = True
        self._failures = 0
        was_empty = self._is_empty
        self._is_empty = not any(_says_something(part) for part in response.parts)
        if self._is_empty and not was_empty:
            self.report("The model sent an empty answer. It is asked once more.")
        if response.provider_name and not _has_end(response):
            self.report(
                "The answer may be cut short: the provider did not say that it was complete. What arrived is kept; "
                'say "go on" to continue.'
            )

    # -- reports ------------------------------------------------------------------------------------------------------

    def report(self, problem: str) -> None:
        """Tell the user something, unless there is nothing to tell."""
        if problem:
            self.emit(Notice(problem))

    def report_reload(self, delta: Delta) -> None:
        """Tell the user which skills have changed."""
        if delta:
            self.emit(SkillsReloaded(delta.added, delta.changed, delta.removed))

    def _report_loads(self) -> None:
        for event in self._translator.new_loads():
            self.emit(event)

    def _report_servers(self) -> None:
        for notice in self.loop.servers.take_notices():
            self.report(notice)


class _SideExchange(Exchange):
    """A task and its result, in a conversation of its own: a skill with `context: fork` runs in one.

    Its tools are the agent's, under the same gate and policy. Its events carry the name of the skill.
    """

    is_side = True
    _instructions = _SIDE_INSTRUCTIONS

    def __init__(self, parent: Exchange, skill: SkillDescriptor, model: ChosenModel) -> None:
        conversation = Conversation()
        conversation.invoked = parent.turn.invoked
        super().__init__(parent.loop, conversation, model, self._emit_marked)
        self._skill = skill
        self._emit_outside = parent.emit

    async def run_task(self, reach: str, task: str, by: Requester) -> str:
        """Follow the skill with this task, and return the result."""
        with use_turn(self.turn):
            loaded = await to_thread.run_sync(lambda: self.turn.load(reach, by=by))
            self._report_loads()
            await self._run_model(apply_message(self._skill, loaded.text, task, reach=reach))
            self._report_loads()
        return self._answer_text() or _NO_RESULT

    def _emit_marked(self, event: Event) -> None:
        """Pass an event on with the name of the skill. The words on the way are in the transcript alone."""
        if not isinstance(event, Text | Thinking):
            self._emit_outside(replace(event, side=self._skill.name))


class ModelCalls(AbstractCapability[Exchange]):
    """Adds steering messages and makes room in the window before each call of the model, and records its answer."""

    id = "skillshelf_model_calls"

    async def before_model_request(
        self, ctx: RunContext[Exchange], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        await ctx.deps.steer(ctx.messages)
        shorter = await ctx.deps.make_room(ctx.messages)
        if shorter is None:
            return request_context
        ctx.messages[:] = shorter
        return replace(request_context, messages=list(shorter))

    async def after_model_request(
        self, ctx: RunContext[Exchange], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        ctx.deps.record_response(response)
        return response


def _says_something(part: object) -> bool:
    return isinstance(part, ToolCallPart) or (isinstance(part, TextPart) and bool(part.content.strip()))


def _has_end(response: ModelResponse) -> bool:
    """Return True if the provider gave a reason for the end of its answer, even one that pydantic-ai does not know."""
    details = response.provider_details or {}
    return response.finish_reason is not None or bool(details.get("finish_reason"))


def _drop_response(messages: list[Any]) -> list[Any]:
    """Return the messages up to the last request."""
    if messages and isinstance(messages[-1], ModelResponse):
        return messages[:-1]
    return messages


def _messages_of(run: Any) -> list[Any]:
    try:
        return list(run.all_messages())
    except Exception:  # it never began
        return []
