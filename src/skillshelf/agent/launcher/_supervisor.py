"""Carries out calls for a confined program, on files in the writable folders only.

The program waits meanwhile. What it passed is read once, and the supervisor acts on the file that it opened itself, so
that another thread of the program cannot exchange a path between the check and the act.
"""

import ctypes
import errno
import fcntl
import os
import socket
import struct
import threading
from collections.abc import Callable

from skillshelf.agent.launcher._calls import AT_EMPTY_PATH, AT_FDCWD, call, call_numbers, libc, system_call

_RECEIVE = 0xC0502100
_SEND = 0xC0182101
_IS_VALID = 0x40082102
_PIDFD_OPEN = 434
_PIDFD_GETFD = 438
_NOFOLLOW = 0x100
_MAX_PATH = 4096
_MAX_ATTRIBUTE = 65_536


class Request:
    """A system call of a confined process, which waits for its result."""

    def __init__(self, listener: int, notification: bytes) -> None:
        self.id, self.thread, _, self.number, _, _, *arguments = struct.unpack("QIIiIQ6Q", notification)
        self.arguments: list[int] = arguments
        self._listener = listener
        # In bytes: the first line is the name of the process, which can hold anything but a line feed.
        with open(f"/proc/{self.thread}/status", "rb") as file:
            fields = dict(line.split(b":", 1) for line in file)
        self.process = int(fields[b"Tgid"])
        self.user = int(fields[b"Uid"].split()[3])
        self._memory = os.open(f"/proc/{self.thread}/mem", os.O_RDONLY | os.O_CLOEXEC)

    def close(self) -> None:
        os.close(self._memory)

    def is_waiting(self) -> bool:
        """False if the process has gone: then what was read belongs to another one."""
        try:
            fcntl.ioctl(self._listener, _IS_VALID, struct.pack("Q", self.id))
        except OSError:
            return False
        return True

    def answer(self, code: int) -> None:
        """Let the call return: 0, or an error by its number."""
        _answer(self._listener, self.id, code)

    def integer(self, index: int) -> int:
        """Return an argument as a C int."""
        value = self.arguments[index] & 0xFFFFFFFF
        return value - (1 << 32) if value >> 31 else value

    def read(self, index: int, size: int) -> bytes:
        """Return memory that an argument points to."""
        data = os.pread(self._memory, size, self.arguments[index]) if size else b""
        if len(data) != size:
            raise OSError(errno.EFAULT, "bad address")
        return data

    def read_text(self, index: int, limit: int = _MAX_PATH) -> bytes:
        """Return the zero-ended string that an argument points to."""
        text = b""
        address = self.arguments[index]
        while len(text) < limit:
            page = os.pread(self._memory, 4096 - address % 4096, address)
            if not page:
                raise OSError(errno.EFAULT, "bad address")
            text += page
            address += len(page)
            if b"\0" in page:
                return text[: text.index(b"\0")]
        raise OSError(errno.ENAMETOOLONG, "too long")

    def open_descriptor(self, number: int) -> int:
        """Return a copy of one of the process's descriptors."""
        process = system_call(_PIDFD_OPEN, ctypes.c_int(self.process), ctypes.c_uint(0))
        try:
            return system_call(_PIDFD_GETFD, ctypes.c_int(process), ctypes.c_int(number), ctypes.c_uint(0))
        finally:
            os.close(process)

    def open_path(self, path: bytes, folder: int = AT_FDCWD, *, follow: bool = True) -> int:
        """Open what a path of the process means, without reading or writing it."""
        for own in (b"/proc/self/", b"/proc/thread-self/"):
            if path.startswith(own):
                path = b"/proc/%d/%s" % (self.process, path[len(own) :])
        if path.startswith(b"/dev/fd/"):
            path = b"/proc/%d/fd/%s" % (self.process, path[8:])
        flags = os.O_PATH | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
        if path.startswith(b"/"):
            return os.open(path, flags)
        if folder == AT_FDCWD:
            base = os.open(f"/proc/{self.thread}/cwd", os.O_PATH | os.O_CLOEXEC)
        else:
            base = self.open_descriptor(folder)
        try:
            return os.open(path, flags, dir_fd=base)
        finally:
            os.close(base)


class Supervisor:
    """Answers the calls of a confined program until its last process has ended."""

    def __init__(self, listener: int, writable: list[str]) -> None:
        self._listener = listener
        self._writable = tuple(os.path.join(folder, "") for folder in writable)
        self._names = {number: name for name, number in call_numbers().items()}

    def serve(self) -> None:
        """Answer the next call. Nothing that a program does may end the supervisor, which guards more than this."""
        notification = bytearray(80)
        try:
            fcntl.ioctl(self._listener, _RECEIVE, notification)
        except OSError:  # the process was killed meanwhile
            return
        try:
            request = Request(self._listener, bytes(notification))
        except Exception:  # it cannot be looked at: it was killed, or descriptors have run out
            _answer(self._listener, struct.unpack_from("Q", notification)[0], errno.EAGAIN)
            return
        if self._names.get(request.number) != "connect":
            self._carry_out(request, self._change)
            return
        # A connection may take minutes, and others must not wait for it.
        thread = threading.Thread(target=self._carry_out, args=(request, self._connect), daemon=True)
        try:
            thread.start()
        except RuntimeError:  # there are too many
            request.answer(errno.EAGAIN)
            request.close()

    def _carry_out(self, request: Request, action: Callable[[Request], None]) -> None:
        try:
            action(request)
            code = 0
        except OSError as error:
            code = error.errno or errno.EACCES
        except Exception:  # a fault of ours must not let a call through
            code = errno.EACCES
        request.answer(code)
        request.close()

    def _connect(self, request: Request) -> None:
        address = request.read(1, min(request.arguments[2] & 0xFFFFFFFF, 128))
        with socket.socket(fileno=request.open_descriptor(request.integer(0))) as peer:
            if peer.family != socket.AF_UNIX:
                self._finish(request, lambda: _connect(peer, address))
                return
            path = address[2:].split(b"\0")[0]
            if not path:  # an abstract name, which any process on the machine can have
                raise PermissionError(errno.EPERM, "not a path")
            target = request.open_path(path)
            try:
                self._check_place(target)
                own_name = b"/proc/self/fd/%d\0" % target
                self._finish(request, lambda: _connect(peer, struct.pack("H", socket.AF_UNIX) + own_name))
            finally:
                os.close(target)

    def _change(self, request: Request) -> None:
        """Change the mode, the owner, the times or the attributes of a file."""
        change = FILE_CHANGES[self._names[request.number]]
        if request.user != os.geteuid():  # it gave up rights that this process has
            raise PermissionError(errno.EPERM, "another user")
        target = change.open_target(request)
        try:
            self._check_place(target)
            self._finish(request, lambda: change.apply(request, target))
        finally:
            os.close(target)

    def _finish(self, request: Request, action: Callable[[], object]) -> None:
        if request.is_waiting():
            action()

    def _check_place(self, target: int) -> None:
        """Raise PermissionError unless an open file lies in a writable folder, or in no folder at all."""
        place = os.readlink(f"/proc/self/fd/{target}")
        if not place.startswith("/") or place.startswith("/memfd:"):
            return
        if not f"{place}/".startswith(self._writable):
            raise PermissionError(errno.EACCES, "outside the writable folders")


def _answer(listener: int, number: int, code: int) -> None:
    """Let the call with this number return: 0, or an error by its number."""
    try:
        fcntl.ioctl(listener, _SEND, struct.pack("QqiI", number, 0, -code, 0))
    except OSError:  # its process was killed meanwhile
        return


def _connect(peer: socket.socket, address: bytes) -> None:
    call(libc.connect, peer.fileno(), address, len(address))


class MetadataChange:
    """How to carry out one of the calls that change a file's mode, owner, times or attributes."""

    def __init__(
        self,
        apply: Callable[[Request, int], None],
        *,
        folder: int | None = None,
        path: int | None = 0,
        flags: int | None = None,
        follow: bool = True,
    ) -> None:
        """`folder`, `path`, `flags`: which arguments these are. Without a path, the file is open as argument 0."""
        self.apply = apply
        self._folder = folder
        self._path = path
        self._flags = flags
        self._follow = follow

    def open_target(self, request: Request) -> int:
        flags = request.arguments[self._flags] if self._flags is not None else 0
        folder = request.integer(self._folder) if self._folder is not None else AT_FDCWD
        if self._path is None or (self._folder is not None and request.arguments[self._path] == 0):
            return request.open_descriptor(request.integer(0))
        path = request.read_text(self._path)
        if path:
            return request.open_path(path, folder, follow=self._follow and not flags & _NOFOLLOW)
        if not flags & AT_EMPTY_PATH:
            raise FileNotFoundError(errno.ENOENT, "no path")
        return request.open_path(b".") if folder == AT_FDCWD else request.open_descriptor(folder)


def _own_path(target: int) -> bytes:
    return b"/proc/self/fd/%d" % target


def _set_mode(at: int) -> Callable[[Request, int], None]:
    return lambda request, target: os.chmod(_own_path(target), request.arguments[at] & 0o7777)


def _set_owner(at: int) -> Callable[[Request, int], None]:
    def apply(request: Request, target: int) -> None:
        owner = ctypes.c_uint(request.arguments[at] & 0xFFFFFFFF)
        group = ctypes.c_uint(request.arguments[at + 1] & 0xFFFFFFFF)
        call(libc.fchownat, target, b"", owner, group, AT_EMPTY_PATH)

    return apply


def _set_times(at: int, layout: str, unit: int) -> Callable[[Request, int], None]:
    """`layout`: the times in memory. `unit`: nanoseconds in the second number of each, 0 if there is none."""

    def apply(request: Request, target: int) -> None:
        times = None
        if request.arguments[at]:
            values = struct.unpack(layout, request.read(at, struct.calcsize(layout)))
            if unit == 0:
                times = struct.pack("4q", values[0], 0, values[1], 0)
            else:
                times = struct.pack("4q", values[0], values[1] * unit, values[2], values[3] * unit)
        call(libc.utimensat, AT_FDCWD, _own_path(target), times, 0)

    return apply


def _set_attribute(request: Request, target: int) -> None:
    size = request.arguments[3]
    if size > _MAX_ATTRIBUTE:
        raise OSError(errno.E2BIG, "too long")
    value = request.read(2, size)
    call(libc.setxattr, _own_path(target), request.read_text(1, 256), value, ctypes.c_size_t(size), request.integer(4))


def _remove_attribute(request: Request, target: int) -> None:
    call(libc.removexattr, _own_path(target), request.read_text(1, 256))


FILE_CHANGES = {
    "chmod": MetadataChange(_set_mode(1)),
    "fchmod": MetadataChange(_set_mode(1), path=None),
    "fchmodat": MetadataChange(_set_mode(2), folder=0, path=1),
    "fchmodat2": MetadataChange(_set_mode(2), folder=0, path=1, flags=3),
    "chown": MetadataChange(_set_owner(1)),
    "lchown": MetadataChange(_set_owner(1), follow=False),
    "fchown": MetadataChange(_set_owner(1), path=None),
    "fchownat": MetadataChange(_set_owner(2), folder=0, path=1, flags=4),
    "utime": MetadataChange(_set_times(1, "2q", 0)),
    "utimes": MetadataChange(_set_times(1, "4q", 1000)),
    "futimesat": MetadataChange(_set_times(2, "4q", 1000), folder=0, path=1),
    "utimensat": MetadataChange(_set_times(2, "4q", 1), folder=0, path=1, flags=3),
    "setxattr": MetadataChange(_set_attribute),
    "lsetxattr": MetadataChange(_set_attribute, follow=False),
    "fsetxattr": MetadataChange(_set_attribute, path=None),
    "removexattr": MetadataChange(_remove_attribute),
    "lremovexattr": MetadataChange(_remove_attribute, follow=False),
    "fremovexattr": MetadataChange(_remove_attribute, path=None),
}
