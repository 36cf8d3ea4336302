"""Why a run failed: from the way it ended, and from what it printed last."""

import re
import signal
from collections.abc import Callable
from dataclasses import dataclass

from skillshelf.sandbox import ProgramResult
from skillshelf_skills.execution_debugging._results import Failure, Limits

_CODES = "error_codes.md"
_DEBUGGING = "debugging.md"
_RUNNER = "sandbox_runner.py"

_TAIL = 20_000
"""How much of the end of the output is looked at."""
_SHELL_SIGNAL_BASE = 128
_NOT_EXECUTABLE = 126
_NOT_FOUND = 127
_MAX_SHOWN = 300

_FRAME = re.compile(r'^ *File "(?P<file>[^"\n]+)", line (?P<line>\d+)(?:, in (?P<function>\S+))?', re.M)
_EXCEPTION = re.compile(
    r"^(?P<type>(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Warning|Interrupt|Exit|Iteration))(?:: (?P<text>.*))?$",
    re.M,
)
_MISSING_MODULE = re.compile(r"No module named '?([\w.]+)'?")
_MISSING_COMMAND = re.compile(r"^(?:[^:\n]*: (?:line )?(?:\d+: )?)?(?P<name>[^:\n]+): (?:command )?not found$", re.M)
_SHELL_SYNTAX = re.compile(r"^[^\n]*(?:[Ss]yntax error|unexpected EOF|[Uu]nterminated)[^\n]*$", re.M)
_NO_NETWORK = re.compile(
    r"Could not resolve host|Temporary failure in name resolution|Name or service not known|Network is unreachable|"
    r"Failed to establish a new connection|getaddrinfo|Couldn't connect to server|Connection refused|ECONNREFUSED"
)
_SOCKET = re.compile(r"socket", re.I)
_REFUSED = re.compile(r"Permission denied|Read-only file system|Operation not permitted|EACCES|EROFS|EPERM")
_CANNOT_FORK = re.compile(r"[Rr]esource temporarily unavailable|[Cc]annot fork|can't start new thread")
_OUT_OF_MEMORY = re.compile(
    r"^MemoryError|[Cc]annot allocate memory|std::bad_alloc|out of memory|heap limit|OutOfMemoryError", re.M
)
_NO_SPACE = re.compile(r"No space left on device|Disk quota exceeded")


@dataclass(frozen=True, slots=True)
class _RunEvidence:
    """What is known about a run that failed."""

    result: ProgramResult
    limits: Limits
    tail: str
    """The end of its output."""
    has_network: bool
    is_confined: bool
    seconds: float
    """The time it was given."""

    @property
    def signal(self) -> int | None:
        return find_signal(self.result.exit_code)


def explain_failure(
    result: ProgramResult, limits: Limits, *, seconds: float, has_network: bool, is_confined: bool
) -> Failure | None:
    """Return why a run failed, or None if it did not.

    The surest evidence comes first: the limit that ended it, the text of an error, then its exit code.
    """
    if result.exit_code == 0:
        return None
    evidence = _RunEvidence(result, limits, result.stdout[-_TAIL:], has_network, is_confined, seconds)
    for explain in _EXPLANATIONS:
        failure = explain(evidence)
        if failure is not None:
            return failure
    return _failure(
        "exit-code",
        f"The program ended with exit code {result.exit_code} and printed nothing that is known here. Read its "
        f"last lines, and what its own documentation says about the code.",
        _CODES,
    )


def find_signal(exit_code: int | None) -> int | None:
    """Return the signal that ended a program, which a shell and a sandbox report as its exit code."""
    number = (exit_code or 0) - _SHELL_SIGNAL_BASE
    return number if number in signal.valid_signals() else None


def name_signal(number: int) -> str:
    """Return the name of a signal: `SIGSEGV`."""
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"


def _failure(kind: str, explanation: str, reference: str) -> Failure:
    return Failure(kind=kind, explanation=explanation, reference=reference)


def _explain_limit(evidence: _RunEvidence) -> Failure | None:
    limits = evidence.limits
    match evidence.result.limit:
        case "seconds":
            return _failure(
                "time-limit",
                f"It was still running after {evidence.seconds:g} s and was ended, with everything it had "
                f"started. If it is a Python program, its last lines show where it was. It may wait for input (there "
                f"is none), for the network, or for a lock; or it needs more time: up to {limits.seconds:g} seconds.",
                _DEBUGGING,
            )
        case "memory":
            return _failure(
                "memory-limit",
                f"Its processes used more than {limits.memory_mb} MiB together and were ended. Work on less data at a "
                f"time.",
                _RUNNER,
            )
        case "processes":
            return _failure(
                "process-limit",
                f"It had more than {limits.processes} processes at the same time. All of them were ended. "
                f"Look for a loop that starts processes without waiting for them, or start fewer workers.",
                _RUNNER,
            )
        case "output":
            return _failure(
                "output-limit",
                f"It printed more than {limits.output_bytes:,} bytes and was ended. Write the output to a file and "
                f"read parts of it, or print less.",
                _DEBUGGING,
            )
        case None:
            return None


def _explain_memory(evidence: _RunEvidence) -> Failure | None:
    if not _OUT_OF_MEMORY.search(evidence.tail):
        return None
    return _failure(
        "out-of-memory",
        f"A process asked for more memory than it may have ({evidence.limits.memory_mb} MiB). Work on less data at "
        f"a time.",
        _RUNNER,
    )


def _explain_forks(evidence: _RunEvidence) -> Failure | None:
    if not _CANNOT_FORK.search(evidence.tail):
        return None
    return _failure(
        "process-limit",
        f"A process or thread could not be started: at most {evidence.limits.processes} processes may run "
        f"at the same time. Start fewer workers, or wait for them.",
        _RUNNER,
    )


def _explain_network(evidence: _RunEvidence) -> Failure | None:
    if evidence.has_network:
        return None
    refused_socket = _REFUSED.search(evidence.tail) and _SOCKET.search(evidence.tail)
    if not _NO_NETWORK.search(evidence.tail) and not refused_socket:
        return None
    return _failure(
        "no-network",
        "It tried to use the network. Runs here reach only services that they started themselves. Work with what is "
        "installed and with files in the folder. If it cannot do without, tell the user, who can attach the skill with "
        "`network:`.",
        _CODES,
    )


def _explain_refusal(evidence: _RunEvidence) -> Failure | None:
    found = _REFUSED.search(evidence.tail)
    if found is None or not evidence.is_confined or evidence.result.exit_code == _NOT_EXECUTABLE:
        return None
    return _failure(
        "refused",
        f"The system refused an act ({_line_at(evidence.tail, found.start())}). Runs can write in the working folder, "
        f"in $HOME and in $TMPDIR only. Use a path there. If the path is there, look at the file's own mode.",
        _CODES,
    )


def _explain_space(evidence: _RunEvidence) -> Failure | None:
    if evidence.signal == signal.SIGXFSZ:
        return _failure(
            "file-too-large", f"It wrote a file of more than {evidence.limits.file_mb} MiB, which is the limit.", _CODES
        )
    if not _NO_SPACE.search(evidence.tail):
        return None
    return _failure("disk-full", "The disk is full. Remove files that your runs made, or tell the user.", _CODES)


def _explain_exception(evidence: _RunEvidence) -> Failure | None:
    """Explain a Python exception by the last traceback in the output."""
    exceptions = list(_EXCEPTION.finditer(evidence.tail))
    if not exceptions or evidence.signal is not None:
        return None
    exception = exceptions[-1]
    name = exception["type"]
    text = (exception["text"] or "").strip()[:_MAX_SHOWN]
    frames = [frame for frame in _FRAME.finditer(evidence.tail) if frame.start() < exception.start()]
    if not frames:
        return None

    missing = _MISSING_MODULE.search(text)
    if missing is not None:
        return _explain_missing_module(missing[1], evidence)
    place = _describe_frame(frames[-1])
    if name in ("SyntaxError", "IndentationError", "TabError"):
        return _failure("syntax-error", f"Python cannot read the program: {name} at {place}: {text}.", _DEBUGGING)
    shown = f"{name}: {text}" if text else name
    return _failure("exception", f"A Python exception ended it: {shown}. It was raised at {place}.", _DEBUGGING)


def _explain_missing_module(module: str, evidence: _RunEvidence) -> Failure:
    install = "Installing it needs the network, which runs here do not have: tell the user, or do without it."
    if evidence.has_network:
        install = "Install it into a folder of your own: python -m pip install --target lib NAME, then PYTHONPATH=lib."
    return _failure(
        "missing-module",
        f"Python has no module {module!r}. If it is a file of the project, run from the folder that holds it. "
        f"{install}",
        _DEBUGGING,
    )


def _explain_signal(evidence: _RunEvidence) -> Failure | None:
    number = evidence.signal
    if number is None:
        return None
    name = name_signal(number)
    if number == signal.SIGKILL:
        return _failure(
            "killed",
            f"{name} ended it, but none of the limits here. Either the system ran out of memory, or a process of the "
            f"run sent the signal.",
            _CODES,
        )
    if number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT, signal.SIGTRAP):
        return _failure(
            "crashed",
            f"The program crashed ({name}). That is a fault in native code, or an assertion of it. A Python program "
            f"prints the Python lines that led there.",
            _CODES,
        )
    return _failure("signal", f"The signal {name} ended it.", _CODES)


def _explain_not_found(evidence: _RunEvidence) -> Failure | None:
    if evidence.result.exit_code != _NOT_FOUND:
        return None
    found = _MISSING_COMMAND.search(evidence.tail)
    which = f"There is no program {found['name'].strip()!r} here" if found else "A program does not exist here"
    return _failure(
        "command-not-found",
        f"{which}. Check the spelling, and look with `command -v NAME`. A script of the folder needs its path: ./NAME.",
        _CODES,
    )


def _explain_not_executable(evidence: _RunEvidence) -> Failure | None:
    if evidence.result.exit_code != _NOT_EXECUTABLE:
        return None
    return _failure(
        "not-executable",
        "The file exists but cannot be executed: it lacks the mode (chmod +x), or is not a program. Start a script "
        "with its interpreter: sh NAME, python NAME.",
        _CODES,
    )


def _explain_shell_syntax(evidence: _RunEvidence) -> Failure | None:
    found = _SHELL_SYNTAX.search(evidence.tail)
    if evidence.result.exit_code != 2 or found is None:
        return None
    return _failure(
        "syntax-error",
        f"The shell cannot read the command: {found[0].strip()[:_MAX_SHOWN]}. It is /bin/sh, not bash. Check "
        f"the quotes.",
        _CODES,
    )


def _describe_frame(frame: re.Match[str]) -> str:
    function = f", in {frame['function']}" if frame["function"] else ""
    return f"{frame['file']}, line {frame['line']}{function}"


def _line_at(text: str, index: int) -> str:
    start = text.rfind("\n", 0, index) + 1
    end = text.find("\n", index)
    line = text[start:] if end == -1 else text[start:end]
    return line.strip()[-_MAX_SHOWN:]


_EXPLANATIONS: tuple[Callable[[_RunEvidence], Failure | None], ...] = (
    _explain_limit,
    _explain_space,
    _explain_memory,
    _explain_forks,
    _explain_network,
    _explain_refusal,
    _explain_exception,
    _explain_signal,
    _explain_not_found,
    _explain_not_executable,
    _explain_shell_syntax,
)
