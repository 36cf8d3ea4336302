"""The steps that confine this process, level by level. None of them can be undone."""

import ctypes
import errno
import os
import struct

from skillshelf.agent.launcher._filter import install_filter
from skillshelf.agent.launcher._git import guard_repository
from skillshelf.agent.launcher._kernel import (
    PR_CAP_AMBIENT,
    PR_CAP_AMBIENT_CLEAR_ALL,
    PR_CAPBSET_DROP,
    call,
    libc,
    set_process_option,
)
from skillshelf.agent.launcher._landlock import restrict_writes
from skillshelf.agent.launcher._mounts import (
    SHARED_MEMORY,
    enter_mount_namespace,
    make_rest_read_only,
    mount_shared_memory,
)
from skillshelf.agent.launcher._plan import LaunchPlan
from skillshelf.agent.launcher._supervisor import METADATA_CALLS

_LINUX_CAPABILITY_VERSION_3 = 0x20080522
_END_OF_CAPABILITIES = 64
_CAP_CHOWN = 0
_CAP_DAC_OVERRIDE = 1
_CAP_FOWNER = 3
_CAP_FSETID = 4
_CAP_KILL = 5
_CAP_SETGID = 6
_CAP_SETUID = 7
_CAP_NET_BIND_SERVICE = 10
_CAP_NET_RAW = 13

_KEPT_CAPABILITIES = (
    _CAP_CHOWN,
    _CAP_DAC_OVERRIDE,
    _CAP_FOWNER,
    _CAP_FSETID,
    _CAP_KILL,
    _CAP_SETGID,
    _CAP_SETUID,
    _CAP_NET_BIND_SERVICE,
    _CAP_NET_RAW,
)
"""The capabilities that root keeps for ordinary work. CAP_SYS_ADMIN, which could make mounts writable again, and
CAP_DAC_READ_SEARCH, which opens files without a path, must not be among them."""


def confine(plan: LaunchPlan) -> int | None:
    """Confine this process and its future children as a plan says.

    Returns the descriptor that the supervisor listens on, or None if the level needs no supervisor. Raises OSError or
    ctypes.ArgumentError if this system cannot set the level up: then the process must not go on.
    """
    if plan.level == "landlock" and not plan.network:
        raise OSError(errno.ENOTSUP, "this level cannot keep a program from the network")
    writable = list(plan.writable)
    if plan.level == "mounted":
        _confine_by_mounts(plan)
        if os.path.isdir(SHARED_MEMORY):  # the namespace has one of its own
            writable.append(SHARED_MEMORY)

    # After the mounts, which need capabilities. Before the filter, which needs the "no new privileges" of Landlock.
    _drop_capabilities()
    restrict_writes(writable)

    if plan.level == "landlock":
        return None
    if plan.level == "mounted":  # read-only mounts refuse changes of metadata by themselves
        return install_filter(["connect"], network=plan.network)
    return install_filter(["connect", *METADATA_CALLS], network=plan.network)


def _confine_by_mounts(plan: LaunchPlan) -> None:
    """Move to a mount namespace in which all but the writable folders is read-only, and so is Git's configuration."""
    working_folder = os.getcwd()
    enter_mount_namespace()
    make_rest_read_only(plan.writable)
    for repository in plan.repositories:
        guard_repository(repository)
    mount_shared_memory()

    # Last: the process still stands on a mount from before, which is neither read-only nor guarded. The same path now
    # leads to the new ones.
    os.chdir(working_folder)


def _drop_capabilities() -> None:
    """Give up every capability but the kept ones, for good."""
    # The bounding set: a program that is executed later cannot regain any of these.
    for capability in range(_END_OF_CAPABILITIES):
        if capability in _KEPT_CAPABILITIES:
            continue
        try:
            set_process_option(PR_CAPBSET_DROP, capability)
        except OSError:  # past the last capability, or not privileged: then there is nothing to drop
            break

    # The kernel's data: effective, permitted and inheritable for the capabilities 0 to 31, then for 32 to 63. The zeros
    # give up the inheritable ones and all from 32 up.
    header = struct.pack("Ii", _LINUX_CAPABILITY_VERSION_3, 0)
    current = ctypes.create_string_buffer(24)
    call(libc.capget, header, current)
    effective, permitted = struct.unpack_from("2I", current.raw)
    mask = sum(1 << capability for capability in _KEPT_CAPABILITIES)
    call(libc.capset, header, struct.pack("6I", effective & mask, permitted & mask, 0, 0, 0, 0))

    set_process_option(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
