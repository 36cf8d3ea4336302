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
from typing import TYPE_CHECKING, NamedTuple

from skillshelf.cli._output import Output, complain, plural
from skillshelf.errors import MissingExtraError, SettingsError
from skillshelf.files import NotPlainFile, NotPrivate, read_private
from skillshelf.shelf import Shelf

if TYPE_CHECKING:
    from skillshelf.mcp import PendingSkills, SkillsServer
    from skillshelf.trust import TrustedSource

EXAMPLES = """
  skillshelf serve -C ~/src/app                 for a host that starts it: MCP over standard input and output
  skillshelf serve --http                       on http://127.0.0.1:8765/mcp, for programs on this machine
  skillshelf serve --http --host 0.0.0.0 --token-file FILE       for others too, who must know the token
  skillshelf serve --trust-workspace            with this folder's skills, reviewed or not
"""
HOST = "127.0.0.1"
PORT = 8765
TOKEN = "SKILLSHELF_TOKEN"
_REPORT_SECONDS = 2.0
_TOKEN_BYTES = 4096


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--http", action="store_true", help="streamable HTTP instead of standard input and output")
    parser.add_argument("--host", help=f"the address to listen on ({HOST})")
    parser.add_argument("--port", type=_port, help=f"the port to listen on ({PORT})")
    parser.add_argument(
        "--token-file", metavar="FILE", help=f"holds the bearer token that clients must send; or set {TOKEN}"
    )
    parser.add_argument("--token", help=argparse.SUPPRESS)
    parser.add_argument(
        "--max-connections", type=_count, metavar="N", help="connections that may be open at once (2048)"
    )
    parser.add_argument(
        "--allow-origin", action="append", default=[], metavar="ORIGIN", help="a web page that may call, as https://a.b"
    )
    parser.add_argument("--trust-workspace", action="store_true", help="use this folder's skills without review")


def _port(text: str) -> int:
    if not text.isdecimal() or len(text) > 5 or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"a port is a number from 0 (any that is free) to 65535, not {text!r}")
    return int(text)


def _count(text: str) -> int:
    if not text.isdecimal() or len(text) > 6 or int(text) == 0:
        raise argparse.ArgumentTypeError(f"a number from 1 to 999999, not {text!r}")
    return int(text)


class Opened(NamedTuple):
    """A shelf to serve, and the skills that are not on it until the user approves them."""

    shelf: Shelf
    pending: "PendingSkills | None" = None


OpenShelf = Callable[[argparse.Namespace], AbstractContextManager[Opened]]


def run(args: argparse.Namespace, out: Output) -> int:
    return serve_shelf(args, _open_workspace)


def serve_shelf(args: argparse.Namespace, open_shelf: OpenShelf) -> int:
    """Run the command on the shelf that `open_shelf` opens."""
    # A start makes hundreds of thousands of objects and drops few of them. Looking for garbage took a ninth of the time
    # until the first answer, and a host may begin without a server that is late.
    gc.disable()
    try:
        return _start(args, open_shelf)
    except SettingsError as error:
        complain(f"skillshelf: {error}")
        return 2
    finally:
        gc.enable()


def _start(args: argparse.Namespace, open_shelf: OpenShelf) -> int:
    try:
        from skillshelf.mcp import make_server
    except MissingExtraError:
        raise MissingExtraError("skillshelf serve", "mcp") from None

    _check(args)
    token = _find_token(args) if args.http else ""
    with open_shelf(args) as opened, _watching(opened.shelf):
        server = make_server(opened.shelf, pending=opened.pending)
        if args.http:
            return _serve_http(args, token, server)
        return _serve_stdio(server)


def _check(args: argparse.Namespace) -> None:
    """Raise SettingsError for options that would have no effect, and for a token that everybody can read."""
    if args.token is not None:
        raise SettingsError(
            "Every user of this machine can read --token in the list of processes. Choose another token, and put it "
            f"into a file for --token-file or into the variable {TOKEN}."
        )
    given = {
        "--host": args.host,
        "--port": args.port,
        "--token-file": args.token_file,
        "--max-connections": args.max_connections,
        "--allow-origin": args.allow_origin or None,
    }
    idle = [option for option, value in given.items() if value is not None]
    if idle and not args.http:
        raise SettingsError(f"{', '.join(idle)}: only with --http.")


def _find_token(args: argparse.Namespace) -> str:
    """Return the token from the file or the environment, empty if there is none. Raises SettingsError."""
    if args.token_file is not None:
        token = _read_token(args.token_file)
    elif TOKEN in os.environ:
        token = os.environ[TOKEN]
    else:
        return ""
    if not token.strip():
        raise SettingsError(f"The token is blank: give one (--token-file, or {TOKEN} in the environment), or none.")
    return token


def _read_token(path: str) -> str:
    """Read a token from a file that no other user can read or write. Raises SettingsError."""
    try:
        # Links are followed to the file itself: that is how secrets are mounted into containers.
        data = read_private(os.path.realpath(path), _TOKEN_BYTES, secret=True)
        return data.decode("ascii")
    except NotPlainFile as error:
        raise SettingsError(f"The token file {path!r} cannot be used: {error}.") from None
    except NotPrivate as error:
        raise SettingsError(f"{error}. Change that with chmod: 600 for the file, go-w for its folder.") from None
    except OSError as error:
        raise SettingsError(f"The token file {path!r} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise SettingsError(f"The token file {path!r} has characters that no header can carry.") from None


def _serve_stdio(server: "SkillsServer") -> int:
    import anyio

    from skillshelf.mcp import serve_stdio

    skills = plural(len(server.shelf.catalog), "skill")
    hint = " Hosts start this command themselves; Ctrl-C ends it." if sys.stdin.isatty() else ""
    complain(f"skillshelf: {skills}, MCP over standard input and output.{hint}")
    # A thread may be reading a file or running a tool, and Python would wait for it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    _collect_garbage_from_now()
    anyio.run(serve_stdio, server)
    return 0


def _serve_http(args: argparse.Namespace, token: str, server: "SkillsServer") -> int:
    import anyio

    from skillshelf.mcp import MCP_PATH, Limits, http_app, listen, serve_http

    host = args.host or HOST
    port = PORT if args.port is None else args.port
    address = f"[{host}]" if ":" in host else host
    app = http_app(server, token=token, host=host, origins=args.allow_origin)
    try:
        listening = listen(host, port)
    except OSError as error:
        reason = f"cannot listen on {address}:{port}: {error.strerror}"
        complain(f"skillshelf: {reason}. --port takes another, 0 any that is free.")
        return 1
    with listening:
        skills = plural(len(server.shelf.catalog), "skill")
        complain(f"skillshelf: {skills} on http://{address}:{listening.getsockname()[1]}{MCP_PATH}")
        _collect_garbage_from_now()
        limits = Limits() if args.max_connections is None else Limits(connections=args.max_connections)
        anyio.run(serve_http, app, listening, limits, server.close_streams)
    return 0


def _collect_garbage_from_now() -> None:
    """Leave out what is in memory by now: it stays as long as the process.

    The collector walked all of it each time, which took a fifth of the server's time, and waited with that until a
    quarter as much again had gathered.
    """
    gc.freeze()
    gc.enable()
    gc.collect()  # of nothing: what there is from now on is measured against itself


@contextmanager
def _open_workspace(args: argparse.Namespace) -> Iterator[Opened]:
    """Open the workspace's shelf. A host's model gets what the user approved, as in `chat`."""
    from skillshelf.agent import WorkspaceSkills
    from skillshelf.mcp import PendingSkills, is_loopback
    from skillshelf.trust import Trust

    trust = None if args.trust_workspace else Trust.open()
    skills = WorkspaceSkills(args.workspace, trust=trust)
    source = skills.trusted
    if trust is None or source is None:
        yield Opened(skills.shelf)
        return

    for problem in trust.problems:
        complain(problem)
    # A client elsewhere cannot use the path, and need not know it.
    is_local = not args.http or is_loopback(args.host or HOST)
    pending = PendingSkills(lambda: len(source.find_pending()), skills.root if is_local else "")
    with _report_pending(source, pending):
        yield Opened(skills.shelf, pending)


@contextmanager
def _report_pending(source: "TrustedSource", pending: "PendingSkills") -> Iterator[None]:
    """Say on standard error which skills are not served, now and whenever an edit makes another one pending."""
    reported = _complain_about_pending(source, frozenset())
    is_over = Event()

    def keep_reporting(reported: frozenset[str]) -> None:
        while not is_over.wait(_REPORT_SECONDS):
            reported = _complain_about_pending(source, reported)
            pending.refresh()  # a client that comes now reads the count in the server's instructions

    Thread(target=keep_reporting, args=(reported,), daemon=True).start()
    try:
        yield
    finally:
        is_over.set()


def _complain_about_pending(source: "TrustedSource", reported: frozenset[str]) -> frozenset[str]:
    """Name the pending skills that were not reported before. Return the names of all that are pending now."""
    waiting = frozenset(skill.name for skill in source.find_pending())
    new = sorted(waiting - reported)
    if new:
        more = f" and {len(new) - 20} more" if len(new) > 20 else ""
        complain(
            f"Not served, because you have not agreed to them as they are now: {', '.join(new[:20])}{more}. "
            f"Review them with `skillshelf trust -C {shlex.quote(source.root)}`, or pass --trust-workspace."
        )
    return waiting


def _watching(shelf: Shelf) -> AbstractContextManager[object]:
    """With watchfiles clients hear of an edit within a second; without it, at the server's own next sweep."""
    try:
        return shelf.watch()
    except MissingExtraError:
        return nullcontext()
