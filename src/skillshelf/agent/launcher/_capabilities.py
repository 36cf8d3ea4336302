"""What root may still do when it is confined."""

import ctypes
import struct

from skillshelf.agent.launcher._calls import call, libc, set_process_option

_KEPT_CAPABILITIES = (0, 1, 3, 4, 5, 6, 7, 10, 13)
"""chown, dac_override, fowner, fsetid, kill, setgid, setuid, net_bind_service, net_raw. Above all not sys_admin, which
could make mounts writable again, and not dac_read_search, which opens files without a path."""


def drop_capabilities() -> None:
    """Give up every capability but the kept ones, for good."""
    for capability in range(64):
        if capability not in _KEPT_CAPABILITIES:
            try:
                set_process_option(24, capability)  # PR_CAPBSET_DROP
            except OSError:  # past the last one, or not privileged: then there is nothing to drop
                break
    header = struct.pack("Ii", 0x20080522, 0)
    current = ctypes.create_string_buffer(24)
    call(libc.capget, header, current)
    mask = sum(1 << capability for capability in _KEPT_CAPABILITIES)
    effective, permitted, _, *_ = struct.unpack("6I", current.raw)
    call(libc.capset, header, struct.pack("6I", effective & mask, permitted & mask, 0, 0, 0, 0))
    set_process_option(47, 4)  # PR_CAP_AMBIENT, clear all
