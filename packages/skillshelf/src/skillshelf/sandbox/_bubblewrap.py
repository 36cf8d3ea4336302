"""Bubblewrap: a program sees the whole file system read-only, with private /tmp, /run, processes and devices."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import cache

from skillshelf.files import is_at_or_inside, is_inside
from skillshelf.sandbox._git import GitMount
from skillshelf.sandbox._program import Program

# Not the PATH: a workspace can be on it.
_FOLDERS = ("/usr/bin", "/usr/local/bin", "/bin", "/run/wrappers/bin", "/run/current-system/sw/bin")
_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_PROBE_SECONDS = 30.0
_PRIVATE = ("/tmp", "/var/tmp", "/run")
_RESOLVER = "/etc/resolv.conf"
_TMPFS_BYTES = 64 * 1024 * 1024
"""Files in a tmpfs take memory."""

_KEPT_CAPABILITIES = (
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_FOWNER",
    "CAP_FSETID",
    "CAP_KILL",
    "CAP_SETGID",
    "CAP_SETUID",
    "CAP_NET_BIND_SERVICE",
)
"""What root keeps for ordinary work. With CAP_SYS_ADMIN it could make mounts writable again."""

_RESTRICTIONS = (
    ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
    ("kernel.unprivileged_userns_clone", "0", "1"),
    ("user.max_user_namespaces", "0", "10000"),
)
"""Settings of the kernel, the value that keeps bubblewrap from working, and one that lets it."""


def find_bubblewrap() -> str | None:
    """Return the path of bubblewrap, or None if it isn't installed for the whole system."""
    for folder in _FOLDERS:
        path = os.path.join(folder, "bwrap")
        if os.access(path, os.X_OK):
            return path
    return None


def find_remedy() -> str:
    """Return the command that allows user namespaces, or an empty string if no setting of the kernel forbids them."""
    for name, forbidding, allowing in _RESTRICTIONS:
        try:
            with open(f"/proc/sys/{name.replace('.', '/')}") as file:
                value = file.read().strip()
        except OSError:  # this kernel doesn't have it
            continue
        if value == forbidding:
            return f"sudo sysctl {name}={allowing}"
    return ""


def list_arguments(program: Program, mounts: Sequence[GitMount], bubblewrap: str) -> list[str]:
    """Return the arguments that sandbox a program, without its words."""
    # Mounts are made in this order. /proc/sys stays read-only for root, too: core_pattern there names a program.
    arguments = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys"]
    is_recent = _read_version(bubblewrap) >= (0, 8)
    tmpfs = ["--size", str(_TMPFS_BYTES), "--tmpfs"] if is_recent else ["--tmpfs"]
    for place in filter(os.path.isdir, ("/tmp", "/var/tmp")):
        arguments += ["--bind", program.private_tmp, place] if program.scratch else [*tmpfs, place]
    if os.path.isdir("/run"):
        arguments += [*tmpfs, "/run"]

    hidden = list(_list_hidden(program))
    tops = _find_tops([*hidden, *program.all_writable])
    for path in tops:
        arguments += [*tmpfs, path]
    for path in hidden:
        arguments += ["--ro-bind", path, path]
    for path in program.all_writable:
        arguments += ["--bind", path, path]
    for mount in mounts:
        arguments += ["--ro-bind" if mount.read_only else "--bind", mount.path, mount.path]
    for path in tops:
        arguments += ["--remount-ro", path]

    arguments += ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    if not program.network:
        arguments.append("--unshare-net")
    arguments += ["--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    if os.geteuid() == 0:
        for capability in _KEPT_CAPABILITIES:
            arguments += ["--cap-add", capability]
    else:
        arguments.append("--unshare-user")
        if is_recent:
            arguments.append("--disable-userns")
    return [*arguments, "--chdir", program.folder]


def _list_hidden(program: Program) -> Iterator[str]:
    """Yield what a program needs from the folders that are private: Python, this package, the resolver's file."""
    needed = {*program.readable, sys.prefix, sys.base_prefix, _PACKAGE}
    if program.network:
        needed.add(os.path.realpath(_RESOLVER))  # systemd-resolved keeps it in /run
    for path in sorted(map(os.path.realpath, needed)):
        is_hidden = any(is_at_or_inside(path, folder) for folder in _PRIVATE)
        is_writable = any(is_at_or_inside(path, folder) for folder in program.writable)
        if is_hidden and not is_writable and os.path.exists(path):
            yield path


def _find_tops(paths: Sequence[str]) -> list[str]:
    """Return the folders directly in a private one that paths are below, unless such a folder is mounted itself.

    As mounts, they stay in place. Otherwise a program could swap one for a link, and bubblewrap would follow it when it
    makes the mount points of the next program, out of the sandbox.
    """
    tops: set[str] = set()
    for path in paths:
        for folder in _PRIVATE:
            if is_inside(path, folder):
                tops.add(os.path.join(folder, os.path.relpath(path, folder).split("/")[0]))
    return sorted(top for top in tops if not any(is_at_or_inside(top, path) for path in paths))


@cache
def _read_version(bubblewrap: str) -> tuple[int, int]:
    """Return the version, because `--size` and `--disable-userns` are not in every one."""
    try:
        done = subprocess.run([bubblewrap, "--version"], capture_output=True, text=True, timeout=_PROBE_SECONDS)
    except (OSError, subprocess.SubprocessError):
        return (0, 0)
    version = re.search(r"(\d+)\.(\d+)", done.stdout)
    return (int(version[1]), int(version[2])) if version else (0, 0)
