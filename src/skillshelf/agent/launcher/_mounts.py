"""A mount namespace in which only some folders can be changed."""

import ctypes
import os
import stat
import struct

from skillshelf.agent.launcher._calls import AT_EMPTY_PATH, AT_FDCWD, call, libc, system_call

_OPEN_TREE = 428
_MOVE_MOUNT = 429
_MOUNT_SETATTR = 442
_AT_RECURSIVE = 0x8000
_CLONE_NEWNS = 0x00020000
_CLONE_NEWIPC = 0x08000000
_CLONE_NEWUSER = 0x10000000
_MS_NOSUID = 1 << 1
_MS_NODEV = 1 << 2
_MS_REC = 1 << 14
_MS_PRIVATE = 1 << 18
SHARED_MEMORY = "/dev/shm"
_OPEN_OR_MAKE = os.O_CREAT | os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MAX_CONFIG = 1024 * 1024

_GUARDED_NAMES = ("config", "config.worktree", "hooks", "commondir")
"""Git takes programs to run from these, or the place of the others."""
_GUARDED_WORKTREE_NAMES = ("config.worktree", "commondir", "gitdir")
"""The same in the directory that a repository has for each of its linked worktrees."""


def mount_read_only(writable: list[str], repositories: list[str]) -> None:
    """Move to a mount namespace in which only the writable folders can be changed."""
    here = os.getcwd()
    _enter_namespaces()
    call(libc.mount, b"none", b"/", None, ctypes.c_ulong(_MS_REC | _MS_PRIVATE), None)

    # Copies of the mounts as they are now, taken before everything becomes read-only and put in place after.
    copies = [(folder, _copy_mount(folder)) for folder in writable]
    _make_read_only(AT_FDCWD, "/")
    for folder, copy in copies:
        _attach(copy, folder)
    for repository in repositories:
        _guard(repository)

    if os.path.isdir(SHARED_MEMORY):  # the locks of Python's multiprocessing live there
        flags = ctypes.c_ulong(_MS_NOSUID | _MS_NODEV)
        call(libc.mount, b"tmpfs", SHARED_MEMORY.encode(), b"tmpfs", flags, b"mode=1777")
    os.chdir(here)  # the same path, on the mount that is now there


def _enter_namespaces() -> None:
    user = os.geteuid()
    group = os.getegid()
    try:
        call(libc.unshare, _CLONE_NEWNS | _CLONE_NEWIPC)
        return
    except PermissionError:
        call(libc.unshare, _CLONE_NEWUSER | _CLONE_NEWNS | _CLONE_NEWIPC)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def _guard(repository: str) -> None:
    """Make the parts of a Git directory that name programs read-only, and keep it from being renamed or replaced."""
    if not os.path.isdir(repository):  # a file that says where the directory is
        _mount_again(repository, read_only=True)
        return
    _make_missing_names(repository)
    _guard_names(repository, _GUARDED_NAMES)
    worktrees = os.path.join(repository, "worktrees")
    if os.path.isdir(worktrees) and not os.path.islink(worktrees):
        for name in os.listdir(worktrees):
            _guard_names(os.path.join(worktrees, name), _GUARDED_WORKTREE_NAMES)


def _make_missing_names(repository: str) -> None:
    """Make the hooks folder and the configuration if they are missing, as `git init` does: a mount needs a place."""
    try:
        os.makedirs(os.path.join(repository, "hooks"), exist_ok=True)
        config = os.open(os.path.join(repository, "config"), _OPEN_OR_MAKE, 0o644)
        try:
            has_worktree_config = _mentions_worktree_config(config)
        finally:
            os.close(config)
        if has_worktree_config:
            os.close(os.open(os.path.join(repository, "config.worktree"), _OPEN_OR_MAKE, 0o644))
    except OSError:  # the program cannot make them either, or one is a link
        return


def _mentions_worktree_config(config: int) -> bool:
    """Tell whether an open configuration may let Git read a second one. It may be anything that a clone brought."""
    info = os.fstat(config)
    if not stat.S_ISREG(info.st_mode):
        return False
    return info.st_size > _MAX_CONFIG or b"worktreeconfig" in os.read(config, _MAX_CONFIG).lower()


def _guard_names(folder: str, guarded: tuple[str, ...]) -> None:
    if os.path.islink(folder) or not os.path.isdir(folder):
        return
    paths = [os.path.join(folder, name) for name in guarded]
    present = [path for path in paths if os.path.lexists(path)]
    # A link cannot be held in place by a mount. Git can then read the folder, but not write to it.
    has_link = any(os.path.islink(path) for path in present)
    _mount_again(folder, read_only=has_link)
    if not has_link:
        for path in present:
            _mount_again(path, read_only=True)


def _mount_again(path: str, *, read_only: bool) -> None:
    """Mount a file or folder on itself: the mount point can be neither renamed nor removed."""
    copy = _copy_mount(path)
    if read_only:
        _make_read_only(copy, "")
    _attach(copy, path)


def _copy_mount(path: str) -> int:
    flags = ctypes.c_uint(1 | os.O_CLOEXEC | _AT_RECURSIVE)
    return system_call(_OPEN_TREE, ctypes.c_int(AT_FDCWD), os.fsencode(path), flags)


def _attach(copy: int, path: str) -> None:
    from_empty_path = 4
    system_call(_MOVE_MOUNT, ctypes.c_int(copy), b"", ctypes.c_int(AT_FDCWD), os.fsencode(path), from_empty_path)
    os.close(copy)


def _make_read_only(folder: int, path: str) -> None:
    attributes = struct.pack("QQQQ", 1, 0, 0, 0)
    flags = ctypes.c_uint(_AT_RECURSIVE | (0 if path else AT_EMPTY_PATH))
    system_call(_MOUNT_SETATTR, ctypes.c_int(folder), os.fsencode(path), flags, attributes, ctypes.c_size_t(32))
