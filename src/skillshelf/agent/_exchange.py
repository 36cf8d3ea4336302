"""One message and its answer: a run of the loop, reported in events and saved in the conversation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from anyio import to_thread
from pydantic_ai.exceptions import ModelHTTPError, RunCancelled, UnexpectedModelBehavior
from pydantic_ai.messages import (
    ModelResponse,
    PartDeltaEvent,
    TextPart,
    ToolCallPart,
)
from pydantic_ai.usage import UsageLimits

from skillshelf.agent._attachments import Attachment, leave_out_images, list_content
from skillshelf.agent._compaction import Compacted
from skillshelf.agent._context import Room, count_messages, describe_largest, explain_full, measure_context
from skillshelf.agent._explain import explain_error, is_too_long
from skillshelf.agent._models import usage_of
from skillshelf.agent._policy import Answer, Approval, Policy
from skillshelf.agent._repetition import CallHistory
from skillshelf.agent._retries import PlannedRetry
from skillshelf.agent._tool_names import RUN_SKILL
from skillshelf.agent._translation import EventTranslator
from skillshelf.agent.events import (
    Event,
    Failed,
    FileWritten,
    Finished,
    Notice,
    ReferenceDenied,
    Retrying,
    ServerAwaited,
    SkillInvoked,
    SkillsReloaded,
    Text,
    ToolOutput,
)
from skillshelf.agent.sessions import make_prompt, prompt_content
from skillshelf.descriptor import Delta
from skillshelf.discovery import is_for_user_only
from skillshelf.errors import (
    PolicyError,
    RepeatedCallError,
    SessionError,
    SettingsError,
    SkillError,
    SkillNotFoundError,
    error_code,
)
from skillshelf.explain import explain_unavailable
from skillshelf.slash import apply_message
from skillshelf.text import count_noun
from skillshelf.turn import Turn, current_turn

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, UserContent

    from skillshelf.agent._confinement import Confinement
    from skillshelf.agent._core import AgentCore
    from skillshelf.agent._script_runs import ScriptRuns
    from skillshelf.agent._skills import AgentHolds
    from skillshelf.agent.filetools import Change
    from skillshelf.agent.rules import Rule
    from skillshelf.trust import UnreviewedFile

# A turn that needs more model calls than this goes in circles.
_MAX_MODEL_CALLS = 200
# How much of a conversation is left if the provider finds it too long: our estimate of its size was too low.
_SHRUNK = 0.5
_REFUSED_CONTENT = (400, 413, 415, 422)
"""Answers of a provider that can mean: it does not take this image."""
# A small model reads slowly, so the skill that comes with a message stays short.


class Prompt(NamedTuple):
    """The text of a user's message as the model gets it."""

    text: str
    note: str = ""
    """A note of the application, which is not the user's words."""
    side_skill: str = ""
    """The skill that takes the text as its task, in a side conversation."""


MakePrompt = Callable[["Exchange", Turn], Prompt]


class Exchange:
    """One message and its answer. It lives as long as the turn, and its events go to the reader it began with."""

    def __init__(
        self,
        core: AgentCore,
        message: str,
        emit: Callable[[Event], None],
        attachments: Sequence[Attachment] = (),
    ) -> None:
        self.emit = emit
        self._core = core
        self._message = message
        self._attachments = attachments
        self._conversation = core.conversation
        self._model = core.model
        self._instructions: str | None = None
        """Instructions for this exchange alone."""
        self._turn: Turn | None = None
        self._translator: EventTranslator | None = None
        self.calls = CallHistory()
        """The calls of the turn, to notice a model that goes in circles."""
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

    async def run(self, make_prompt: MakePrompt) -> None:
        """Answer the message. The last event says how that ended: finished, stopped or failed."""
        checkpoints = self._core.checkpoints
        if checkpoints:
            checkpoints.begin_turn(self._message)
        try:
            await self._answer(make_prompt)
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
                self._report(note)
        self.emit(end)

    def _explain(self, error: Exception) -> Failed:
        if isinstance(error, UnexpectedModelBehavior) and (self._is_silent(error) or self._is_empty):
            again = "Say it in other words, or choose another model with /model."
            return Failed(
                "empty-answer", f"{self._core.model.name} sent an empty answer, also when asked again. {again}"
            )
        explanation = explain_error(error)
        message = explanation.message
        if is_too_long(error):
            context = self._core.context
            message += f" By our estimate it has {context.used:,} tokens ({describe_largest(context)})."
        if self._answer_text():
            message += ' The part of the answer that arrived is kept: say "go on" to continue.'
        return Failed(explanation.code, message)

    async def _answer(self, make_prompt: MakePrompt) -> None:
        core = self._core
        turn, delta = await to_thread.run_sync(core.skills.open_turn, core.turn)
        core.turn = turn
        self._turn = turn
        self._report_reload(delta)
        for notice in await to_thread.run_sync(core.skills.take_notices):
            self._report(notice)
        self._report_servers()
        current_turn.set(turn)

        self._translator = EventTranslator(turn)
        prompt = await to_thread.run_sync(make_prompt, self, turn)
        if core.checkpoints:
            prompt = prompt._replace(note=core.checkpoints.take_note())
        self._report_loads()
        self._attachments = (*core.take_attachments(), *self._attachments)

        before = len(self._conversation.messages)
        self._report(self._conversation.settle())
        if len(self._conversation.messages) != before:  # the listing's notes count messages
            core.renew_listing()
        if prompt.side_skill:
            await self._run_side(self._translator, prompt)
            return
        await self._run_model(self._translator, prompt)
        self._report_loads()
        self._report_servers()

    async def _run_side(self, translator: EventTranslator, prompt: Prompt) -> None:
        """Answer with the result of a skill that runs apart. The conversation gets the message and the result alone."""
        assert self._turn is not None
        self._report(self._conversation.add([make_prompt(self._message, note=prompt.note)]))
        self._saved = 1
        task = "\n\n".join([prompt.text, *(attachment.text for attachment in self._attachments)])
        result = await self._core.run_side(
            prompt.side_skill, task, by="user", invoked=set(self._turn.invoked), emit=self.emit
        )
        translator.answer.append(result)
        self.emit(Text(result))
        self._report(self._conversation.settle(result))

    async def _run_model(self, translator: EventTranslator, prompt: Prompt) -> None:
        """Have the model answer. A call that fails for a passing reason, or for want of room, is made again."""
        history = list(self._conversation.messages)
        self._first = len(history)
        # On the disk before the model is asked: whatever happens then, the user's message is there.
        attached = list_content(self._attachments)
        request = make_prompt(prompt.text, prompt.note, attached)
        self._report(self._conversation.add([request]))
        self._saved = 1
        await self._wait_for_servers()

        content: str | Sequence[UserContent] | None = prompt_content(request)
        while True:
            try:
                return await self._run_loop(translator, content, history)
            except Exception as error:
                self._failures += 1
                if not await self._recover(error):
                    raise
            # The next run goes on where this one stopped: its last request is sent again.
            content = None
            history = list(self._conversation.messages)
            self._first = len(history)
            self._saved = 0

    async def _wait_for_servers(self) -> None:
        """Wait until the tools of all MCP servers are known. The loop would wait, too, but without a word."""
        for server in self._core.servers.servers:
            if not server.settled.is_set():
                self.emit(ServerAwaited(server.name))
                await server.settled.wait()
                self.emit(ServerAwaited(server.name, over=True))
        self._report_servers()

    async def _run_loop(
        self,
        translator: EventTranslator,
        content: str | Sequence[UserContent] | None,
        history: list[ModelMessage],
    ) -> None:
        """Run the agent once: with a message of the user, or without, to go on with the history."""
        core = self._core
        model = self._model.model
        stream = core.loop.agent.run_stream_events(
            content,
            message_history=history,
            model=model,
            model_settings=core.retries.make_settings(model),
            instructions=self._instructions,
            conversation_id=self._conversation.id,
            usage_limits=UsageLimits(request_limit=_MAX_MODEL_CALLS),
        )
        run = None
        try:
            async with stream as run:
                async for framework_event in run:
                    if not isinstance(framework_event, PartDeltaEvent):  # not in the middle of a text
                        self._report_servers()
                    for event in translator.translate(framework_event):
                        self.emit(event)
                    # The last message may still grow. It is saved when the next one has begun, or at the end. A piece
                    # of text begins none, and there are thousands of them.
                    if not isinstance(framework_event, PartDeltaEvent):
                        self._save(run.all_messages()[self._first : -1])
        except Exception:
            # An answer that broke off before a word of it was shown is not kept: the call may be made again.
            messages = _messages_of(run)
            if not translator.answer and not self._has_arrived:
                messages = _drop_response(messages)
            self._save(messages[self._first :])
            raise
        except BaseException:  # after the stream's teardown, which completes a message that was cut short
            self._save(_messages_of(run)[self._first :])
            raise
        self._save(_messages_of(run)[self._first :])

    def _plan_retry(self, error: Exception) -> PlannedRetry | None:
        retries = self._core.retries
        if self._is_silent(error):  # nothing came, and nothing says why
            is_first = self._failures == 1 and retries.attempts > 0
            return PlannedRetry("The provider ended its answer before it began", 1.0, 1) if is_first else None
        return retries.plan(error, self._failures)

    async def _recover(self, error: Exception) -> bool:
        """Prepare another try of the model call that failed, and return True if there is one."""
        assert self._translator is not None
        if self._translator.answer:
            return False  # a part of the answer was shown, and another try would begin it anew
        if is_too_long(error):
            return await self._shrink()

        planned = self._plan_retry(error)
        if planned is None:
            return False
        self.emit(Retrying(planned.reason, planned.seconds, self._failures, planned.of))
        await self._core.retries.wait(planned.seconds)
        return True

    async def _shrink(self) -> bool:
        """Make the conversation much shorter, because the provider found it too long. Once in a turn."""
        if self._is_shrunk:
            return False
        self._is_shrunk = True
        core = self._core
        messages = self._conversation.messages
        size = count_messages(messages, core.shelf.counter)
        result = await core.shorten(messages, room=Room(int(size * _SHRUNK), int(size * _SHRUNK)))
        if not result.is_shorter:
            return False
        self._report(describe_compaction(result))
        self._replace(result.messages)
        return True

    def _is_silent(self, error: Exception) -> bool:
        """Return True if the provider ended its answer without a word."""
        return type(error) is UnexpectedModelBehavior and not self._has_arrived

    def _save(self, messages: list[Any]) -> None:
        fresh = messages[self._saved :]
        self._saved += len(fresh)
        self._report(self._conversation.add(fresh))

    def _cut_short(self) -> None:
        if not self._saved:
            self._report(self._conversation.add_prompt(self._message))
        self._report(self._conversation.settle(self._answer_text()))

    def _leave_out_images(self) -> None:
        """Take the images of this message out of the conversation, so that the next message does not fail, too."""
        images = [attachment.image for attachment in self._attachments if attachment.image is not None]
        if images:
            self._report("The images are left out of the conversation from now on: the provider refused the message.")
            self._replace(leave_out_images(self._conversation.messages, images))

    def _answer_text(self) -> str:
        return "".join(self._translator.answer) if self._translator else ""

    # -- the window ---------------------------------------------------------------------------------------------------

    async def make_room(self, messages: Sequence[ModelMessage]) -> list[ModelMessage] | None:
        """Return the messages of the run in a shorter form if they fill the window, or else None.

        The saved conversation is replaced, too. If nothing makes them fit, the user learns what does, once in a turn.
        """
        core = self._core
        self._has_arrived = False
        context = measure_context(core, messages, by_skill=False)
        if not context.is_full or self._is_explained:
            return None

        result = await core.shorten(messages, room=context.room)
        if not result.fits:
            self._is_explained = True
            self._report(explain_full(measure_context(core, result.messages), core.model.name))
        if not result.is_shorter:
            return None
        self._report(describe_compaction(result))
        self._replace(result.messages)
        return result.messages

    def _replace(self, messages: list[ModelMessage]) -> None:
        """Save a shortened history, with all messages of this turn so far."""
        try:
            self._conversation.replace(messages)
        except SessionError as error:  # it is replaced in memory
            self._report(str(error))
        self._first = 0
        self._saved = len(messages)

    # -- the prompt ---------------------------------------------------------------------------------------------------

    def make_skill_prompt(self, turn: Turn, name: str, arguments: str) -> Prompt:
        """Return the text of the skill that the user invoked, with the arguments."""
        core = self._core
        try:
            skill = core.shelf.catalog.find(name).descriptor
        except SkillNotFoundError:
            reason = explain_unavailable(core.shelf, name, "/skills")
            if reason:
                raise reason from None
            raise
        if not skill.user_invocable:
            raise PolicyError(f"Skill {skill.name!r} is for the model alone: its author set `user-invocable: false`.")

        self.emit(SkillInvoked(skill.name, arguments))
        if skill.runs_apart:
            turn.invoked.add(skill.name)
            return Prompt(arguments, side_skill=name)
        self._model = core.find_model_for(skill, self.emit)
        return Prompt(apply_message(skill, turn.load(name, by="user").text, arguments, reach=name))

    # -- for the gate -------------------------------------------------------------------------------------------------

    @property
    def policy(self) -> Policy:
        return self._core.policy

    @property
    def confinement(self) -> Confinement:
        return self._core.confinement

    @property
    def scripts(self) -> ScriptRuns:
        return self._core.scripts

    async def ask(self, approval: Approval) -> Answer | None:
        """Return the user's answer, or None if there is no way to ask."""
        if self._core.approve is None:
            return None
        return await self._core.approve(approval)

    def keep_rule(self, rule: Rule) -> None:
        """Make a rule of the user's answer. The call goes on even if the rule cannot be stored."""
        rules = self._core.policy.rules
        assert rules is not None
        try:
            rules.add(rule)
        except SettingsError as error:
            self._report(f"The call was allowed, but the rule was not kept: {error}")

    def unreviewed_files(self, command: str) -> tuple[UnreviewedFile, ...]:
        """Return the skills' files that a command mentions and that the user has not approved as they are now."""
        return self._core.skills.unreviewed_files(command)

    @asynccontextmanager
    async def recording(self, change: Change | None = None) -> AsyncIterator[None]:
        """Keep what a tool changes while the block runs: one file, or whatever a command changes."""
        checkpoints = self._core.checkpoints
        if checkpoints is None:
            yield
            return
        try:
            if change is None:
                await to_thread.run_sync(checkpoints.before_command)
            else:
                await to_thread.run_sync(checkpoints.before_write, change.parts, change.new.encode())
            yield
        finally:
            if change is None:
                await to_thread.run_sync(checkpoints.after_command)
            else:
                await to_thread.run_sync(checkpoints.after_write, change.parts)

    def begin_hold(self) -> AgentHolds:
        """Hold back what the agent changes in repositories of the user's own. Raises TrustError."""
        return self._core.skills.begin_hold()

    def is_reviewed(self, path: str) -> bool:
        return self._core.skills.is_reviewed(path)

    def report_write(self, call: str, path: str, diff: str, *, confirmed: bool) -> None:
        """Report a file that a tool has written. `confirmed`: the user said yes to this very change."""
        self.emit(FileWritten(call, path, diff, confirmed))

    def record_write(self, change: Change, is_seen: bool) -> str:
        """Update the shelf after a write. Return what the model should know about it."""
        assert self._turn is not None
        write = self._core.skills.record_write(self._turn, change, is_seen)
        self._report_reload(write.delta)
        return write.note

    def redirect_load(self, arguments: dict[str, Any]) -> str | None:
        """Return what the model should do instead of loading a skill that runs apart; None for any other load."""
        name = arguments.get("skill_name")
        skill = self._core.shelf.catalog.get(name) if isinstance(name, str) else None
        if skill is None or arguments.get("reference") or not skill.runs_apart:
            return None
        if self._turn is not None and is_for_user_only(skill.name, self._turn):
            return None
        return (
            f"The skill {skill.name!r} runs in a conversation of its own. Call {RUN_SKILL}(skill_name, task) with the "
            "whole task: it sees nothing of this conversation, and its result is what you get."
        )

    def report_output(self, call: str, text: str) -> None:
        """Report output of a command that is running."""
        self.emit(ToolOutput(call, text))

    def deny_reference(self, skill: str, reference: str, reason: str) -> None:
        self.emit(ReferenceDenied(skill, reference, reason))

    def record_response(self, response: ModelResponse) -> None:
        """Add a response to the session's usage, and report it."""
        usage = usage_of(response)
        self._core.spent += usage
        self.emit(usage)
        self._has_arrived = True
        self._failures = 0
        was_empty = self._is_empty
        self._is_empty = not any(_says_something(part) for part in response.parts)
        if self._is_empty and not was_empty:
            self._report("The model sent an empty answer. It is asked once more.")
        if response.provider_name and not _has_end(response):
            self._report(
                "The answer may be cut short: the provider did not say that it was complete. What arrived is kept; "
                'say "go on" to continue.'
            )

    # -- reports ------------------------------------------------------------------------------------------------------

    def _report_loads(self) -> None:
        assert self._translator is not None
        for event in self._translator.new_loads():
            self.emit(event)

    def _report_servers(self) -> None:
        for notice in self._core.servers.take_notices():
            self._report(notice)

    def _report_reload(self, delta: Delta) -> None:
        if delta:
            self.emit(SkillsReloaded(delta.added, delta.changed, delta.removed))

    def _report(self, problem: str) -> None:
        if problem:
            self.emit(Notice(problem))


def describe_compaction(result: Compacted) -> str:
    """Say what made the conversation shorter, and by how much."""
    changes: list[str] = []
    if result.trimmed:
        changes.append(f"{count_noun(result.trimmed, 'long tool result')} cut")
    if result.summary:
        changes.append("a summary in place of the older messages")
    sentence = f"The conversation was shortened from {result.before:,} to {result.after:,} tokens"
    details = f" ({', '.join(changes)})" if changes else ""
    return f"{sentence}{details}. {result.problem}".rstrip()


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
