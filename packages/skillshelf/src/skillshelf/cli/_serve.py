"""`skillshelf serve`: an MCP server for the shelf, over standard input and output or over HTTP."""

import argparse
import os
import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from threading import Event, Thread
from typing import TYPE_CHECKING

from skillshelf.cli._errors import CommandError
from skillshelf.cli._output import Output, complain, shown_path
from skillshelf.cli._parsers import Parser, add_listing_options
from skillshelf.cli._workspace import attach_skills, find_packages, locate_workspace
from skillshelf.errors import MissingExtraError, RegistryError, SettingsError
from skillshelf.files import NotPlainFile, NotPrivate, read_private
from skillshelf.settings import load_choices, load_settings
from skillshelf.shelf import Shelf, pause_gc
from skillshelf.text import count_noun
from skillshelf.text.streams import keep_output_clean

if TYPE_CHECKING:
    from skillshelf.mcp import PendingSkills, SkillsServer
    from skillshelf.shelf.workspace_skills import WorkspaceSkills

EXAMPLES = """
  skillshelf serve -C ~/src/app                 for a host that starts it: MCP over standard input and output
  skillshelf serve --http                       on http://127.0.0.1:8765/mcp, for programs on this machine
  skillshelf serve --http --host 0.0.0.0 --token-file FILE       for other machines too, with a token
  skillshelf serve --trust-workspace            with this folder's skills, reviewed or not
  skillshelf serve --disclosure full            with all instructions in the resource skill://listing
"""
DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8765
TOKEN_VARIABLE = "SKILLSHELF_TOKEN"
_REPORT_SECONDS = 2.0
_MAX_TOKEN_BYTES = 4096


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--http", action="store_true", help="use streamable HTTP instead of standard input and output")
    parser.add_argument("--host", help=f"the address to listen on (default: {DEFAULT_HOST})")
    parser.add_argument("--port", type=_port_number, help=f"the port to listen on (default: {DEFAULT_PORT})")
    parser.add_argument(
        "--token-file",
        metavar="FILE",
        help=f"a file with the token that clients must send; or set {TOKEN_VARIABLE}",
    )
    parser.add_argument(
        "--allow-origin",
        action="append",
        default=[],
        metavar="ORIGIN",
        help="a web origin that may send requests, such as https://a.b",
    )
    add_listing_options(parser)
    parser.add_argument(
        "--frozen", action="store_true", help="refuse installed skills that are not as skills.lock pins them"
    )
    parser.add_argument("--trust-workspace", action="store_true", help="use this folder's skills without review")


def _port_number(text: str) -> int:
    if not text.isdecimal() or len(text) > 5 or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"give a number from 0 (any free port) to 65535, not {text!r}")
    return int(text)


def run(args: argparse.Namespace, out: Output) -> int:
    with pause_gc():  # a twentieth of the time to the first answer
        try:
            from skillshelf.mcp import make_server
        except MissingExtraError:
            raise MissingExtraError("skillshelf serve", "mcp") from None

    _check_options(args)
    token = ""
    if args.http:
        token = _find_token(args)
    settings = load_settings({"disclosure": args.disclosure, "budget": args.budget})
    with _open_workspace(args) as (shelf, pending), _watch(shelf):
        server = make_server(shelf, pending=pending, disclosure=settings.disclosure, budget=settings.budget)
        if args.http:
            return _serve_http(args, token, server)
        return _serve_stdio(server)


def _check_options(args: argparse.Namespace) -> None:
    """Raise SettingsError for options that would have no effect."""
    given = {
        "--host": args.host,
        "--port": args.port,
        "--token-file": args.token_file,
        "--allow-origin": args.allow_origin or None,
    }
    options = [option for option, value in given.items() if value is not None]
    if options and not args.http:
        raise SettingsError(f"{', '.join(options)}: only with --http.")


def _find_token(args: argparse.Namespace) -> str:
    """Return the token from the file or the environment, or an empty string. Raises SettingsError."""
    if args.token_file is not None:
        token = _read_token(args.token_file)
    elif TOKEN_VARIABLE in os.environ:
        token = os.environ[TOKEN_VARIABLE]
    else:
        return ""
    if not token.strip():
        raise SettingsError(
            f"The token is blank: give one (--token-file, or {TOKEN_VARIABLE} in the environment), or none."
        )
    return token


def _read_token(path: str) -> str:
    """Read a token from a file that no other user can read or write. Raises SettingsError."""
    try:
        # Follow links: containers mount secrets that way.
        data = read_private(os.path.realpath(path), _MAX_TOKEN_BYTES, secret=True)
        return data.decode("ascii")
    except NotPlainFile as error:
        raise SettingsError(f"The token file {path!r} cannot be used: {error}.") from None
    except NotPrivate as error:
        raise SettingsError(f"{error}. Change that with chmod: 600 for the file, go-w for its folder.") from None
    except OSError as error:
        raise SettingsError(f"The token file {path!r} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise SettingsError(f"The token file {path!r} has characters that an HTTP header cannot carry.") from None


def _serve_stdio(server: "SkillsServer") -> int:
    import anyio

    from skillshelf.mcp import serve_stdio

    announcement = f"skillshelf: {count_noun(len(server.shelf.catalog), 'skill')}, MCP over standard input and output."
    if sys.stdin.isatty():
        announcement += " Hosts start this command themselves; Ctrl-C ends it."
    complain(announcement)
    # Let Ctrl-C end the process at once: Python would wait for a thread that reads a file or runs a tool.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    anyio.run(serve_stdio, server)
    return 0


def _serve_http(args: argparse.Namespace, token: str, server: "SkillsServer") -> int:
    import anyio

    from skillshelf.mcp import MCP_PATH, http_app, listen, serve_http

    host = args.host or DEFAULT_HOST
    port = args.port
    if port is None:
        port = DEFAULT_PORT
    address = host
    if ":" in host:
        address = f"[{host}]"
    app = http_app(server, token=token, host=host, origins=args.allow_origin)
    try:
        listening = listen(host, port)
    except OSError as error:
        raise CommandError(
            f"cannot listen on {address}:{port}: {error.strerror}.",
            "Choose another one with --port; 0 takes any free port.",
            code="port-unavailable",
            exit_code=1,
        ) from error
    with listening:
        skills = count_noun(len(server.shelf.catalog), "skill")
        complain(f"skillshelf: {skills} on http://{address}:{listening.getsockname()[1]}{MCP_PATH}")
        anyio.run(serve_http, app, listening, None, server.close_streams)
    return 0


@contextmanager
def _open_workspace(args: argparse.Namespace) -> "Iterator[tuple[Shelf, PendingSkills | None]]":
    """Open the workspace's shelf with the skills that the user approved, as in `chat`.

    Skills that wait for approval stay off the shelf; they are the second value.
    """
    from skillshelf.mcp import PendingSkills
    from skillshelf.shelf.workspace_skills import WorkspaceSkills
    from skillshelf.trust import Trust

    trust = None if args.trust_workspace else Trust.open()
    workspace = locate_workspace(args)
    if args.frozen:
        _refuse_drift(workspace.root)
    with keep_output_clean():  # standard output may be the connection
        skills = WorkspaceSkills(
            workspace,
            skills=attach_skills(args),
            trust=trust,
            packages=find_packages(args),
            entry_points=True,
            frozen=args.frozen,
            environment=args.python or True,
            choices=load_choices(),
        )
    for fault in skills.take_faults():
        complain(fault)
    if trust is None:
        yield skills.shelf, None
        return

    for problem in (*trust.problems, trust.explain_lost_own(skills.root)):
        if problem:
            complain(problem)
    root = skills.root
    if args.http:
        from skillshelf.mcp import is_loopback

        if not is_loopback(args.host or DEFAULT_HOST):
            root = ""  # a client on another machine cannot use the path, and need not know it
    pending = PendingSkills(lambda: len(skills.find_pending_skills()), root)
    with _report_pending(skills, pending):
        yield skills.shelf, pending


def _refuse_drift(root: str) -> None:
    """Raise CommandError if an installed skill, of the workspace or the user, is not as its lock pins it."""
    from skillshelf.registry import compare, project_installation, read_lock, user_installation

    installations = [project_installation(root)]
    with suppress(RegistryError):  # a user without a home has no skills there
        installations.append(user_installation())
    for installation in installations:
        statuses = compare(installation, read_lock(installation.lock_path))
        names = [status.name for status in statuses if status.state != "same"]
        if names:
            option = " --user" if installation.is_user else ""
            raise CommandError(
                f"{', '.join(names)}: not as {shown_path(installation.lock_path)} pins it.",
                f"`skillshelf verify{option}` names the files.",
                code="lock-mismatch",
                exit_code=1,
            )


@contextmanager
def _report_pending(skills: "WorkspaceSkills", pending: "PendingSkills") -> Iterator[None]:
    """Report skills that are not served on standard error, now and whenever an edit makes another one pending."""
    reported = _complain_about_pending(skills, frozenset())
    is_over = Event()

    def keep_reporting(reported: frozenset[str]) -> None:
        while not is_over.wait(_REPORT_SECONDS):
            reported = _complain_about_pending(skills, reported)
            for fault in skills.take_faults():
                complain(fault)
            pending.refresh()  # new clients read the count in the server's instructions

    Thread(target=keep_reporting, args=(reported,), daemon=True).start()
    try:
        yield
    finally:
        is_over.set()


def _complain_about_pending(skills: "WorkspaceSkills", reported: frozenset[str]) -> frozenset[str]:
    """Name the pending skills that were not reported before. Return the names of all that are pending now."""
    pending = skills.find_pending_skills()
    for root in dict.fromkeys(skill.root for skill in pending):
        unreported = [skill for skill in pending if skill.root == root and skill.name not in reported]
        if unreported:
            from skillshelf.explain import describe_pending  # a server without pending skills need not load it

            sentences = " ".join(describe_pending(unreported))
            command = "skillshelf trust"
            if root in skills.workspace.folders:
                command += f" -C {shlex.quote(root)}"
            advice = f"Review with `{command}`, or pass --trust-workspace."
            complain(f"{sentences} {advice}")
    return frozenset(skill.name for skill in pending)


def _watch(shelf: Shelf) -> AbstractContextManager[object]:
    """Watch the shelf's folders if watchfiles is installed.

    Clients then learn of an edit within a second; otherwise at the server's next sweep.
    """
    try:
        return shelf.watch()
    except MissingExtraError:
        return nullcontext()
