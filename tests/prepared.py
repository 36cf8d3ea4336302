"""Processes that run `skillshelf` without importing it: they are forks of a process that has done so.

A chat needs more than a second of computing for its imports, and hundreds of tests start one. It is still a process of
its own, with its own environment, folder, terminal and exit code. Tests of the start itself, and of what is imported,
start a fresh interpreter instead.
"""

import atexit
import contextlib
import fcntl
import functools
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import termios
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import prepared_command
import terminals
from prepared_command import NUMBER

SKILLSHELF = [sys.executable, "-m", "skillshelf"]
_MAX_REQUEST = 1 << 20
_READ_AT_THE_START = ("PYTHON", "LANG", "LC_", "TZ")
"""Beginnings of the names of variables that an interpreter reads once, when it starts."""
_ENVIRONMENT = dict(os.environ)
_NAME = f"skillshelf-tests-{os.getpid()}"
"""The name of the socket at which other programs ask for a process."""
_MAX_SECONDS = 60.0
_NOT_FOR_COMMANDS = ("skillshelf.__main__", "skillshelf.adapters", "skillshelf.testing")


class Process:
    """A running `skillshelf`."""

    def __init__(self, words: Sequence[str], *, cwd: Path, env: Mapping[str, str], streams: Sequence[int]) -> None:
        """Start it with these open files as its standard streams, on a terminal if the first of them is one."""
        self._report = prepared_command.ask(_server(), words, str(cwd), env, streams)
        self.pid = prepared_command.read_number(self._report)
        self._exit_code: int | None = None

    def wait(self, seconds: float) -> int | None:
        """Wait for the end, and return the exit code, or None if it still runs after so many seconds."""
        if self._exit_code is None and select.select([self._report], [], [], max(0, seconds))[0]:
            self._exit_code = prepared_command.read_number(self._report)
            os.close(self._report)
        return self._exit_code

    def poll(self) -> int | None:
        return self.wait(0)

    def end_by(self, number: signal.Signals) -> None:
        """Send it a signal, and return when it is gone. Another thread may wait for its end meanwhile."""
        with contextlib.suppress(ProcessLookupError):
            gone = os.pidfd_open(self.pid)
            os.kill(self.pid, number)
            select.select([gone], [], [])
            os.close(gone)

    def terminate(self) -> None:
        if self._exit_code is None:
            os.kill(self.pid, signal.SIGTERM)


class FreshProcess(subprocess.Popen[bytes]):
    """The same with an interpreter of its own."""

    def end_by(self, number: signal.Signals) -> None:
        self.send_signal(number)
        self.wait()


def can_be_prepared(env: Mapping[str, str]) -> bool:
    """Return False if the environment changes the interpreter itself, which takes a fresh one."""
    if not sys.platform.startswith("linux"):
        return False  # other systems have no sockets of this kind
    names = {name for name in {*env, *_ENVIRONMENT} if name.startswith(_READ_AT_THE_START)}
    return all(env.get(name, "") == _ENVIRONMENT.get(name, "") for name in names)


def start(words: Sequence[str], *, cwd: Path, env: Mapping[str, str], streams: Sequence[int]) -> Process | FreshProcess:
    """Start `skillshelf` with these open files as its standard streams."""
    if can_be_prepared(_without_import_path(env)):
        return Process(words, cwd=cwd, env=env, streams=streams)
    stdin, stdout, stderr = streams
    return FreshProcess([*SKILLSHELF, *words], cwd=cwd, env=env, stdin=stdin, stdout=stdout, stderr=stderr)


def _without_import_path(env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with our own PYTHONPATH, because `_become` takes over another one."""
    return {**env, "PYTHONPATH": _ENVIRONMENT.get("PYTHONPATH", "")}


def command(*words: str) -> list[str]:
    """Return what starts `skillshelf` as a child of another program.

    The child passes streams, folder and exit code on; signals end it alone.
    """
    if not can_be_prepared(_without_import_path(os.environ)):
        return [*SKILLSHELF, *words]
    _server()
    return [sys.executable, "-IS", prepared_command.__file__, _NAME, *words]


def run(
    words: Sequence[str], *, cwd: Path, stdin: str | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `skillshelf` without a terminal, and return its output and exit code."""
    env = os.environ if env is None else env
    if not can_be_prepared(_without_import_path(env)):
        return _run_fresh(words, cwd=cwd, stdin=stdin, env=env)

    to_process: int | None = None
    if stdin is None:
        input_end = os.open(os.devnull, os.O_RDONLY)
    else:
        input_end, to_process = os.pipe()
    from_process, output_end = os.pipe()
    errors_from_process, errors_end = os.pipe()
    process = Process(words, cwd=cwd, env=env, streams=(input_end, output_end, errors_end))
    for end in (input_end, output_end, errors_end):
        os.close(end)

    with ThreadPoolExecutor(max_workers=3) as threads:
        if to_process is not None:
            threads.submit(_write_all, to_process, stdin or "")
        output = threads.submit(_read_all, from_process)
        errors = threads.submit(_read_all, errors_from_process)
        code = process.wait(_MAX_SECONDS)
        if code is None:
            os.kill(process.pid, signal.SIGKILL)
    assert code is not None, f"{words} did not end. Its output:\n{output.result()}{errors.result()}"
    return subprocess.CompletedProcess(list(words), code, output.result(), errors.result())


def _run_fresh(
    words: Sequence[str], *, cwd: Path, stdin: str | None, env: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Do the same with an interpreter that starts now."""
    input_options: dict[str, Any] = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
    return subprocess.run(
        [*SKILLSHELF, *words],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        timeout=_MAX_SECONDS,
        check=False,
        **input_options,
    )


def start_on_terminal(
    words: Sequence[str],
    environment: Mapping[str, str],
    *,
    cwd: Path,
    columns: int = 100,
    rows: int = 40,
    is_fresh: bool = False,
) -> tuple[Process | terminals.Child, int]:
    """Start `skillshelf` on a terminal of this size. Return the process and our end of the terminal.

    A fresh one starts with its interpreter, and is a child of this process.
    """
    if is_fresh or not can_be_prepared(environment):
        command = [*SKILLSHELF, *words]
        pid, terminal = terminals.start_on_terminal(command, environment, cwd=cwd, columns=columns, rows=rows)
        return terminals.Child(pid), terminal

    terminal, other_end = os.openpty()
    terminals.set_size(terminal, columns, rows)
    process = Process(words, cwd=cwd, env=environment, streams=[other_end] * 3)
    os.close(other_end)
    return process, terminal


def _write_all(end: int, text: str) -> None:
    with open(end, "w") as file:
        file.write(text)


def _read_all(end: int) -> str:
    with open(end) as file:
        return file.read()


# -- the process that others are forked from ---------------------------------------------------------------------------


@functools.cache
def _server() -> socket.socket:
    """Start it, and return the connection to it. It ends with this process."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as named:
        named.bind(f"\0{_NAME}")
        inherited = [theirs.fileno(), named.fileno()]
        words = [sys.executable, __file__, *map(str, inherited)]
        process = subprocess.Popen(words, env=_ENVIRONMENT, stdin=subprocess.DEVNULL, pass_fds=inherited)
    atexit.register(_end_server, ours, process)
    return ours


def _end_server(connection: socket.socket, process: subprocess.Popen[bytes]) -> None:
    connection.close()
    process.wait(30)


def import_commands() -> None:
    """Import all that commands may need, as far as its libraries are installed."""
    for name in ("skillshelf", "skillshelf_agent", "skillshelf_evals"):
        with contextlib.suppress(ImportError):
            _import_below(importlib.import_module(name))


def _import_below(package: ModuleType) -> None:
    for info in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if info.name in _NOT_FOR_COMMANDS:
            continue
        try:
            module = importlib.import_module(info.name)
        except ImportError:
            continue
        if info.ispkg:
            _import_below(module)


def _serve(connection: socket.socket, named: socket.socket) -> list[str] | None:
    """Fork a process for each request. Return its words in the new process, or None here when the tests are over.

    The tests end the connection. Other programs send their requests to the named socket.
    """
    running: dict[int, int] = {}
    ended, ended_signal = os.pipe()
    os.set_blocking(ended_signal, False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(ended_signal)
    while True:
        readable, _, _ = select.select([ended, connection.fileno(), named.fileno()], [], [])
        if ended in readable:
            os.read(ended, 4096)
            _report_ended(running)
            continue

        source = connection if connection.fileno() in readable else named
        message, files, _, _ = socket.recv_fds(source, _MAX_REQUEST, 4)
        if not message:
            return None
        *streams, report = files
        request = json.loads(message)
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            connection.close()
            named.close()
            for end in (ended, ended_signal, report, *running.values()):
                os.close(end)
            _become(request, streams)
            words: list[str] = request["words"]
            return words

        os.write(report, NUMBER.pack(pid))
        running[pid] = report
        for stream in streams:
            os.close(stream)


def _report_ended(running: dict[int, int]) -> None:
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        end = running.pop(pid)
        with contextlib.suppress(BrokenPipeError):  # the test did not wait for it
            os.write(end, NUMBER.pack(os.waitstatus_to_exitcode(status)))
        os.close(end)


def _become(request: dict[str, Any], streams: Sequence[int]) -> None:
    """Give this process the streams, the terminal, the folder and the environment of a freshly started one."""
    os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    if os.isatty(0):
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    sys.stdin = os.fdopen(0, encoding=sys.stdin.encoding, errors=sys.stdin.errors, closefd=False)
    sys.stdout = _open_output(1, sys.stdout, is_line_buffered=os.isatty(1))
    sys.stderr = _open_output(2, sys.stderr, is_line_buffered=True)

    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    import_path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:1] = [os.getcwd(), *filter(None, import_path)]


def _open_output(number: int, before: Any, *, is_line_buffered: bool) -> Any:
    file = os.fdopen(number, "w", encoding=before.encoding, errors=before.errors, newline="\n", closefd=False)
    file.reconfigure(line_buffering=is_line_buffered)
    return file


def _run_command(words: Sequence[str]) -> None:
    sys.argv = ["skillshelf", *words]
    try:
        runpy.run_module("skillshelf", run_name="__main__", alter_sys=True)
    except SystemExit as leave:
        if isinstance(leave.code, int):
            _exit_codes.append(leave.code)
        raise


_exit_codes: list[int] = []


def _leave_at_once() -> None:
    """End the process when all else is done: clearing its modules would copy the memory that it shares."""
    for code in _exit_codes:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except OSError:
            return  # reported by the interpreter
        os._exit(code)


if __name__ == "__main__":
    atexit.register(_leave_at_once)  # the first one, which is called last
    import_commands()
    gc.freeze()  # the memory stays shared with the forks
    words = _serve(*(socket.socket(fileno=int(number)) for number in sys.argv[1:]))
    if words is not None:
        _run_command(words)
