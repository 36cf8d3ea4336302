"""Landlock: the kernel denies a process and its children all writes outside some folders."""

import ctypes
import os
import struct
from collections.abc import Sequence

from skillshelf.sandbox._kernel import (
    PR_SET_NO_NEW_PRIVS,
    SYS_LANDLOCK_ADD_RULE,
    SYS_LANDLOCK_CREATE_RULESET,
    SYS_LANDLOCK_RESTRICT_SELF,
    set_process_option,
    system_call,
)

_LANDLOCK_CREATE_RULESET_VERSION = 1 << 0
_LANDLOCK_RULE_PATH_BENEATH = 1

# Landlock's names are long: here without their prefix LANDLOCK_ACCESS_FS_.
_EXECUTE = 1 << 0
_WRITE_FILE = 1 << 1
_READ_FILE = 1 << 2
_READ_DIR = 1 << 3
_MAKE_CHAR = 1 << 6
_MAKE_BLOCK = 1 << 11
_RIGHTS_OF_VERSION_1 = (1 << 13) - 1
_REFER = 1 << 13
_TRUNCATE = 1 << 14
_IOCTL_DEV = 1 << 15

# And these without LANDLOCK_SCOPE_.
_ABSTRACT_UNIX_SOCKET = 1 << 0
_SIGNAL = 1 << 1

_READING = _READ_FILE | _READ_DIR | _EXECUTE

# Programs expect to be able to write to these, and none of them stores anything.
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/random", "/dev/urandom")


def landlock_version() -> int:
    """Return the version of the kernel's Landlock. Raises OSError if it has none."""
    flags = ctypes.c_uint(_LANDLOCK_CREATE_RULESET_VERSION)
    return system_call(SYS_LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), flags)


def restrict_writes(folders: Sequence[str]) -> None:
    """Let this process and its children write below the folders only, for good."""
    version = landlock_version()
    handled = _handled_rights(version)
    ruleset = _create_ruleset(version, handled)

    _allow_below(ruleset, "/", _READING)
    for folder in folders:
        _allow_below(ruleset, folder, handled & ~(_MAKE_CHAR | _MAKE_BLOCK))
    for device in _DEVICES:
        if os.path.exists(device):
            _allow_below(ruleset, device, _READ_FILE | _WRITE_FILE | (handled & (_TRUNCATE | _IOCTL_DEV)))

    # Landlock demands this of a process without privileges: no program it executes may gain any.
    set_process_option(PR_SET_NO_NEW_PRIVS, 1)
    system_call(SYS_LANDLOCK_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint(0))
    os.close(ruleset)


def _handled_rights(version: int) -> int:
    """Return the rights that this Landlock knows. A process has lost each of them unless a rule allows it."""
    rights = _RIGHTS_OF_VERSION_1
    if version >= 2:
        rights |= _REFER
    if version >= 3:
        rights |= _TRUNCATE
    if version >= 5:
        rights |= _IOCTL_DEV  # otherwise a terminal that is open for reading can be reconfigured
    return rights


def _create_ruleset(version: int, handled: int) -> int:
    # struct landlock_ruleset_attr: rights on files, rights on the network, scopes. The scopes keep the process from
    # abstract sockets and signals outside. Older kernels refuse a structure with fields that they do not know.
    attributes = struct.pack("QQQ", handled, 0, _ABSTRACT_UNIX_SOCKET | _SIGNAL)
    if version < 6:
        attributes = attributes[:8]
    size = ctypes.c_size_t(len(attributes))
    return system_call(SYS_LANDLOCK_CREATE_RULESET, attributes, size, ctypes.c_uint(0))


def _allow_below(ruleset: int, path: str, rights: int) -> None:
    """Allow rights on a file, or on a folder and everything in it."""
    fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = struct.pack("=Qi", rights, fd)  # struct landlock_path_beneath_attr, which is packed
        kind = ctypes.c_int(_LANDLOCK_RULE_PATH_BENEATH)
        system_call(SYS_LANDLOCK_ADD_RULE, ctypes.c_int(ruleset), kind, rule, ctypes.c_uint(0))
    finally:
        os.close(fd)
