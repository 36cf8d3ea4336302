"""sandbox-exec of macOS: a profile that denies writes outside some folders. Tested as text, not on a Mac."""

from collections.abc import Iterator, Sequence

from skillshelf.sandbox._git import GitMount
from skillshelf.sandbox._program import Program

SANDBOX_EXEC = "/usr/bin/sandbox-exec"
_DEVICES = ("/dev/null", "/dev/zero", "/dev/tty", "/dev/random", "/dev/urandom")


def make_profile(program: Program, mounts: Sequence[GitMount]) -> str:
    """Return the profile of a program. The last rule that matches decides."""
    return "\n".join(_list_rules(program, mounts))


def _list_rules(program: Program, mounts: Sequence[GitMount]) -> Iterator[str]:
    yield "(version 1)"
    yield "(allow default)"
    yield "(deny file-write*)"
    for path in program.all_writable:
        yield f"(allow file-write* (subpath {_quote(path)}))"
    for device in _DEVICES:
        yield f"(allow file-write* (literal {_quote(device)}))"
    for mount in mounts:
        if mount.read_only:
            yield f"(deny file-write* (subpath {_quote(mount.path)}))"
        else:  # it can't be renamed or replaced
            yield f"(deny file-write-create file-write-unlink (literal {_quote(mount.path)}))"
    yield "(deny signal (target others))"
    yield "(deny mach-priv-task-port)"
    if not program.network:
        yield "(deny network*)"


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
