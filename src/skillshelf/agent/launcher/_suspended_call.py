"""A system call of a confined process that waits for the supervisor."""

import ctypes
import errno
import fcntl
import os
import struct

from skillshelf.agent.launcher._kernel import AT_FDCWD, SYS_PIDFD_GETFD, SYS_PIDFD_OPEN, system_call

_SECCOMP_IOCTL_NOTIF_RECV = 0xC0502100
_SECCOMP_IOCTL_NOTIF_SEND = 0xC0182101
_SECCOMP_IOCTL_NOTIF_ID_VALID = 0x40082102

# struct seccomp_notif: id, thread, flags; then struct seccomp_data: number, architecture, address, six arguments.
_NOTIFICATION = struct.Struct("QIIiIQ6Q")
# struct seccomp_notif_resp: id, result, negative error number, flags.
_RESPONSE = struct.Struct("QqiI")

_PATH_MAX = 4096
_MEMORY_PAGE = 4096
_FILESYSTEM_UID = 3
"""Its place in the line `Uid` of /proc/PID/status: real, effective, saved, filesystem."""


class SuspendedCall:
    """A system call of a confined process, which waits for its result.

    The arguments are as the process passed them. Its other threads can change the memory that they point to, so read
    each piece once and act on that copy.
    """

    def __init__(self, listener: int, notification: bytes) -> None:
        """Raises an exception of any kind if the process has gone or cannot be examined."""
        self.id, self.thread, _, self.number, _, _, *arguments = _NOTIFICATION.unpack(notification)
        self.arguments: list[int] = arguments
        self._listener = listener

        # In bytes: the first line is the name of the process, which can hold anything but a line feed.
        with open(f"/proc/{self.thread}/status", "rb") as file:
            fields = dict(line.split(b":", 1) for line in file)
        self.process = int(fields[b"Tgid"])
        self.user = int(fields[b"Uid"].split()[_FILESYSTEM_UID])
        """The user that the kernel checks access to files for."""
        self._memory = os.open(f"/proc/{self.thread}/mem", os.O_RDONLY | os.O_CLOEXEC)

    def close(self) -> None:
        os.close(self._memory)

    def is_waiting(self) -> bool:
        """Return False if the process has gone: then the data that was read belongs to another one."""
        try:
            fcntl.ioctl(self._listener, _SECCOMP_IOCTL_NOTIF_ID_VALID, struct.pack("Q", self.id))
        except OSError:
            return False
        return True

    def answer(self, code: int) -> None:
        """Let the call return: 0, or an error by its number."""
        _answer(self._listener, self.id, code)

    def integer(self, index: int) -> int:
        """Return an argument as a C int."""
        return ctypes.c_int(self.arguments[index] & 0xFFFFFFFF).value

    def unsigned(self, index: int) -> int:
        """Return an argument as a C unsigned int."""
        return self.arguments[index] & 0xFFFFFFFF

    def read(self, index: int, size: int) -> bytes:
        """Return memory that an argument points to. Raises OSError if the process has none there."""
        if size == 0:
            return b""
        data = os.pread(self._memory, size, self.arguments[index])
        if len(data) != size:
            raise OSError(errno.EFAULT, "bad address")
        return data

    def read_string(self, index: int, limit: int = _PATH_MAX) -> bytes:
        """Return the zero-ended string that an argument points to. Raises OSError."""
        text = b""
        address = self.arguments[index]
        while len(text) < limit:
            # To the end of the page: the next one may not be there.
            piece = os.pread(self._memory, _MEMORY_PAGE - address % _MEMORY_PAGE, address)
            if not piece:
                raise OSError(errno.EFAULT, "bad address")
            text += piece
            address += len(piece)
            if b"\0" in piece:
                return text[: text.index(b"\0")]
        raise OSError(errno.ENAMETOOLONG, "too long")

    def open_descriptor(self, number: int) -> int:
        """Return a copy of one of the process's descriptors. Raises OSError."""
        process = system_call(SYS_PIDFD_OPEN, ctypes.c_int(self.process), ctypes.c_uint(0))
        try:
            return system_call(SYS_PIDFD_GETFD, ctypes.c_int(process), ctypes.c_int(number), ctypes.c_uint(0))
        finally:
            os.close(process)

    def open_path(self, path: bytes, folder: int = AT_FDCWD, *, follow: bool = True) -> int:
        """Open the file that the process means by a path, as a place: without reading or writing it. Raises OSError.

        `folder` is the process's descriptor that a relative path starts from. `follow`: whether a link at the end of
        the path is followed.
        """
        path = self._name_process(path)
        flags = os.O_PATH | os.O_CLOEXEC
        if not follow:
            flags |= os.O_NOFOLLOW
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

    def _name_process(self, path: bytes) -> bytes:
        """Replace the names by which a process refers to itself: in the supervisor they mean the supervisor."""
        for own in (b"/proc/self/", b"/proc/thread-self/"):
            if path.startswith(own):
                path = b"/proc/%d/%s" % (self.process, path.removeprefix(own))
        if path.startswith(b"/dev/fd/"):
            path = b"/proc/%d/fd/%s" % (self.process, path.removeprefix(b"/dev/fd/"))
        return path


def receive_call(listener: int) -> SuspendedCall | None:
    """Take the next call that waits. Returns None if it is gone, or if its process cannot be examined."""
    notification = bytearray(_NOTIFICATION.size)
    try:
        fcntl.ioctl(listener, _SECCOMP_IOCTL_NOTIF_RECV, notification)
    except OSError:  # the process was killed meanwhile
        return None
    try:
        return SuspendedCall(listener, bytes(notification))
    except Exception:  # the process was killed, or descriptors have run out
        (number,) = struct.unpack_from("Q", notification)
        _answer(listener, number, errno.EAGAIN)
        return None


def _answer(listener: int, request: int, code: int) -> None:
    """Let the call with this id return: 0, or an error by its number."""
    try:
        fcntl.ioctl(listener, _SECCOMP_IOCTL_NOTIF_SEND, _RESPONSE.pack(request, 0, -code, 0))
    except OSError:  # its process was killed meanwhile
        return
