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
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

SKILLSHELF = [sys.executable, "-m", "skillshelf"]
_LENGTH = struct.Struct("!I")
_NUMBER = struct.Struct("!i")
_READ_AT_THE_START = ("PYTHON", "LANG", "LC_", "TZ")
"""Beginnings of the names of variables that an interpreter reads once, when it starts."""
_ENVIRONMENT = dict(os.environ)
_MAX_SECONDS = 60.0
_NOT_FOR_COMMANDS = ("skillshelf.__main__", "skillshelf.adapters", "skillshelf.bundled", "skillshelf.testing")


class Process:
    """A running `skillshelf`."""

    def __init__(self, words: Sequence[str], *, cwd: Path, env: Mapping[str, str], streams: Sequence[int]) -> None:
        """Start it with these open files as its standard streams, on a terminal if the first of them is one."""
        self._status, status = os.pipe()
        request = json.dumps({"words": list(words), "cwd": str(cwd), "environment": dict(env)}).encode()
        server = _server()
        socket.send_fds(server, [_LENGTH.pack(len(request))], [*streams, status])
        server.sendall(request)
        os.close(status)
        (self.pid,) = _NUMBER.unpack(os.read(self._status, _NUMBER.size))
        self._exit_code: int | None = None

    def wait(self, seconds: float) -> int | None:
        """Wait for the end, and return the exit code, or None if it still runs after so many seconds."""
        if self._exit_code is None and select.select([self._status], [], [], max(0, seconds))[0]:
            (self._exit_code,) = _NUMBER.unpack(os.read(self._status, _NUMBER.size))
            os.close(self._status)
        return self._exit_code


def can_be_prepared(env: Mapping[str, str]) -> bool:
    """Return False if the environment changes the interpreter itself, which takes a fresh one."""
    names = {name for name in {*env, *_ENVIRONMENT} if name.startswith(_READ_AT_THE_START)}
    return all(env.get(name) == _ENVIRONMENT.get(name) for name in names)


def run(words: Sequence[str], *, cwd: Path, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run `skillshelf` without a terminal, and return its output and exit code."""
    if not can_be_prepared(os.environ):
        return _run_fresh(words, cwd=cwd, stdin=stdin)

    to_process: int | None = None
    if stdin is None:
        input_end = os.open(os.devnull, os.O_RDONLY)
    else:
        input_end, to_process = os.pipe()
    from_process, output_end = os.pipe()
    errors_from_process, errors_end = os.pipe()
    process = Process(words, cwd=cwd, env=os.environ, streams=(input_end, output_end, errors_end))
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


def _run_fresh(words: Sequence[str], *, cwd: Path, stdin: str | None) -> subprocess.CompletedProcess[str]:
    """Do the same with an interpreter that starts now."""
    input_options: dict[str, Any] = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
    return subprocess.run(
        [*SKILLSHELF, *words],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=_MAX_SECONDS,
        check=False,
        **input_options,
    )


def start_on_terminal(
    words: Sequence[str], environment: Mapping[str, str], *, cwd: Path, columns: int, rows: int
) -> tuple[Process, int]:
    """Start `skillshelf` on a terminal of this size. Return the process and our end of the terminal."""
    terminal, other_end = os.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
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
    ours, theirs = socket.socketpair()
    command = [sys.executable, __file__, str(theirs.fileno())]
    process = subprocess.Popen(command, env=_ENVIRONMENT, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()])
    theirs.close()
    atexit.register(_end_server, ours, process)
    return ours


def _end_server(connection: socket.socket, process: subprocess.Popen[bytes]) -> None:
    connection.close()
    process.wait(30)


def _import_below(package: ModuleType) -> None:
    """Import all that commands may need, as far as its libraries are installed."""
    for info in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if info.name in _NOT_FOR_COMMANDS:
            continue
        try:
            module = importlib.import_module(info.name)
        except ImportError:
            continue
        if info.ispkg:
            _import_below(module)


def _serve(connection: socket.socket) -> list[str] | None:
    """Fork a process for each request. Return its words in the new process, or None here when the tests are over."""
    running: dict[int, int] = {}
    ended, ended_signal = os.pipe()
    os.set_blocking(ended_signal, False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(ended_signal)
    while True:
        readable, _, _ = select.select([connection.fileno(), ended], [], [])
        if ended in readable:
            os.read(ended, 4096)
            _report_ended(running)
        if connection.fileno() not in readable:
            continue

        header, files, _, _ = socket.recv_fds(connection, _LENGTH.size, 4)
        if not header:
            return None
        *streams, status = files
        request = json.loads(_receive(connection, *_LENGTH.unpack(header)))
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            connection.close()
            for end in (ended, ended_signal, status, *running.values()):
                os.close(end)
            _become(request, streams)
            words: list[str] = request["words"]
            return words

        os.write(status, _NUMBER.pack(pid))
        running[pid] = status
        for stream in streams:
            os.close(stream)


def _receive(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        data += connection.recv(size - len(data))
    return data


def _report_ended(running: dict[int, int]) -> None:
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        end = running.pop(pid)
        with contextlib.suppress(BrokenPipeError):  # the test did not wait for it
            os.write(end, _NUMBER.pack(os.waitstatus_to_exitcode(status)))
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

    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.path[0] = os.getcwd()


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
    _import_below(importlib.import_module("skillshelf"))
    gc.freeze()  # the memory stays shared with the forks
    words = _serve(socket.socket(fileno=int(sys.argv[1])))
    if words is not None:
        _run_command(words)
