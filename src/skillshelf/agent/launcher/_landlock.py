"""Landlock: what the kernel refuses by itself."""

import ctypes
import os
import struct

from skillshelf.agent.launcher._calls import set_process_option, system_call

_CREATE_RULESET = 444
_ADD_RULE = 445
_RESTRICT_SELF = 446
_EXECUTE = 1 << 0
_WRITE_FILE = 1 << 1
_READ_FILE = 1 << 2
_READ_DIR = 1 << 3
_MAKE_CHAR = 1 << 6
_MAKE_BLOCK = 1 << 11
_REFER = 1 << 13
_TRUNCATE = 1 << 14
_DEVICE_CONTROL = 1 << 15
_SCOPE_ABSTRACT_SOCKETS = 1 << 0
_SCOPE_SIGNALS = 1 << 1
_NO_NEW_PRIVILEGES = 38

# Programs expect to be able to write to these, and none of them keeps anything.
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/random", "/dev/urandom")


def landlock_version() -> int:
    """Return the version of the kernel's Landlock. Raises OSError if it has none."""
    return system_call(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint(1))


def restrict_writes(folders: list[str]) -> None:
    """Let this process and its children write below the folders only, for good."""
    version = landlock_version()
    every = (1 << 13) - 1
    if version >= 2:
        every |= _REFER
    if version >= 3:
        every |= _TRUNCATE
    if version >= 5:
        every |= _DEVICE_CONTROL  # else a terminal that is open for reading can be set up anew
    attributes = struct.pack("QQQ", every, 0, _SCOPE_ABSTRACT_SOCKETS | _SCOPE_SIGNALS)
    size = 24 if version >= 6 else 8
    ruleset = system_call(_CREATE_RULESET, attributes, ctypes.c_size_t(size), ctypes.c_uint(0))

    _allow_below(ruleset, "/", _READ_FILE | _READ_DIR | _EXECUTE)
    for folder in folders:
        _allow_below(ruleset, folder, every & ~(_MAKE_CHAR | _MAKE_BLOCK))
    for device in _DEVICES:
        if os.path.exists(device):
            _allow_below(ruleset, device, _READ_FILE | _WRITE_FILE | (every & (_TRUNCATE | _DEVICE_CONTROL)))

    set_process_option(_NO_NEW_PRIVILEGES, 1)
    system_call(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint(0))
    os.close(ruleset)


def _allow_below(ruleset: int, path: str, rights: int) -> None:
    fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = struct.pack("=Qi", rights, fd)
        system_call(_ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(1), rule, ctypes.c_uint(0))
    finally:
        os.close(fd)
