"""Fixtures for threats: a hostile workspace, and the rights of an ordinary user."""

import ctypes
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from threats.workspace import Workspace

_CAPABILITIES_V3 = 0x20080522
_DAC_OVERRIDE, _DAC_READ_SEARCH = 1 << 1, 1 << 2


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


@pytest.fixture
def ordinary_user(tmp_path: Path) -> Iterator[None]:
    """Drop the capability to read any file: as root, a test of unreadable files would prove nothing."""
    restore = _drop_override() if os.geteuid() == 0 else None
    try:
        probe = tmp_path / "probe"
        probe.touch(mode=0)
        with suppress(PermissionError):
            probe.read_bytes()
            pytest.skip("this user can read any file and cannot give that up")
        yield
    finally:
        if restore:
            restore()


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Data(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


def _drop_override() -> Callable[[], None] | None:
    """Drop it for this thread, and return a function that restores it.

    Return None if the system has no capabilities.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    header, data = _Header(_CAPABILITIES_V3, 0), (_Data * 2)()
    if not hasattr(libc, "capget") or libc.capget(ctypes.byref(header), data):
        return None
    effective = data[0].effective
    data[0].effective = effective & ~(_DAC_OVERRIDE | _DAC_READ_SEARCH)
    if libc.capset(ctypes.byref(header), data):
        return None

    def restore() -> None:
        data[0].effective = effective
        assert libc.capset(ctypes.byref(header), data) == 0

    return restore
