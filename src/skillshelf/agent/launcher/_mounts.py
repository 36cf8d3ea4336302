"""A mount namespace in which only some folders can be changed."""

import ctypes
import os
import struct

from skillshelf.agent.launcher._kernel import (
    AT_EMPTY_PATH,
    AT_FDCWD,
    SYS_MOUNT_SETATTR,
    SYS_MOVE_MOUNT,
    SYS_OPEN_TREE,
    call,
    libc,
    system_call,
)

SHARED_MEMORY = "/dev/shm"

_CLONE_NEWNS = 0x00020000
_CLONE_NEWIPC = 0x08000000
_CLONE_NEWUSER = 0x10000000

_MS_NOSUID = 1 << 1
_MS_NODEV = 1 << 2
_MS_REC = 1 << 14
_MS_PRIVATE = 1 << 18

_AT_RECURSIVE = 0x8000
_OPEN_TREE_CLONE = 1
_MOVE_MOUNT_F_EMPTY_PATH = 4
_MOUNT_ATTR_RDONLY = 1


def enter_mount_namespace() -> None:
    """Move this process to a mount namespace of its own, from which no mount reaches the others."""
    user = os.geteuid()
    group = os.getegid()
    try:
        call(libc.unshare, _CLONE_NEWNS | _CLONE_NEWIPC)
    except PermissionError:
        # An ordinary user needs a user namespace for that, in which the user and the group stay who they are.
        call(libc.unshare, _CLONE_NEWUSER | _CLONE_NEWNS | _CLONE_NEWIPC)
        _write_own_file("setgroups", "deny")
        _write_own_file("uid_map", f"{user} {user} 1")
        _write_own_file("gid_map", f"{group} {group} 1")
    call(libc.mount, b"none", b"/", None, ctypes.c_ulong(_MS_REC | _MS_PRIVATE), None)


def _write_own_file(name: str, text: str) -> None:
    with open(f"/proc/self/{name}", "w") as file:
        file.write(text)


def make_rest_read_only(writable: list[str]) -> None:
    """Make every mount read-only, except for the writable folders."""
    # Copies of the mounts as they are now, taken before everything becomes read-only and put in place after.
    copies = [(folder, _copy_mount(folder)) for folder in writable]
    _make_read_only(AT_FDCWD, "/")
    for folder, copy in copies:
        _attach(copy, folder)


def mount_shared_memory() -> None:
    """Mount empty shared memory, if the system has any. The locks of Python's multiprocessing live there."""
    if os.path.isdir(SHARED_MEMORY):
        flags = ctypes.c_ulong(_MS_NOSUID | _MS_NODEV)
        call(libc.mount, b"tmpfs", SHARED_MEMORY.encode(), b"tmpfs", flags, b"mode=1777")


def mount_in_place(path: str, *, read_only: bool) -> None:
    """Mount a file or folder on itself: a mount point can be neither renamed nor removed."""
    copy = _copy_mount(path)
    if read_only:
        _make_read_only(copy, "")
    _attach(copy, path)


def _copy_mount(path: str) -> int:
    """Return the descriptor of a mount that shows a file or folder, with the mounts below it, and is not in place."""
    flags = ctypes.c_uint(_OPEN_TREE_CLONE | os.O_CLOEXEC | _AT_RECURSIVE)
    return system_call(SYS_OPEN_TREE, ctypes.c_int(AT_FDCWD), os.fsencode(path), flags)


def _attach(copy: int, path: str) -> None:
    """Put a copied mount in place, and close its descriptor."""
    system_call(
        SYS_MOVE_MOUNT,
        ctypes.c_int(copy),
        b"",
        ctypes.c_int(AT_FDCWD),
        os.fsencode(path),
        ctypes.c_uint(_MOVE_MOUNT_F_EMPTY_PATH),
    )
    os.close(copy)


def _make_read_only(folder: int, path: str) -> None:
    """Make a mount and those below it read-only. With an empty path, it is the mount that is open as `folder`."""
    flags = _AT_RECURSIVE
    if not path:
        flags |= AT_EMPTY_PATH
    attributes = struct.pack("QQQQ", _MOUNT_ATTR_RDONLY, 0, 0, 0)  # struct mount_attr; the first field is attr_set
    system_call(
        SYS_MOUNT_SETATTR,
        ctypes.c_int(folder),
        os.fsencode(path),
        ctypes.c_uint(flags),
        attributes,
        ctypes.c_size_t(len(attributes)),
    )
