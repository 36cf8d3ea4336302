"""`skillshelf chat`: the agent, in a terminal or in a pipe."""

import argparse
import gc
import os
import stat
import sys
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from skillshelf.cli import (
    CommandError,
    Output,
    Parser,
    add_listing_options,
    attach_skills,
    complain,
    find_packages,
    locate_workspace,
)
from skillshelf.errors import MissingExtraError, SettingsError
from skillshelf.settings import load_choices
from skillshelf.skills import AsksUser, BaseSkill
from skillshelf.sources.workspace import Workspace
from skillshelf.text import count_noun
from skillshelf.text.streams import keep_output_clean
from skillshelf_agent import Settings, load_settings, require_model

if TYPE_CHECKING:
    from skillshelf_agent import AgentCore
    from skillshelf_agent.servers import ToolServers
    from skillshelf_agent.sessions import Sessions
    from skillshelf_agent.terminal import OpenedAgent, User

EXAMPLES = """
  skillshelf chat                                     talk in the terminal
  skillshelf chat "why does the build fail?"          talk in the terminal, beginning with this message
  skillshelf chat --model anthropic:claude-sonnet-5-5 choose the model
  skillshelf chat --base-url http://localhost:11434/v1 --model qwen3      your own server, such as Ollama
  skillshelf chat -p "/skills:release-notes v1.2"     send one message and print the answer
  git diff | skillshelf chat -p "review this"         piped text follows the message
  skillshelf chat -p "fix the typo" --policy auto-edit --json
  skillshelf chat --with weather                      attach a bundled skill
  skillshelf chat --disclosure full                   put the instructions of all skills into every call
"""
_NO_SERVERS = "none"
_WITHOUT_CURSOR = ("dumb", "unknown")
"""Types of terminals (TERM) that only print, such as a shell inside of an editor."""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("message", nargs="?", metavar="MESSAGE", help="the first message")
    parser.add_argument("-p", "--prompt", metavar="TEXT", help="answer this message and exit")
    parser.add_argument("-m", "--model", metavar="PROVIDER:MODEL", help="the model")
    parser.add_argument("--base-url", metavar="URL", help="the address of an OpenAI-compatible server")
    parser.add_argument("--policy", metavar="MODE", help="ask (default), read-only, auto-edit or yolo")
    add_listing_options(parser)
    parser.add_argument(
        "--resume", nargs="?", const="", metavar="ID", help="continue a session, by default one that you choose"
    )
    parser.add_argument("-c", "--continue", dest="last", action="store_true", help="continue the latest session")
    parser.add_argument("--trust-workspace", action="store_true", help="use this folder's skills without review")
    parser.add_argument(
        "--mcp",
        action="append",
        metavar="NAME",
        help="use this MCP server of your settings (repeatable; default: all that are enabled; `none` for none)",
    )
    parser.add_argument("--no-sandbox", action="store_true", help="let commands write outside the folder too")
    parser.add_argument("--frozen", action="store_true", help="fail if a skill here is not exactly as approved")


def run(args: argparse.Namespace, out: Output) -> int:
    is_interactive = sys.stdin.isatty() and sys.stdout.isatty() and not args.json and args.prompt is None
    if args.message is not None and args.prompt is not None:
        raise CommandError(
            "there are two messages.", "Give one: with -p it is answered once, without -p it starts a chat."
        )
    terminal_type = os.environ.get("TERM", "")
    if is_interactive and terminal_type in _WITHOUT_CURSOR:
        raise CommandError(
            f"this terminal cannot move the cursor (TERM={terminal_type}), and a chat needs that.",
            'Ask with `skillshelf chat -p "MESSAGE"`, and go on with -c -p, or use another terminal.',
        )

    # Importing the agent takes seconds, so everything that can be wrong without it is looked at before: the words of
    # the command first, and then what this machine lacks for them.
    attached = attach_skills(args)
    settings = _load_settings(args, {})
    if not _resumes(args):  # a session knows its model
        require_model(settings)
    workspace = locate_workspace(args)
    if is_interactive:
        import asyncio

        from skillshelf_agent.terminal import run_terminal

        def open_agent(user: "User") -> "OpenedAgent":
            return _open_agent(args, workspace, attached, user)

        return asyncio.run(run_terminal(open_agent, out.console, settings, args.message or ""))
    return _answer_once(_open_agent(args, workspace, attached), args)


def _answer_once(opened: "OpenedAgent", args: argparse.Namespace) -> int:
    import asyncio

    from skillshelf_agent.terminal import Pipe

    typed = args.message if args.prompt is None else args.prompt
    try:
        message = _read_message(typed)
    except UnicodeDecodeError as error:
        hint = "Convert it first, or name the file in the message."
        raise CommandError("the piped input is not UTF-8 text.", hint) from error
    if not message.strip():
        raise CommandError("there is no message.", "Give one with -p, or pipe it in.")
    core = opened.core
    if core.model.note:
        complain(core.model.note)
    pipe = Pipe(core, opened.settings, as_json=args.json, options=opened.options)
    answering = pipe.run(message, notices=_describe_pending_skills(core), typed=typed or "")
    return asyncio.run(_run_with_servers(core, answering))


async def _run_with_servers(core: "AgentCore", chat: "Coroutine[Any, Any, int]") -> int:
    """Run a chat with the user's MCP servers and background commands, which end with it."""
    async with core.servers, core.jobs:
        return await chat


def _resumes(args: argparse.Namespace) -> bool:
    return args.last or args.resume is not None


def _load_settings(args: argparse.Namespace, recalled: Mapping[str, str]) -> Settings:
    """Return the settings for these options, which win over those that a session was used with.

    Raises SettingsError.
    """
    if args.frozen and args.trust_workspace:
        raise SettingsError(
            "--frozen asks for the skills as approved, --trust-workspace for the skills as they are. Give one of them."
        )
    return load_settings({**recalled, **_list_given(args), "packages": find_packages(args)})


def _list_given(args: argparse.Namespace) -> dict[str, object]:
    return {name: value for name, value in vars(args).items() if value is not None}


@contextmanager
def _without_collection() -> Iterator[None]:
    """Keep the garbage collector away from what is made inside, now and later.

    The imports of the agent make half a million objects that stay. Looking through them while they grow takes 0.25 s of
    1.4 s, and once more at the end as long.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


@_without_collection()
def _open_agent(
    args: argparse.Namespace,
    workspace: Workspace,
    attached: Sequence[BaseSkill],
    user: "User | None" = None,
) -> "OpenedAgent":
    """Return the agent for these options, after reporting what the user should know about it.

    `user` approves its calls, and chooses if more than one session could be continued. Without a user, calls that need
    an approval are refused, and the latest session is taken. So it is if there is a message already.
    """
    from skillshelf.files import remove_stale_scratch  # brings what writing needs, which --help does not
    from skillshelf.sandbox import switch_off
    from skillshelf.shelf.workspace_skills import WorkspaceSkills
    from skillshelf.trust import Trust
    from skillshelf_agent import AgentCore, Policy, RuleBook, resolve
    from skillshelf_agent.sessions import Sessions
    from skillshelf_agent.terminal import OpenedAgent

    if args.no_sandbox:
        switch_off()
    problems: list[str] = []
    sessions = Sessions(workspace.folder)
    settings = _load_settings(args, {})
    will_choose = user is not None and _lets_choose(args, sessions)
    if _resumes(args):
        recalled = sessions.recall_settings(args.resume or "")
        usual = settings.policy
        settings = _load_settings(args, recalled)
        if will_choose:  # the policy of the latest session is not meant for another one
            settings = replace(settings, policy=usual)
        elif settings.policy != usual:
            problems.append(f"The policy is {settings.policy}, as in that session.")
    remove_stale_scratch(workspace.root)
    servers = _choose_servers(args, workspace, problems)
    model = resolve(settings)
    rules = RuleBook(workspace.root, folder=workspace.folder)
    unconfirmed = sum(not rule.confirmed for rule in rules.list())
    if unconfirmed:
        problems.append(
            f"Not in force until you confirm: {count_noun(unconfirmed, 'approval rule')}. See /approve rules."
        )
    trust = None
    if not args.trust_workspace:
        trust = Trust.open()
        problems.extend(trust.problems)
    with keep_output_clean():
        skills = WorkspaceSkills(
            workspace,
            attached,
            trust,
            args.frozen,
            packages=settings.packages,
            entry_points=True,
            environment=args.python or True,
            choices=load_choices(),
        )
    for skill in attached:
        if user is not None and isinstance(skill, AsksUser):
            skill.ask_user = user.ask_line
    core = AgentCore(
        model,
        skills,
        policy=Policy(settings.policy, rules=rules),
        approve=user.approve if user else None,
        ask_variable=user.ask_variable if user else None,
        disclosure=settings.disclosure,
        budget=settings.budget,
        sandbox=not args.no_sandbox,
        sessions=sessions,
        servers=servers,
        todo_list=user is not None,
    )
    problems.extend(_find_misfit(core))
    if user is not None and will_choose:
        user.send("/resume")
    elif _resumes(args):
        problems.extend(core.resume(args.resume or ""))
    for problem in problems:
        complain(problem)
    if args.frozen and core.skills.drift:
        names = ", ".join(core.skills.drift)
        raise CommandError(
            f"--frozen, but these are not as approved: {names}.",
            "`skillshelf trust --list` shows what differs.",
            code="not-as-approved",
            exit_code=1,
        )
    return OpenedAgent(core, settings, _list_given(args))


def _lets_choose(args: argparse.Namespace, sessions: "Sessions") -> bool:
    """Return True if the user at a terminal chooses the session to continue."""
    return not args.last and args.resume == "" and not args.message and len(sessions.ids()) > 1


def _choose_servers(args: argparse.Namespace, workspace: Workspace, problems: list[str]) -> "ToolServers":
    """Return the MCP servers of the user's settings. If the library is missing, only named ones are an error."""
    from skillshelf_agent.servers import ToolServers, load_servers

    if args.mcp == [_NO_SERVERS]:
        return ToolServers()
    chosen = load_servers(args.mcp)
    try:
        return ToolServers(chosen, workspace.folder, root=workspace.root)
    except MissingExtraError as error:
        if args.mcp is not None:
            raise
        problems.append(str(error))
        return ToolServers()


def _find_misfit(core: "AgentCore") -> Iterator[str]:
    """Report a form of the listing that the model cannot get as the user wants it. Only `auto` keeps to a budget."""
    if core.disclosure == "auto":
        return
    tokens = core.listing.tokens
    if tokens > core.model.window:
        yield (
            f"The skills alone take {tokens:,} tokens in every call (disclosure: {core.disclosure}), and the window of "
            f"{core.model.name} holds {core.model.window:,}. Choose --disclosure auto, or use fewer skills."
        )


def _read_message(prompt: str | None) -> str:
    """Return the prompt, followed by the piped input."""
    piped = ""
    if not sys.stdin.isatty() and (prompt is None or _has_piped_input()):
        piped = sys.stdin.buffer.read().decode()
    return "\n\n".join(part for part in (prompt or "", piped) if part.strip())


def _has_piped_input() -> bool:
    """Return True if standard input is a pipe or a file. Anything else might wait forever."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode)


def _describe_pending_skills(core: "AgentCore") -> list[str]:
    """Return lines about the skills that wait for the user's review, if there are any."""
    from skillshelf.explain import describe_pending

    pending = core.skills.pending
    if not pending:
        return []
    return [*describe_pending(pending), "Review them with `skillshelf trust`, or pass --trust-workspace."]
