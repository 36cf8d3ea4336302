"""The sandbox of this machine: its level, what it blocks, and what stays open."""

import errno
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal, NamedTuple

from skillshelf.sandbox._bubblewrap import find_bubblewrap, find_remedy, list_arguments
from skillshelf.sandbox._filter import make_filter
from skillshelf.sandbox._landlock import landlock_version
from skillshelf.sandbox._program import Program
from skillshelf.sandbox._seatbelt import SANDBOX_EXEC, make_profile

_PROBE_SECONDS = 60.0
# Bubblewrap itself does not say when it has made its mounts, but a program begins after that.
_REPORT_AND_RUN = 'echo > "/proc/self/fd/$0" && exec "$@"'

Level = Literal["bubblewrap", "landlock", "sandbox-exec", "none"]

# The approval question and docs/concepts/safety.md take their words from here.
_WRITES = "writing, creating, renaming or deleting files outside the folder and a temporary one"
_EMPTYING = "emptying files outside"
_METADATA = "changing the mode, owner, times or attributes of files outside"
_GIT = "changing the hooks and configuration of Git repositories in the folder"
_SOCKETS = "connecting to Unix sockets (Docker, an SSH agent, tmux, a session bus)"
_MEMORY = "reading or changing the memory and environment of your other processes"
_SIGNALS = "sending signals to your other processes"
_LIMITS = "changing the priority and the limits of your other processes"
_KEYS = "reading and changing the keys that the kernel holds for you"
_SHARED_MEMORY = "the System V shared memory of your other processes"
_TERMINALS = "writing to your terminals and changing their settings"
_KEYBOARD = "reading what you type in other terminals"
_BACKGROUND = "leaving processes behind"
_NETWORK = "the network, including services on this machine"

_READING = "reading every file you can read"
_LATER = "files in the folder that run later, such as a Makefile, an editor's tasks or a new Git repository"


@dataclass(frozen=True, slots=True)
class Sandbox:
    """How programs are sandboxed on this machine. It is true if they are at all."""

    level: Level
    reason: str = ""
    """Why the level is not higher, and how to get there; empty at the highest."""
    landlock: int = 0
    """The version of the kernel's Landlock; 0 if it has none."""
    network: bool = True
    """Whether the program that is asked about gets the network."""

    def __bool__(self) -> bool:
        return self.level != "none"

    def without_network(self) -> "Sandbox":
        """Return the sandbox of a program that gets no network, as far as that is possible."""
        return replace(self, network=not self)

    @property
    def blocked(self) -> tuple[str, ...]:
        """The acts that are refused to a program."""
        return tuple(act for act, is_blocked in self._acts() if is_blocked)

    @property
    def stays_open(self) -> tuple[str, ...]:
        """The acts that stay possible, beyond writing in the folder."""
        if not self:
            return ("everything you can do",)
        still_possible = (act for act, is_blocked in self._acts() if not is_blocked)
        return (_READING, _LATER, *still_possible)

    @property
    def summary(self) -> str:
        """A sentence or two for a user who decides about a command."""
        if not self:
            return f"It can do everything you can do: {self.reason}."
        return f"It can write in this folder only. Still open: {'; '.join(self.stays_open)}."

    @property
    def short_summary(self) -> str:
        """One sentence for a user who has read the summary."""
        if not self:
            return self.summary
        network = "use the network" if self.network else "not use the network"
        return f"It can write in this folder only, read every file you can read, and {network}."

    def as_json(self) -> dict[str, object]:
        """Return the level, its reason, and both lists, for programs."""
        return {
            "level": self.level,
            "reason": self.reason,
            "blocked": list(self.blocked),
            "stays_open": list(self.stays_open),
        }

    def _acts(self) -> tuple[tuple[str, bool], ...]:
        """Return each act that a level may block, and whether this one does."""
        is_bubblewrap = self.level == "bubblewrap"
        is_linux = self.level in ("bubblewrap", "landlock")
        is_mac = self.level == "sandbox-exec"
        # Landlock knows truncate since version 3, devices since 5 and signals since 6. Before, a program can kill the
        # launcher that ends its processes.
        return (
            (_NETWORK, not self.network),
            (_WRITES, bool(self)),
            (_EMPTYING, is_bubblewrap or is_mac or self.landlock >= 3),
            (_METADATA, is_bubblewrap or is_mac),
            (_GIT, is_bubblewrap or is_mac),
            (_SOCKETS, is_linux),
            (_MEMORY, bool(self)),
            (_SIGNALS, is_bubblewrap or is_mac or self.landlock >= 6),
            (_LIMITS, is_bubblewrap),
            (_KEYS, is_linux),
            (_SHARED_MEMORY, is_bubblewrap),
            (_TERMINALS, is_bubblewrap or self.landlock >= 5),
            (_KEYBOARD, is_bubblewrap),
            (_BACKGROUND, is_bubblewrap or self.landlock >= 6),
        )


_switched_off = False


def switch_off() -> None:
    """Run programs without a sandbox in this process from now on, as `--no-sandbox` asks."""
    global _switched_off
    _switched_off = True


def find_sandbox() -> Sandbox:
    """Return the sandbox of this machine. The first time, this starts a program in it to see that it holds."""
    if _switched_off:
        return Sandbox("none", "the sandbox is switched off")
    return _find_sandbox()


@cache
def _find_sandbox() -> Sandbox:
    if sys.platform == "darwin":
        reason = _probe("sandbox-exec")
        return Sandbox("none", reason) if reason else Sandbox("sandbox-exec")
    if not sys.platform.startswith("linux"):
        return Sandbox("none", "there is no sandbox for this system")

    reason = "bubblewrap is not installed (on Debian and Ubuntu: apt install bubblewrap)"
    if find_bubblewrap():
        reason = _probe("bubblewrap")
        if not reason:
            return Sandbox("bubblewrap", landlock=_find_landlock())
        reason = f"bubblewrap does not work here: {reason}"
        remedy = find_remedy()
        if remedy:
            reason += f" (`{remedy}` allows user namespaces until the next restart)"
    version = _find_landlock()
    if not version:
        return Sandbox("none", f"{reason}, and the kernel has no Landlock")
    failure = _probe("landlock")
    if failure:
        return Sandbox("none", f"{reason}, and neither does Landlock: {failure}")
    return Sandbox("landlock", reason, version)


def _find_landlock() -> int:
    try:
        return landlock_version()
    except OSError:
        return 0


def _probe(level: Level) -> str:
    """Return the reason why a level doesn't work here, or an empty string if it holds."""
    # Writing must work inside and fail outside. Bubblewrap shows another /tmp, so a file there decides nothing alone.
    script = 'echo x > written && { echo x > "$0"; ! (: >> "$1"); } 2> /dev/null'
    with tempfile.TemporaryDirectory(prefix="skillshelf-", ignore_cleanup_errors=True) as place:
        place = os.path.realpath(place)
        inside = os.path.join(place, "inside")
        scratch = os.path.join(place, "scratch")
        outside = os.path.join(place, "outside")
        os.mkdir(inside)
        os.mkdir(scratch)
        words = ["/bin/sh", "-c", script, outside, __file__]
        program = Program(words, inside, environment={}, writable=[inside], scratch=scratch)
        failure = _run_blocking(program, Sandbox(level))
        if os.path.exists(outside):
            return "a program could write outside its folder"
        return failure


def _run_blocking(program: Program, sandbox: Sandbox) -> str:
    """Run a short program, and return why it failed, or an empty string."""
    try:
        with open_command(program, sandbox) as command:
            done = subprocess.run(
                command.words,
                cwd=program.folder,
                env=command.environment,
                pass_fds=command.descriptors,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_PROBE_SECONDS,
            )
            was_started = command.was_started()
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    if done.returncode == 0 and was_started:
        return ""
    return last_line(done.stderr.decode(errors="replace")) or "a program could write outside its folder"


class Launch(NamedTuple):
    """What has to be started so that a program runs in its sandbox."""

    words: list[str]
    environment: dict[str, str]
    descriptors: tuple[int, ...]
    status: int
    """Where the sandbox reports that the program ran: see `was_started`. -1 if there is none to ask."""
    ready: int = -1
    """Where a background program in bubblewrap reports that its mounts are made: see `is_mounted`."""

    @property
    def is_program(self) -> bool:
        """Whether the process is the program itself, and not one of the sandbox that starts it."""
        return self.status < 0

    def is_mounted(self) -> bool:
        """Return True once the mounts of a background program are made."""
        return self.ready < 0 or bool(_read_all(self.ready))

    def was_started(self) -> bool:
        """Return False if the sandbox could not be set up. Ask when the process has ended."""
        if self.is_program:
            return True
        # Bubblewrap reports the end of the program, our launcher its start.
        report = _read_all(self.status)
        return b'"exit-code"' in report or b'"started"' in report


@contextmanager
def open_command(program: Program, sandbox: Sandbox) -> Iterator[Launch]:
    """Provide what has to be started to run a program in a sandbox, while the block lasts. Raises OSError."""
    if sandbox:
        _check_writable(program)
    environment = dict(program.environment)
    if program.scratch:
        os.makedirs(program.temporary, exist_ok=True)
        os.makedirs(program.private_tmp, exist_ok=True)
        environment["TMPDIR"] = program.temporary
        # Compilers and package managers keep caches, by default in a home that they can't write to here.
        environment.setdefault("XDG_CACHE_HOME", f"{program.temporary}/cache")
    mounts = []
    if program.git and sandbox.level in ("bubblewrap", "sandbox-exec"):
        mounts = program.git.prepare(background=program.background)
    words = list(program.words)

    with ExitStack() as stack:
        if sandbox.level == "bubblewrap":
            bubblewrap = find_bubblewrap()
            assert bubblewrap is not None
            reader, writer = _open_pipe(stack)
            # In files: a workspace can have more Git directories than fit into arguments.
            seccomp = _open_file(stack, make_filter())
            arguments = "\0".join(list_arguments(program, mounts, bubblewrap)).encode(errors="surrogateescape")
            options = _open_file(stack, arguments)
            descriptors = (options, seccomp, writer, *program.descriptors)
            ready = -1
            if program.background:
                ready, reports = _open_pipe(stack)
                words = ["/bin/sh", "-c", _REPORT_AND_RUN, str(reports), *words]
                descriptors = (*descriptors, reports)
            command = [bubblewrap, "--args", str(options), "--seccomp", str(seccomp)]
            command += ["--json-status-fd", str(writer), "--", *words]
            yield Launch(command, environment, descriptors, reader, ready)
        elif sandbox.level == "landlock":
            reader, writer = _open_pipe(stack)
            plan = json.dumps({"writable": list(program.all_writable), "network": program.network, "status": writer})
            words = [sys.executable, "-I", "-m", "skillshelf.sandbox._launcher", plan, "--", *program.words]
            yield Launch(words, environment, (writer, *program.descriptors), reader)
        elif sandbox.level == "sandbox-exec":
            words = [SANDBOX_EXEC, "-p", make_profile(program, mounts), *program.words]
            yield Launch(words, environment, tuple(program.descriptors), -1)
        else:
            yield Launch(words, environment, tuple(program.descriptors), -1)


def _check_writable(program: Program) -> None:
    """Raise OSError if an earlier program has swapped a folder to write to, or one above it, for a link."""
    for path in (*program.writable, program.scratch):
        if path and os.path.realpath(path) != path:
            raise OSError(errno.ELOOP, f"{path} is or has become a symbolic link")


def _open_pipe(stack: ExitStack) -> tuple[int, int]:
    reader, writer = os.pipe()
    stack.callback(os.close, reader)
    stack.callback(os.close, writer)
    os.set_blocking(reader, False)
    return reader, writer


def _open_file(stack: ExitStack, data: bytes) -> int:
    """Return the descriptor of a file with this content, which has no name."""
    file = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
    file.write(data)
    file.seek(0)
    return file.fileno()


def _read_all(reader: int) -> bytes:
    data = b""
    with suppress(BlockingIOError):
        while chunk := os.read(reader, 4096):
            data += chunk
    return data


def last_line(text: str) -> str:
    """Return the line in which programs say why they failed."""
    lines = text.strip().splitlines()
    return lines[-1] if lines else ""
