"""The gate in front of the tools: it owns the policy, asks the user, and makes the changes that were allowed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any

from anyio import to_thread
from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability, WrapToolExecuteHandler
from pydantic_ai.exceptions import ApprovalRequired, ToolFailed
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, ToolDefinition, ToolDenied

from skillshelf.adapters.threads import in_thread
from skillshelf.errors import (
    FileAccessError,
    PolicyError,
    ReferenceNotAllowedError,
    ReferenceNotFoundError,
    ReferenceUnreadableError,
    RepeatedCallError,
    SettingsError,
    SkillError,
    TrustError,
)
from skillshelf.files import FileChanged
from skillshelf.sandbox import GitGuard, Sandbox
from skillshelf.shelf import LOAD_TOOL, is_for_user_only
from skillshelf.shelf.workspace_skills import WorkspaceSkills
from skillshelf.skills import describe_denial
from skillshelf.trust import UnreviewedFile
from skillshelf_agent._commands import Shell
from skillshelf_agent._exchange import Exchange
from skillshelf_agent._jobs import Jobs
from skillshelf_agent._policy import Approval, Approve, Policy, PolicyDecision, Refusal
from skillshelf_agent._scripts import Scripts
from skillshelf_agent._tool_names import RUN_SCRIPT, RUN_SKILL, SHELL, WRITING
from skillshelf_agent.checkpoints import Checkpoints
from skillshelf_agent.events import FileWritten, ReferenceDenied, ToolOutput
from skillshelf_agent.filetools import Change, FileAccess, apply_change, propose_change
from skillshelf_agent.rules import Rule, offer_rule
from skillshelf_agent.servers import server_of

_APPROVAL = "approval"
"""The key under which a question travels with its call, so that the call that runs is compared with it."""
_MAX_WRITES = 3
"""How often a write is tried whose file another program changes meanwhile."""
_DECIDED = WRITING | {SHELL, RUN_SCRIPT}
"""The agent's own tools whose calls the policy decides about."""


class Gate(AbstractCapability[Exchange]):
    """Decides on every tool call, whichever capability provides the tool.

    It makes the changes of the file tools and runs commands and scripts itself: exactly what was allowed. By
    themselves, those tools do nothing.
    """

    id = "skillshelf_gate"

    def __init__(
        self,
        access: FileAccess,
        skills: WorkspaceSkills,
        scripts: Scripts,
        shell: Shell,
        jobs: Jobs,
        git: GitGuard,
        *,
        policy: Policy,
        approve: Approve | None,
        checkpoints: Checkpoints | None,
        find_sandbox: Callable[[], Sandbox],
    ) -> None:
        """`approve` asks the user. Without it, calls that need approval are refused."""
        self.policy = policy
        self.approve = approve
        self._access = access
        self._skills = skills
        self._scripts = scripts
        self._shell = shell
        self._jobs = jobs
        self._git = git
        self._checkpoints = checkpoints
        self._find_sandbox = find_sandbox

    # -- tools that the policy blocks ---------------------------------------------------------------------------------

    def find_withheld(self, definitions: Iterable[ToolDefinition]) -> frozenset[str]:
        """Return the names of those tools that the policy refuses whatever their arguments. They are not offered.

        The user may change the policy in the middle of a turn.
        """
        tools = self._skills.shelf.tools()
        asking = {tool.name for tool in tools if tool.permission == "ask"}
        decided = [
            definition.name
            for definition in definitions
            if definition.name in _DECIDED or definition.name in asking or server_of(definition)
        ]
        unasked = [tool.name for tool in tools if tool.permission != "ask"]
        return self.policy.find_blocked(decided, unasked)

    def leave_out_withheld(self, definitions: Iterable[ToolDefinition]) -> tuple[ToolDefinition, ...]:
        """Return the tools that the model is offered."""
        definitions = tuple(definitions)
        withheld = self.find_withheld(definitions)
        return tuple(definition for definition in definitions if definition.name not in withheld)

    def describe_withheld(self, definitions: Iterable[ToolDefinition]) -> str:
        """Return the sentences for the model about tools that it does not have; empty if it has all.

        Tools of MCP servers are not named: nothing else speaks of them.
        """
        names = self.find_withheld(definition for definition in definitions if not server_of(definition))
        if not names:
            return ""
        return (
            f"The user's policy blocks these tools, so you do not have them: {', '.join(sorted(names))}. Where a skill "
            "or a task needs one, say what you would do with it. Only the user can change the policy."
        )

    async def before_model_request(
        self, ctx: RunContext[Exchange], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Offer the model only tools that the policy may allow. A call of another one is refused all the same."""
        parameters = request_context.model_request_parameters
        offered = list(self.leave_out_withheld(parameters.function_tools))
        return replace(request_context, model_request_parameters=replace(parameters, function_tools=offered))

    # -- a call -------------------------------------------------------------------------------------------------------

    async def wrap_tool_execute(
        self,
        ctx: RunContext[Exchange],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: dict[str, Any],
        handler: WrapToolExecuteHandler,
    ) -> Any:
        """Run a call, or return the refusal. pydantic-ai gives a ToolDenied the outcome "denied"."""
        history = ctx.deps.calls
        if not ctx.tool_call_approved:
            refusal = await self._check_repetition(ctx.deps, call.tool_name, args)
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
                ctx.deps.emit(ReferenceDenied(error.skill, error.reference, str(error)))
            raise
        history.add(call.tool_name, args, result)
        return result

    async def _run(
        self, ctx: RunContext[Exchange], tool_def: ToolDefinition, args: dict[str, Any], handler: WrapToolExecuteHandler
    ) -> Any:
        server = server_of(tool_def)
        if server:
            return await self._call_server(ctx, Approval(tool_def.name, args, server=server), handler)
        tool = tool_def.name
        if tool in WRITING:
            return await self._write(ctx, tool, args)
        if tool == SHELL:
            return await self._run_command(ctx, args)
        if tool == RUN_SCRIPT:
            return await self._run_script(ctx, args)
        denial = None if ctx.tool_call_approved else self.policy.find_denial(tool, args)
        if denial is not None:
            return self._refuse(tool, PolicyDecision("refuse", denial))
        if tool == LOAD_TOOL and not ctx.deps.is_side:
            redirection = self._redirect_load(ctx.deps, args)
            if redirection is not None:
                return redirection
        return await handler(args)

    def _redirect_load(self, exchange: Exchange, arguments: dict[str, Any]) -> str | None:
        """Return what the model should do instead of loading a skill that runs apart; None for any other load."""
        name = arguments.get("skill_name")
        skill = self._skills.shelf.catalog.get(name) if isinstance(name, str) else None
        if skill is None or arguments.get("reference") or not skill.runs_apart:
            return None
        if is_for_user_only(skill.name, exchange.turn):
            return None
        return (
            f"The skill {skill.name!r} runs in a conversation of its own. Call {RUN_SKILL}(skill_name, task) with the "
            "whole task: it sees nothing of this conversation, and its result is what you get."
        )

    async def _call_server(self, ctx: RunContext[Exchange], question: Approval, handler: WrapToolExecuteHandler) -> Any:
        """Call a tool of an MCP server. What the server says about its own harmlessness counts for nothing."""
        if not ctx.tool_call_approved:
            refusal = self._check_policy(question)
            if refusal:
                return refusal
        async with self._at_work(), self._recording():
            return await handler(question.arguments)

    async def _check_repetition(self, exchange: Exchange, tool: str, args: dict[str, Any]) -> ToolDenied | None:
        """Ask whether a model that goes in circles may go on. Raises RepeatedCallError if not."""
        repetition = exchange.calls.find_repetition(tool, args)
        if repetition is None:
            return None

        if self.approve is None:
            raise RepeatedCallError(f"{repetition} The turn was stopped at {tool}: it was going in circles.")
        answer = await self.approve(Approval(tool, args, repetition=repetition))
        if answer == "no":
            raise RepeatedCallError(f"{repetition} The turn was stopped. Say what to do instead.")
        exchange.calls.clear()
        if isinstance(answer, Refusal):
            return ToolDenied(f"{repetition} {describe_denial(tool, answer.reason)}")
        return None

    async def _run_command(self, ctx: RunContext[Exchange], args: dict[str, Any]) -> Any:
        """Run a command. The question to the user says that it gets the network; without one, the policy decides."""
        network = ctx.tool_call_approved
        if not ctx.tool_call_approved:
            unreviewed = await self._find_unreviewed(args)
            sandbox = await to_thread.run_sync(self._find_sandbox)
            question = Approval(SHELL, args, unreviewed=unreviewed, sandbox=sandbox)
            verdict = self._decide(question)
            refusal = self._enforce(verdict, question)
            if refusal:
                return refusal
            network = verdict.network
        if args.get("background"):
            # Checkpoints don't cover it: its changes can't be told from those of later turns.
            return await self._jobs.start(str(args["command"]), network=network, at_work=self._at_work)
        async with self._at_work(), self._recording(), self._reporting_git(ctx.deps):
            return await self._shell.run(args, _report_output(ctx), network=network)

    async def _run_script(self, ctx: RunContext[Exchange], args: dict[str, Any]) -> Any:
        """Run a script of a skill: the very copy that the user was asked about."""
        try:
            allowed = _find_allowed(ctx)
            script = allowed.script if allowed else None
            is_allowed = script is not None
            if script is None:
                script = await to_thread.run_sync(self._scripts.find, args)
            # Before the question, which would be in vain if the packages cannot be installed.
            needs_packages = self._scripts.needs_packages(script)
            if not is_allowed:
                refusal = self._check_policy(Approval(RUN_SCRIPT, args, script=script))
                if refusal:
                    return refusal
            if needs_packages:
                answer = await self._decide_or_ask(ctx.deps, self._scripts.make_packages_question(script))
                if isinstance(answer, ToolDenied):
                    return answer
            run = await self._scripts.prepare(script)
        except SkillError as error:
            raise ToolFailed(str(error)) from error

        async with self._at_work(), self._recording(), self._reporting_git(ctx.deps):
            return await self._scripts.run(run, _report_output(ctx))

    async def _find_unreviewed(self, args: dict[str, Any]) -> tuple[UnreviewedFile, ...]:
        """Return the files of skills that a command mentions and that the user has not approved as they are."""
        if self.policy.mode in ("yolo", "read-only"):
            return ()
        return await to_thread.run_sync(self._skills.unreviewed_files, str(args.get("command", "")))

    async def _write(self, ctx: RunContext[Exchange], tool: str, args: dict[str, Any]) -> Any:
        """Write a file, if the change that the call makes now is the one that was allowed."""
        exchange = ctx.deps
        allowed = _find_allowed(ctx)
        for _ in range(_MAX_WRITES):
            change = await self._propose(tool, args)
            question = Approval(tool, args, change.diff, path=change.path, old_sha256=change.old_sha256)
            refusal = None
            if allowed is None:
                refusal = self._check_policy(question)
            elif not _is_same_change(allowed, question):
                answer = await self._ask_again(exchange, question)
                if isinstance(answer, ToolDenied):
                    return answer
                allowed = answer
            if refusal:
                return refusal

            was_reviewed = await to_thread.run_sync(self._skills.is_reviewed, change.path)
            try:
                async with self._at_work():
                    async with self._recording(change):
                        await self._apply(change)
                    is_confirmed = allowed is not None
                    exchange.emit(FileWritten(ctx.tool_call_id or "", change.shown, change.diff, is_confirmed))
                    is_seen = was_reviewed and allowed is not None and allowed.reviewed
                    write = await to_thread.run_sync(
                        self._skills.record_write, exchange.turn, change.path, change.new, is_seen
                    )
            except FileChanged:
                continue
            exchange.report_reload(write.delta)
            return f"{change.result}\n\n{write.note}" if write.note else change.result
        raise ToolFailed("The file was not written: another program keeps changing it. Read it again before you retry.")

    async def _propose(self, tool: str, args: dict[str, Any]) -> Change:
        try:
            return await in_thread(lambda: propose_change(self._access, tool, args), "files")
        except FileAccessError as error:
            raise ToolFailed(str(error)) from None

    async def _apply(self, change: Change) -> None:
        try:
            await in_thread(lambda: apply_change(self._access, change), "files")
        except FileAccessError as error:
            raise ToolFailed(str(error)) from None

    @asynccontextmanager
    async def _at_work(self) -> AsyncIterator[None]:
        """Have the user review what a call changes in a repository of their own, unless they see the change."""
        work = ExitStack()
        try:
            await to_thread.run_sync(work.enter_context, self._skills.agent_at_work())
        except TrustError as error:
            raise ToolFailed(str(error)) from None
        try:
            yield
        finally:
            await to_thread.run_sync(work.close)

    @asynccontextmanager
    async def _reporting_git(self, exchange: Exchange) -> AsyncIterator[None]:
        """Tell the user what a program has done to Git directories. The text for the model is folded on the screen."""
        try:
            yield
        finally:
            for notice in self._git.take_notices():
                exchange.report(notice)

    @asynccontextmanager
    async def _recording(self, change: Change | None = None) -> AsyncIterator[None]:
        """Keep what a tool changes while the block runs: one file, or whatever a command changes."""
        checkpoints = self._checkpoints
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

    # -- policy and approval ------------------------------------------------------------------------------------------

    def _check_policy(self, question: Approval) -> ToolDenied | None:
        """Return None if the policy allows the call, or the refusal. Raises ApprovalRequired to have the user asked."""
        return self._enforce(self._decide(question), question)

    def _enforce(self, verdict: PolicyDecision, question: Approval) -> ToolDenied | None:
        if verdict.decision == "refuse":
            return self._refuse(question.tool, verdict)
        # "always" and rules are about the script as it was.
        if verdict.decision == "ask" or question.unreviewed:
            raise ApprovalRequired(metadata={_APPROVAL: question})
        return None

    def _decide(self, question: Approval) -> PolicyDecision:
        return self.policy.decide(
            question.tool,
            question.arguments,
            question.path,
            question.subject,
            is_sandboxed=bool(question.sandbox),
        )

    async def handle_deferred_tool_calls(
        self, ctx: RunContext[Exchange], *, requests: DeferredToolRequests
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
                answer = await self._decide_or_ask(ctx.deps, question)
            elif question.tool in WRITING and self._decide(question).decision == "allow":
                # Allowed by the answer to a call before it. Without its question, the policy decides when it runs.
                answers[call.tool_call_id] = True
                continue
            else:
                answer = await self._ask(ctx.deps, question)
            if isinstance(answer, ToolDenied):
                ctx.deps.calls.add(question.tool, question.arguments, answer)
                answers[call.tool_call_id] = answer
                continue
            answers[call.tool_call_id] = True
            questions[call.tool_call_id] = {_APPROVAL: answer}
        return requests.build_results(approvals=answers, metadata=questions)

    async def _ask_again(self, exchange: Exchange, question: Approval) -> Approval | ToolDenied:
        """Ask about a change that is not the one that was allowed."""
        answer = await self._ask(exchange, replace(question, repeated=True))
        if isinstance(answer, Approval):
            return answer
        return ToolDenied(f"The file changed after this call was allowed, so it was not written. {answer.message}")

    async def _decide_or_ask(self, exchange: Exchange, question: Approval) -> Approval | ToolDenied:
        verdict = self._decide(question)
        if verdict.decision == "allow":
            return question
        if verdict.decision == "refuse":
            return self._refuse(question.tool, verdict)
        return await self._ask(exchange, question)

    async def _ask(self, exchange: Exchange, question: Approval) -> Approval | ToolDenied:
        """Return the question as the user answered it if the call may go ahead, or else the refusal."""
        tool = question.tool
        if self.approve is None:
            return self._refuse_unasked(self._offer_rule(question))
        if tool in (SHELL, RUN_SCRIPT):
            sandbox = await to_thread.run_sync(self._find_sandbox)
            if question.script is not None and not question.script.network:
                sandbox = sandbox.without_network()
            question = replace(question, sandbox=sandbox)
        question = self._offer_rule(question)

        answer = await self.approve(question)
        if isinstance(answer, Refusal):
            return ToolDenied(describe_denial(tool, answer.reason))
        if answer == "no":
            return ToolDenied(describe_denial(tool))
        if answer == "always" and question.can_be_lasting:
            self.policy.allow_always(tool, question.subject)
        if answer == "rule" and question.offered_rule is not None:
            exchange.report(await to_thread.run_sync(self._keep_rule, question.offered_rule))
        return replace(question, reviewed=answer == "reviewed")

    def _refuse_unasked(self, question: Approval) -> ToolDenied:
        """Refuse a call because there is nobody to ask, and name what would allow it."""
        ways = ["--policy yolo for everything"]
        if question.tool in WRITING and not question.changes_instructions:
            ways.insert(0, "--policy auto-edit for files")
        if question.offered_rule is not None:
            ways.insert(0, f"`/approve {question.offered_rule}`")
        return ToolDenied(
            f"{question.tool} needs the user's approval, and nobody can be asked here. The user can allow it "
            f"beforehand: {', '.join(ways)}. Do without it, or say what you would have done."
        )

    def _offer_rule(self, question: Approval) -> Approval:
        """Add the rule that would answer such questions, unless no rule can."""
        rules = self.policy.rules
        if rules is None or not question.can_be_lasting or question.unreviewed:
            return question
        call = rules.describe_call(question.tool, question.arguments, question.path)
        return replace(question, offered_rule=offer_rule(call))

    def _keep_rule(self, rule: Rule) -> str:
        """Make a rule of the user's answer. Return the problem if it cannot be stored; the call goes on even then."""
        assert self.policy.rules is not None
        try:
            self.policy.rules.add(rule)
        except SettingsError as error:
            return f"The call was allowed, but the rule was not kept: {error}"
        return ""

    def _refuse(self, tool: str, verdict: PolicyDecision) -> ToolDenied:
        if verdict.rule is not None:
            return ToolDenied(f"{tool} is not allowed: a rule of the user's denies it ({verdict.rule.target}).")
        mode = self.policy.mode
        return ToolDenied(
            f"{tool} is not allowed: the policy is {mode}. Reading works; only the user can change the policy."
        )


def _report_output(ctx: RunContext[Exchange]) -> Callable[[str], None]:
    """Return where a program that a call runs reports its output."""
    return lambda text: ctx.deps.emit(ToolOutput(ctx.tool_call_id or "", text))


def _find_skill_error(failure: BaseException) -> SkillError | None:
    """Return the error of ours that pydantic-ai has wrapped in its own, if there is one."""
    error: BaseException | None = failure
    while error is not None and not isinstance(error, SkillError):
        error = error.__cause__
    return error


def _find_allowed(ctx: RunContext[Exchange]) -> Approval | None:
    """Return the question that the user answered with yes before this call, if there was one."""
    if not ctx.tool_call_approved:
        return None
    question = (ctx.tool_call_metadata or {}).get(_APPROVAL)
    return question if isinstance(question, Approval) else None


def _is_same_change(allowed: Approval, now: Approval) -> bool:
    return (allowed.path, allowed.old_sha256, allowed.arguments) == (now.path, now.old_sha256, now.arguments)
