"""`skillshelf chat`: the agent, in a terminal or over a pipe."""

import argparse
import asyncio
import os
import stat
import sys
from typing import TYPE_CHECKING

from skillshelf.cli._output import Output, complain
from skillshelf.errors import MissingExtraError, ModelUnavailableError, SettingsError, SourceError

if TYPE_CHECKING:
    from skillshelf.agent import AgentCore, Settings

EXAMPLES = """
  skillshelf chat                                     talk in the terminal
  skillshelf chat --model anthropic:claude-sonnet-5-5 with this model
  skillshelf chat --model local                       with a small model on this machine, offline
  skillshelf chat -p "/skills:release-notes v1.2"     one message, and the answer on standard output
  git diff | skillshelf chat -p "review this"         what is piped in follows the message
  skillshelf chat -p "fix the typo" --policy auto-edit --json
"""

_NAMED = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-p", "--prompt", metavar="TEXT", help="answer this message and leave")
    parser.add_argument("-m", "--model", metavar="PROVIDER:MODEL", help="the model, or `local` for the embedded one")
    parser.add_argument("--base-url", metavar="URL", help="an OpenAI-compatible server")
    parser.add_argument("--policy", metavar="MODE", help="ask (default), read-only, auto-edit or yolo")
    parser.add_argument("--tools", metavar="MODE", help="auto (default), on, or off: the shelf chooses the skill")
    parser.add_argument("--budget", metavar="TOKENS", help="tokens that the listing of skills takes at most")
    parser.add_argument("--resume", nargs="?", const="", metavar="ID", help="go on with a session, by default the last")
    parser.add_argument("--trust-workspace", action="store_true", help="use this folder's skills without review")
    parser.add_argument("--no-sandbox", action="store_true", help="let commands write outside the folder too")
    parser.add_argument("--frozen", action="store_true", help="fail if a skill here is not exactly as approved")


def run(args: argparse.Namespace, out: Output) -> int:
    try:
        core, settings, problems = _open(args)
    except (ModelUnavailableError, SettingsError, SourceError) as error:
        complain(f"skillshelf: {error}")
        return 2
    for problem in problems:
        complain(problem)
    if args.frozen and core.skills.drift:
        names = ", ".join(core.skills.drift)
        complain(f"skillshelf: --frozen, and not as approved: {names}. `skillshelf trust --list` shows what differs.")
        return 1
    if args.prompt is None and sys.stdin.isatty() and sys.stdout.isatty() and not args.json:
        from skillshelf.repl import Terminal

        return asyncio.run(Terminal(core, settings, out.console).run())
    from skillshelf.repl import Pipe

    try:
        text = _message(args.prompt)
    except UnicodeDecodeError:
        complain("skillshelf: what is piped in is no UTF-8 text. Convert it first, or name the file in the message.")
        return 2
    if not text.strip():
        complain("skillshelf: there is no message. Give one with -p, or pipe it in.")
        return 2
    if core.model.note:
        complain(core.model.note)
    _say_what_is_withheld(core)
    return asyncio.run(Pipe(core, settings, as_json=args.json).run(text))


def _open(args: argparse.Namespace) -> "tuple[AgentCore, Settings, list[str]]":
    """The agent as the words on the command line and the settings want it, and what to say first."""
    try:
        import prompt_toolkit  # noqa: F401
        import pydantic_ai_harness  # noqa: F401
    except ImportError:
        raise MissingExtraError("skillshelf chat", "chat") from None
    from skillshelf.agent import AgentCore, Policy, load_settings, resolve
    from skillshelf.agent.sessions import Sessions
    from skillshelf.trust import Trust

    if args.frozen and args.trust_workspace:
        raise SettingsError(
            "--frozen asks for what was approved, --trust-workspace for what is there. Give one of them."
        )
    settings = load_settings(vars(args))
    core = AgentCore(
        resolve(settings), policy=Policy(settings.policy), budget=settings.budget, sandbox=not args.no_sandbox
    )
    trust = None if args.trust_workspace else Trust.open()
    core.load_skills(
        args.workspace, trust=trust, sessions=Sessions(os.path.realpath(args.workspace)), frozen=args.frozen
    )
    problems = [] if args.resume is None else list(core.resume(args.resume))
    return core, settings, [*(trust.problems if trust else ()), *problems]


def _message(prompt: str | None) -> str:
    """What was given, followed by what is piped in."""
    piped = ""
    if not sys.stdin.isatty() and (prompt is None or _is_piped()):
        piped = sys.stdin.buffer.read().decode()
    return "\n\n".join(part for part in (prompt or "", piped) if part.strip())


def _is_piped() -> bool:
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode)


def _say_what_is_withheld(core: "AgentCore") -> None:
    pending = core.skills.pending
    for status, what in (
        ("new", "Not used, because you have not agreed to them"),
        ("changed", "Used as you approved them, not as they are now"),
    ):
        names = [one.name for one in pending if one.status == status]
        if names:
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            complain(f"{what}: {', '.join(names[:_NAMED])}{more}.")
    if pending:
        complain("Review them with `skillshelf trust`, or pass --trust-workspace.")
