"""Carries out calls for a confined program, on files in the writable folders only.

The program waits meanwhile. The supervisor reads its arguments once, and acts on the file that it opened itself. So
another thread of the program cannot exchange a path between the check and the act.
"""

import ctypes
import errno
import os
import socket
import struct
import threading
from collections.abc import Callable

from skillshelf.agent.launcher._kernel import (
    AT_EMPTY_PATH,
    AT_FDCWD,
    AT_SYMLINK_NOFOLLOW,
    call,
    call_numbers,
    libc,
)
from skillshelf.agent.launcher._suspended_call import SuspendedCall, receive_call

_SOCKADDR_STORAGE_BYTES = 128
_XATTR_NAME_BYTES = 256
_XATTR_SIZE_MAX = 65_536
_NANOSECONDS_PER_MICROSECOND = 1000


class Supervisor:
    """Answers the calls of a confined program until its last process has ended."""

    def __init__(self, listener: int, writable: list[str]) -> None:
        self._listener = listener
        self._writable = tuple(os.path.join(folder, "") for folder in writable)
        self._names = {number: name for name, number in call_numbers().items()}

    def serve(self) -> None:
        """Answer the next call. Nothing that a program does may end the supervisor, which guards more than this."""
        request = receive_call(self._listener)
        if request is None:
            return
        if self._names.get(request.number) != "connect":
            self._carry_out(request, self._change_metadata)
            return

        # A connection may take minutes, and others must not wait for it.
        thread = threading.Thread(target=self._carry_out, args=(request, self._connect), daemon=True)
        try:
            thread.start()
        except RuntimeError:  # there are too many threads
            request.answer(errno.EAGAIN)
            request.close()

    def _carry_out(self, request: SuspendedCall, action: Callable[[SuspendedCall], None]) -> None:
        """Do what a call asks for, and answer it."""
        try:
            action(request)
            code = 0
        except OSError as error:
            code = error.errno or errno.EACCES
        except Exception:  # a fault of ours must not let a call through
            code = errno.EACCES
        request.answer(code)
        request.close()

    def _connect(self, request: SuspendedCall) -> None:
        """Carry out connect(socket, address, size)."""
        address = request.read(1, min(request.unsigned(2), _SOCKADDR_STORAGE_BYTES))
        with socket.socket(fileno=request.open_descriptor(request.integer(0))) as peer:
            if peer.family != socket.AF_UNIX:  # the network is open to commands
                if request.is_waiting():
                    _connect_socket(peer, address)
                return

            # struct sockaddr_un: the family in two bytes, then the path up to a zero.
            path = address[2:].split(b"\0")[0]
            if not path:  # an abstract name, which any process on the machine can have
                raise PermissionError(errno.EPERM, "not a path")
            target = request.open_path(path)
            try:
                self._check_place(target)
                checked_address = struct.pack("H", socket.AF_UNIX) + _own_path(target) + b"\0"
                if request.is_waiting():
                    _connect_socket(peer, checked_address)
            finally:
                os.close(target)

    def _change_metadata(self, request: SuspendedCall) -> None:
        """Carry out a call that changes the mode, the owner, the times or the attributes of a file."""
        metadata_call = METADATA_CALLS[self._names[request.number]]
        if request.user != os.geteuid():  # it gave up rights that this process has
            raise PermissionError(errno.EPERM, "another user")
        target = metadata_call.open_target(request)
        try:
            self._check_place(target)
            if request.is_waiting():
                metadata_call.apply(request, target)
        finally:
            os.close(target)

    def _check_place(self, target: int) -> None:
        """Raise PermissionError unless an open file is in a writable folder, or in no folder at all."""
        place = os.readlink(f"/proc/self/fd/{target}")
        if not place.startswith("/") or place.startswith("/memfd:"):  # a pipe, a socket, a file in memory
            return
        if not f"{place}/".startswith(self._writable):
            raise PermissionError(errno.EACCES, "outside the writable folders")


def _connect_socket(peer: socket.socket, address: bytes) -> None:
    call(libc.connect, peer.fileno(), address, len(address))


def _own_path(target: int) -> bytes:
    """Return a path that leads this process to an open file, wherever it has been moved meanwhile."""
    return b"/proc/self/fd/%d" % target


class MetadataCall:
    """How to carry out one of the calls that change a file's mode, owner, times or attributes."""

    def __init__(
        self,
        apply: Callable[[SuspendedCall, int], None],
        *,
        folder: int | None = None,
        path: int | None = 0,
        flags: int | None = None,
        follow: bool = True,
    ) -> None:
        """`apply(request, target)` makes the change to the open file `target`.

        `folder`, `path`, `flags`: which arguments of the call these are. Without a path, the file is open as argument
        0. `follow`: whether the call follows a link at the end of the path, if its flags do not forbid it.
        """
        self.apply = apply
        self._folder = folder
        self._path = path
        self._flags = flags
        self._follow = follow

    def open_target(self, request: SuspendedCall) -> int:
        """Open the file that a call is about, as a place or as the process has it open. Raises OSError."""
        if self._path is None:
            return request.open_descriptor(request.integer(0))
        # utimensat and futimesat take a null pointer as the path, and then mean the descriptor of the folder.
        if self._folder is not None and request.arguments[self._path] == 0:
            return request.open_descriptor(request.integer(self._folder))

        folder = AT_FDCWD
        if self._folder is not None:
            folder = request.integer(self._folder)
        flags = 0
        if self._flags is not None:
            flags = request.arguments[self._flags]

        path = request.read_string(self._path)
        if path:
            return request.open_path(path, folder, follow=self._follow and not flags & AT_SYMLINK_NOFOLLOW)
        if not flags & AT_EMPTY_PATH:
            raise FileNotFoundError(errno.ENOENT, "no path")
        if folder == AT_FDCWD:
            return request.open_path(b".")
        return request.open_descriptor(folder)


def _set_mode(mode_argument: int) -> Callable[[SuspendedCall, int], None]:
    def apply(request: SuspendedCall, target: int) -> None:
        os.chmod(_own_path(target), request.arguments[mode_argument] & 0o7777)

    return apply


def _set_owner(owner_argument: int) -> Callable[[SuspendedCall, int], None]:
    """Set the owner, and the group from the argument after it."""

    def apply(request: SuspendedCall, target: int) -> None:
        owner = ctypes.c_uint(request.unsigned(owner_argument))
        group = ctypes.c_uint(request.unsigned(owner_argument + 1))
        call(libc.fchownat, target, b"", owner, group, AT_EMPTY_PATH)

    return apply


def _set_times(times_argument: int, unit: int) -> Callable[[SuspendedCall, int], None]:
    """Set the times of access and modification, each given as seconds and a number of units of `unit` nanoseconds."""

    def apply(request: SuspendedCall, target: int) -> None:
        times = None  # now
        if request.arguments[times_argument]:
            accessed, accessed_units, modified, modified_units = struct.unpack("4q", request.read(times_argument, 32))
            times = struct.pack("4q", accessed, accessed_units * unit, modified, modified_units * unit)
        call(libc.utimensat, AT_FDCWD, _own_path(target), times, 0)

    return apply


def _set_times_in_seconds(request: SuspendedCall, target: int) -> None:
    """Set the times of access and modification as utime does, which knows whole seconds only."""
    times = None  # now
    if request.arguments[1]:
        accessed, modified = struct.unpack("2q", request.read(1, 16))
        times = struct.pack("4q", accessed, 0, modified, 0)
    call(libc.utimensat, AT_FDCWD, _own_path(target), times, 0)


def _set_attribute(request: SuspendedCall, target: int) -> None:
    """Carry out setxattr(file, name, value, size, flags)."""
    size = request.arguments[3]
    if size > _XATTR_SIZE_MAX:
        raise OSError(errno.E2BIG, "too long")
    value = request.read(2, size)
    name = request.read_string(1, _XATTR_NAME_BYTES)
    call(libc.setxattr, _own_path(target), name, value, ctypes.c_size_t(size), request.integer(4))


def _remove_attribute(request: SuspendedCall, target: int) -> None:
    """Carry out removexattr(file, name)."""
    call(libc.removexattr, _own_path(target), request.read_string(1, _XATTR_NAME_BYTES))


METADATA_CALLS = {
    "chmod": MetadataCall(_set_mode(1)),
    "fchmod": MetadataCall(_set_mode(1), path=None),
    "fchmodat": MetadataCall(_set_mode(2), folder=0, path=1),
    "fchmodat2": MetadataCall(_set_mode(2), folder=0, path=1, flags=3),
    "chown": MetadataCall(_set_owner(1)),
    "lchown": MetadataCall(_set_owner(1), follow=False),
    "fchown": MetadataCall(_set_owner(1), path=None),
    "fchownat": MetadataCall(_set_owner(2), folder=0, path=1, flags=4),
    "utime": MetadataCall(_set_times_in_seconds),
    "utimes": MetadataCall(_set_times(1, _NANOSECONDS_PER_MICROSECOND)),
    "futimesat": MetadataCall(_set_times(2, _NANOSECONDS_PER_MICROSECOND), folder=0, path=1),
    "utimensat": MetadataCall(_set_times(2, 1), folder=0, path=1, flags=3),
    "setxattr": MetadataCall(_set_attribute),
    "lsetxattr": MetadataCall(_set_attribute, follow=False),
    "fsetxattr": MetadataCall(_set_attribute, path=None),
    "removexattr": MetadataCall(_remove_attribute),
    "lremovexattr": MetadataCall(_remove_attribute, follow=False),
    "fremovexattr": MetadataCall(_remove_attribute, path=None),
}
"""The calls that the level `supervised` carries out, by name."""
