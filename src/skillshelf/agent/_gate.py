"""The gate in front of the tools: it asks the user, and reports to the shelf what was written."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability, WrapToolExecuteHandler
from pydantic_ai.exceptions import ApprovalRequired, ToolFailed
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, ToolDefinition, ToolDenied

from skillshelf.agent._output_reports import reporting_output
from skillshelf.agent._policy import Approval, Refusal, Verdict
from skillshelf.agent._tool_names import RUN_SCRIPT, SHELL, WRITING
from skillshelf.agent._withheld import WithheldTools
from skillshelf.agent.filetools import Change, FileAccess, permit, propose_change
from skillshelf.agent.rules import offer_rule
from skillshelf.agent.scripts import permit_run
from skillshelf.agent.servers import server_of
from skillshelf.discovery import LOAD_TOOL
from skillshelf.errors import (
    FileAccessError,
    PolicyError,
    ReferenceNotAllowedError,
    ReferenceNotFoundError,
    ReferenceUnreadableError,
    RepeatedCallError,
    SkillError,
    TrustError,
)
from skillshelf.files import FileChanged
from skillshelf.tools import describe_denial

if TYPE_CHECKING:
    from skillshelf.agent._exchange import Exchange
    from skillshelf.agent._skills import AgentHolds
    from skillshelf.trust import UnreviewedFile

_APPROVAL = "approval"
"""The key under which a question travels with its call, so that the call that runs is compared with it."""
_MAX_WRITES = 3
"""How often a write is tried whose file another program changes meanwhile."""


class Gate(AbstractCapability[Any]):
    """Decides on every tool call, whichever capability provides the tool."""

    id = "skillshelf_gate"

    def __init__(self, access: FileAccess, get_exchange: Callable[[], Exchange], withheld: WithheldTools) -> None:
        """`get_exchange` returns the exchange in progress."""
        self._access = access
        self._get_exchange = get_exchange
        self._withheld = withheld

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Offer the model only tools that the policy may allow. A call of another one is refused all the same."""
        parameters = request_context.model_request_parameters
        offered = list(self._withheld.leave_out(parameters.function_tools))
        return replace(request_context, model_request_parameters=replace(parameters, function_tools=offered))

    async def wrap_tool_execute(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: dict[str, Any],
        handler: WrapToolExecuteHandler,
    ) -> Any:
        """Run a call, or return the refusal. pydantic-ai gives a ToolDenied the outcome "denied"."""
        history = self._get_exchange().calls
        if not ctx.tool_call_approved:
            refusal = await self._check_repetition(call.tool_name, args)
            if refusal:
                return refusal
        try:
            result = await self._run(ctx, tool_def, args, handler)
        except ApprovalRequired:
            raise
        except Exception as failure:
            history.add(call.tool_name, args, str(failure))
            error = _find_skill_error(failure)
            if isinstance(error, PolicyError):  # the skill's own policy blocks the tool
                return ToolDenied(str(error))
            if isinstance(error, ReferenceNotAllowedError | ReferenceNotFoundError | ReferenceUnreadableError):
                self._get_exchange().deny_reference(error.skill, error.reference, str(error))
            raise
        history.add(call.tool_name, args, result)
        return result

    async def _run(
        self, ctx: RunContext[Any], tool_def: ToolDefinition, args: dict[str, Any], handler: WrapToolExecuteHandler
    ) -> Any:
        server = server_of(tool_def)
        if server:
            return await self._call_server(ctx, Approval(tool_def.name, args, server=server), handler)
        tool = tool_def.name
        if tool in WRITING:
            return await self._write(ctx, tool, args, handler)
        if tool == SHELL:
            return await self._run_command(ctx, args, handler)
        if tool == RUN_SCRIPT:
            return await self._run_script(ctx, args, handler)
        denial = None if ctx.tool_call_approved else self._get_exchange().policy.find_denial(tool, args)
        if denial is not None:
            return self._refuse(tool, Verdict("refuse", denial))
        if tool == LOAD_TOOL:
            redirection = self._get_exchange().redirect_load(args)
            if redirection is not None:
                return redirection
        return await handler(args)

    async def _call_server(self, ctx: RunContext[Any], question: Approval, handler: WrapToolExecuteHandler) -> Any:
        """Call a tool of an MCP server. What the server says about its own harmlessness counts for nothing."""
        if not ctx.tool_call_approved:
            refusal = self._check_policy(question)
            if refusal:
                return refusal
        hold = await self._begin_hold()
        try:
            async with self._get_exchange().recording():
                return await handler(question.arguments)
        finally:
            await to_thread.run_sync(hold.end)

    async def _check_repetition(self, tool: str, args: dict[str, Any]) -> ToolDenied | None:
        """Ask whether a model that goes in circles may go on. Raises RepeatedCallError if not."""
        exchange = self._get_exchange()
        repetition = exchange.calls.find_repetition(tool, args)
        if repetition is None:
            return None

        answer = await exchange.ask(Approval(tool, args, repetition=repetition))
        if answer is None:
            raise RepeatedCallError(f"{repetition} The turn was stopped at {tool}: it was going in circles.")
        if answer == "no":
            raise RepeatedCallError(f"{repetition} The turn was stopped. Say what to do instead.")
        exchange.calls.clear()
        if isinstance(answer, Refusal):
            return ToolDenied(f"{repetition} {describe_denial(tool, answer.reason)}")
        return None

    async def _run_command(self, ctx: RunContext[Any], args: dict[str, Any], handler: WrapToolExecuteHandler) -> Any:
        if not ctx.tool_call_approved:
            unreviewed = await self._find_unreviewed(args)
            confinement = await to_thread.run_sync(lambda: self._get_exchange().confinement)
            refusal = self._check_policy(Approval(SHELL, args, unreviewed=unreviewed, confinement=confinement))
            if refusal:
                return refusal
        hold = await self._begin_hold()
        try:
            with self._reporting_output(ctx):
                async with self._get_exchange().recording():
                    return await handler(args)
        except OSError as error:
            raise ToolFailed(f"The command could not be started: {error.strerror or error}.") from error
        finally:
            await to_thread.run_sync(hold.end)

    async def _run_script(self, ctx: RunContext[Any], args: dict[str, Any], handler: WrapToolExecuteHandler) -> Any:
        """Run a script of a skill: the very copy that the user was asked about."""
        scripts = self._get_exchange().scripts
        try:
            allowed = _find_allowed(ctx)
            script = allowed.script if allowed else None
            is_allowed = script is not None
            if script is None:
                script = await to_thread.run_sync(scripts.find, args)
            # Before the question, which would be in vain if the packages cannot be installed.
            needs_packages = scripts.needs_packages(script)
            if not is_allowed:
                refusal = self._check_policy(Approval(RUN_SCRIPT, args, script=script))
                if refusal:
                    return refusal
            if needs_packages:
                answer = await self._decide_or_ask(scripts.make_packages_question(script))
                if isinstance(answer, ToolDenied):
                    return answer
            run = await scripts.prepare(script)
        except SkillError as error:
            raise ToolFailed(str(error)) from error

        hold = await self._begin_hold()
        try:
            with self._reporting_output(ctx), permit_run(run):
                async with self._get_exchange().recording():
                    return await handler(args)
        finally:
            await to_thread.run_sync(hold.end)

    def _reporting_output(self, ctx: RunContext[Any]) -> AbstractContextManager[None]:
        exchange = self._get_exchange()
        return reporting_output(lambda text: exchange.report_output(ctx.tool_call_id or "", text))

    async def _find_unreviewed(self, args: dict[str, Any]) -> tuple[UnreviewedFile, ...]:
        """Return the files of skills that a command mentions and that the user has not approved as they are."""
        exchange = self._get_exchange()
        if exchange.policy.mode in ("yolo", "read-only"):
            return ()
        return await to_thread.run_sync(exchange.unreviewed_files, str(args.get("command", "")))

    async def _write(
        self, ctx: RunContext[Any], tool: str, args: dict[str, Any], handler: WrapToolExecuteHandler
    ) -> Any:
        """Run a call that writes a file, if the change it makes now is the one that was allowed."""
        allowed = _find_allowed(ctx)
        for _ in range(_MAX_WRITES):
            change = await self._propose(tool, args)
            question = Approval(tool, args, change.diff, path=change.path, old_sha256=change.old_sha256)
            refusal = None
            if allowed is None:
                refusal = self._check_policy(question)
            elif not _is_same_change(allowed, question):
                answer = await self._ask_again(question)
                if isinstance(answer, ToolDenied):
                    return answer
                allowed = answer
            if refusal:
                return refusal

            exchange = self._get_exchange()
            was_reviewed = await to_thread.run_sync(exchange.is_reviewed, change.path)
            hold = await self._begin_hold()
            try:
                async with exchange.recording(change):
                    with permit(change):
                        result = await handler(args)
                is_confirmed = allowed is not None
                exchange.report_write(ctx.tool_call_id or "", change.shown, question.diff, confirmed=is_confirmed)
                is_seen = was_reviewed and allowed is not None and allowed.reviewed
                note = await to_thread.run_sync(exchange.record_write, change, is_seen)
            except FileChanged:
                continue
            finally:
                await to_thread.run_sync(hold.end)
            return f"{result}\n\n{note}" if note else result
        raise ToolFailed("The file was not written: another program keeps changing it. Read it again before you retry.")

    async def _begin_hold(self) -> AgentHolds:
        """Hold back what the call changes in a repository of the user's own, unless the user sees the change."""
        try:
            return await to_thread.run_sync(self._get_exchange().begin_hold)
        except TrustError as error:
            raise ToolFailed(str(error)) from None

    async def _propose(self, tool: str, args: dict[str, Any]) -> Change:
        try:
            return await to_thread.run_sync(propose_change, self._access, tool, args)
        except FileAccessError as error:
            raise ToolFailed(str(error)) from None

    def _check_policy(self, question: Approval) -> ToolDenied | None:
        """Return None if the policy allows the call, or the refusal. Raises ApprovalRequired to have the user asked."""
        verdict = self._decide(question)
        if verdict.decision == "refuse":
            return self._refuse(question.tool, verdict)
        # "always" and rules are about the script as it was.
        if verdict.decision == "ask" or question.unreviewed:
            raise ApprovalRequired(metadata={_APPROVAL: question})
        return None

    def _decide(self, question: Approval) -> Verdict:
        return self._get_exchange().policy.decide(
            question.tool,
            question.arguments,
            question.path,
            question.subject,
            is_sandboxed=bool(question.confinement),
        )

    async def handle_deferred_tool_calls(
        self, ctx: RunContext[Any], *, requests: DeferredToolRequests
    ) -> DeferredToolResults:
        answers: dict[str, bool | ToolDenied] = {}
        questions: dict[str, dict[str, Any]] = {}
        # One after the other: the user answers one question at a time.
        for call in requests.approvals:
            metadata = requests.metadata.get(call.tool_call_id, {})
            question = metadata.get(_APPROVAL)
            if question is None:
                # Tools of code skills raise ApprovalRequired by themselves, and give their arguments alone.
                question = Approval(call.tool_name, metadata.get("arguments", {}))
                answer = await self._decide_or_ask(question)
            else:
                answer = await self._ask(question)
            if isinstance(answer, ToolDenied):
                self._get_exchange().calls.add(question.tool, question.arguments, answer)
                answers[call.tool_call_id] = answer
                continue
            answers[call.tool_call_id] = True
            questions[call.tool_call_id] = {_APPROVAL: answer}
        return requests.build_results(approvals=answers, metadata=questions)

    async def _ask_again(self, question: Approval) -> Approval | ToolDenied:
        """Ask about a change that is not the one that was allowed."""
        answer = await self._ask(replace(question, repeated=True))
        if isinstance(answer, Approval):
            return answer
        return ToolDenied(f"The file changed after this call was allowed, so it was not written. {answer.message}")

    async def _decide_or_ask(self, question: Approval) -> Approval | ToolDenied:
        verdict = self._decide(question)
        if verdict.decision == "allow":
            return question
        if verdict.decision == "refuse":
            return self._refuse(question.tool, verdict)
        return await self._ask(question)

    async def _ask(self, question: Approval) -> Approval | ToolDenied:
        """Return the question as the user answered it if the call may go ahead, or else the refusal."""
        tool = question.tool
        exchange = self._get_exchange()
        if tool in (SHELL, RUN_SCRIPT):
            confinement = await to_thread.run_sync(lambda: exchange.confinement)
            if question.script is not None and not question.script.network:
                confinement = confinement.without_network()
            question = replace(question, confinement=confinement)
        question = self._offer_rule(question)

        answer = await exchange.ask(question)
        if answer is None:
            return ToolDenied(
                f"{tool} needs the user's approval, and there is no way to ask for it here. Do without it, or say what "
                "you would have done. (The user can allow it beforehand: --policy auto-edit for files, yolo for "
                "everything.)"
            )
        if isinstance(answer, Refusal):
            return ToolDenied(describe_denial(tool, answer.reason))
        if answer == "no":
            return ToolDenied(describe_denial(tool))
        if answer == "always" and question.can_be_lasting:
            exchange.policy.allow_always(tool, question.subject)
        if answer == "rule" and question.offered_rule is not None:
            await to_thread.run_sync(exchange.keep_rule, question.offered_rule)
        return replace(question, reviewed=answer == "reviewed")

    def _offer_rule(self, question: Approval) -> Approval:
        """Add the rule that would answer such questions, unless no rule can."""
        rules = self._get_exchange().policy.rules
        if rules is None or not question.can_be_lasting or question.unreviewed:
            return question
        call = rules.describe_call(question.tool, question.arguments, question.path)
        return replace(question, offered_rule=offer_rule(call))

    def _refuse(self, tool: str, verdict: Verdict) -> ToolDenied:
        if verdict.rule is not None:
            return ToolDenied(f"{tool} is not allowed: a rule of the user's denies it ({verdict.rule.target}).")
        mode = self._get_exchange().policy.mode
        return ToolDenied(
            f"{tool} is not allowed: the policy is {mode}. Reading works; only the user can change the policy."
        )

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        self._get_exchange().record_response(response)
        return response


def _find_skill_error(failure: BaseException) -> SkillError | None:
    """Return the error of ours that pydantic-ai has wrapped in its own, if there is one."""
    error: BaseException | None = failure
    while error is not None and not isinstance(error, SkillError):
        error = error.__cause__
    return error


def _find_allowed(ctx: RunContext[Any]) -> Approval | None:
    """Return the question that the user answered with yes before this call, if there was one."""
    if not ctx.tool_call_approved:
        return None
    question = (ctx.tool_call_metadata or {}).get(_APPROVAL)
    return question if isinstance(question, Approval) else None


def _is_same_change(allowed: Approval, now: Approval) -> bool:
    return (allowed.path, allowed.old_sha256, allowed.arguments) == (now.path, now.old_sha256, now.arguments)
