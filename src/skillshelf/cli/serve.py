"""`skillshelf serve`: the shelf as an MCP server, over standard input and output or over HTTP."""

import argparse
import gc
import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import Event, Thread
from typing import TYPE_CHECKING

from skillshelf.cli.output import Output, complain, plural
from skillshelf.errors import MissingExtraError, SettingsError
from skillshelf.shelf import Shelf

if TYPE_CHECKING:
    from skillshelf.agent.skills import WorkspaceSkills
    from skillshelf.mcp import SkillsServer

EXAMPLES = """
  skillshelf serve -C ~/src/app                 for a host that starts it: MCP over standard input and output
  skillshelf serve --http                       on http://127.0.0.1:8765/mcp, for programs on this machine
  SKILLSHELF_TOKEN=… skillshelf serve --http --host 0.0.0.0      for others too, who must know the token
  skillshelf serve --trust-workspace            with this folder's skills, reviewed or not
"""
HOST, PORT = "127.0.0.1", 8765
TOKEN = "SKILLSHELF_TOKEN"
_TELL_SECONDS = 2.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--http", action="store_true", help="streamable HTTP instead of standard input and output")
    parser.add_argument("--host", help=f"the address to listen on ({HOST})")
    parser.add_argument("--port", type=_port, help=f"the port to listen on ({PORT})")
    parser.add_argument("--token", help="what clients must send as bearer token (SKILLSHELF_TOKEN)")
    parser.add_argument(
        "--allow-origin", action="append", default=[], metavar="ORIGIN", help="a web page that may call, as https://a.b"
    )
    parser.add_argument("--trust-workspace", action="store_true", help="use this folder's skills without review")


def _port(text: str) -> int:
    if not text.isdecimal() or len(text) > 5 or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"a port is a number from 0 (any that is free) to 65535, not {text!r}")
    return int(text)


def run(args: argparse.Namespace, out: Output) -> int:
    return serve_shelf(args, _open)


def serve_shelf(args: argparse.Namespace, opened: Callable[[argparse.Namespace], AbstractContextManager[Shelf]]) -> int:
    """The command, on the shelf that `opened` gives for its options."""
    try:
        from skillshelf.mcp import make_server
    except MissingExtraError:
        raise MissingExtraError("skillshelf serve", "mcp") from None
    try:
        _check(args)
        with opened(args) as shelf, _watching(shelf):
            return _serve(args, make_server(shelf))
    except SettingsError as error:
        complain(f"skillshelf: {error}")
        return 2


def _check(args: argparse.Namespace) -> None:
    """Raises SettingsError for options that would have no effect, and for a token that is none."""
    given = {"--host": args.host, "--port": args.port, "--token": args.token, "--allow-origin": args.allow_origin}
    idle = [option for option, value in given.items() if value not in (None, [])]
    if idle and not args.http:
        raise SettingsError(f"{', '.join(idle)}: only with --http.")
    if args.token is None and args.http:
        args.token = os.environ.get(TOKEN)
    if args.token is not None and not args.token.strip():
        raise SettingsError(f"The token is blank: give one (--token, or {TOKEN} in the environment), or leave it out.")


def _serve(args: argparse.Namespace, server: "SkillsServer") -> int:
    import anyio

    from skillshelf.mcp import http_app, serve_http, serve_stdio
    from skillshelf.mcp.http import PATH
    from skillshelf.mcp.serving import listen

    what = plural(len(server.shelf.catalog), "skill")
    if not args.http:
        hint = " Hosts start this command themselves; Ctrl-C ends it." if sys.stdin.isatty() else ""
        complain(f"skillshelf: {what}, MCP over standard input and output.{hint}")
        # A thread may be reading a file or running a tool, and Python would wait for it.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        _settle()
        anyio.run(serve_stdio, server)
        return 0
    host = args.host or HOST
    app = http_app(server, token=args.token or "", host=host, origins=args.allow_origin)
    named, port = f"[{host}]" if ":" in host else host, PORT if args.port is None else args.port
    try:
        listening = listen(host, port)
    except OSError as error:
        reason = f"cannot listen on {named}:{port}: {error.strerror}"
        complain(f"skillshelf: {reason}. --port takes another, 0 any that is free.")
        return 1
    with listening:
        complain(f"skillshelf: {what} on http://{named}:{listening.getsockname()[1]}{PATH}")
        _settle()
        anyio.run(serve_http, app, listening)
    return 0


def _settle() -> None:
    """What is in memory by now stays as long as the process. The garbage collector walked all of it each time, which
    took a fifth of the server's time, and waited with that until a quarter as much again had gathered."""
    gc.freeze()
    gc.collect()  # of nothing: what there is from now on is measured against itself


@contextmanager
def _open(args: argparse.Namespace) -> Iterator[Shelf]:
    """The workspace's shelf. What a host puts before a model is what the person agreed to, as in `chat`."""
    from skillshelf.agent.skills import WorkspaceSkills
    from skillshelf.trust import Trust

    trust = None if args.trust_workspace else Trust.open()
    skills = WorkspaceSkills(args.workspace, trust=trust)
    for problem in trust.problems if trust else ():
        complain(problem)
    over = Event()
    if trust:
        told = _tell_pending(skills, frozenset())
        Thread(target=_keep_telling, args=(skills, told, over), daemon=True).start()
    try:
        yield skills.shelf
    finally:
        over.set()


def _keep_telling(skills: "WorkspaceSkills", told: frozenset[str], over: Event) -> None:
    """An edit is not served before it was agreed to: whoever made it must hear so."""
    while not over.wait(_TELL_SECONDS):
        told = _tell_pending(skills, told)


def _tell_pending(skills: "WorkspaceSkills", told: frozenset[str]) -> frozenset[str]:
    """What waits for the person now. Says what of it was not said before."""
    waiting = frozenset(one.name for one in skills.pending)
    if new := sorted(waiting - told):
        more = f" and {len(new) - 20} more" if len(new) > 20 else ""
        complain(
            f"Not served, because you have not agreed to them as they are now: {', '.join(new[:20])}{more}. "
            f"Review them with `skillshelf trust -C {shlex.quote(skills.root)}`, or pass --trust-workspace."
        )
    return waiting


def _watching(shelf: Shelf) -> AbstractContextManager[object]:
    """With watchfiles clients hear of an edit within a second; without it, at the server's own next sweep."""
    try:
        return shelf.watch()
    except MissingExtraError:
        return nullcontext()
