"""Sources on this machine: a folder, and an archive."""

import hashlib
import os
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BytesIO

from skillshelf.errors import RegistryError
from skillshelf.files import NotPlainFile, open_below, read_file, system, walk
from skillshelf.registry._lock import Origin, Pin
from skillshelf.registry._package import MAX_PACKAGE_FILES, Package, PackageFile
from skillshelf.sources import SKIPPED_FOLDERS

ARCHIVE_ENDINGS = (".zip", ".tar.gz", ".tgz")
MAX_ARCHIVE = 64 * 1024 * 1024
MAX_UNPACKED = 256 * 1024 * 1024
_MAX_TARGET = 4096
_ZIP_ENTRY = b"PK\x01\x02"


class FolderSource:
    """A folder on this machine. It has no version: the lock pins its files."""

    name = "folder"

    def parse(self, text: str, asked: str, place: str) -> Origin | None:
        path = os.path.abspath(os.path.expanduser(text))
        if not os.path.isdir(path):
            return None
        refuse_version(text, asked)
        return Origin(self.name, os.path.relpath(os.path.realpath(path), place))

    @contextmanager
    def open(self, origin: Origin, pin: Pin, place: str) -> Iterator[Package]:
        root = os.path.realpath(os.path.join(place, origin.address))
        try:
            yield _Folder(root)
        except (OSError, NotPlainFile) as error:
            reason = error.strerror if isinstance(error, OSError) else error.reason
            raise RegistryError(f"The folder {origin.address} cannot be read: {reason}.") from None


class _Folder:
    """The files in a folder, without version control, dependencies and caches."""

    def __init__(self, root: str) -> None:
        self.pin = Pin()
        self._root = root
        self.files: dict[str, PackageFile] = {}
        with open_below(root, ()) as top:
            for entry in walk(top, lambda folder: folder.name not in SKIPPED_FOLDERS):
                if entry.kind == "link":
                    target = system.readlink(entry.name, dir_fd=entry.folder)
                    self._add(PackageFile(entry.path, target=target))
                elif entry.kind == "file":
                    mode = system.stat(entry.name, dir_fd=entry.folder, follow_symlinks=False).st_mode
                    self._add(PackageFile(entry.path, executable=bool(mode & 0o111)))

    def _add(self, file: PackageFile) -> None:
        self.files[file.path] = file
        if len(self.files) > MAX_PACKAGE_FILES:
            raise RegistryError(f"The folder has more than {MAX_PACKAGE_FILES:,} files. Name a folder in it.")

    def read(self, files: Iterable[PackageFile], limit: int) -> Iterator[bytes]:
        for file in files:
            data = read_file(self._root, file.path.split("/"), 0, limit + 1).data
            yield _check_size(file, data, limit)


class ArchiveSource:
    """A .zip or .tar.gz file on this machine, pinned by its hash."""

    name = "archive"

    def parse(self, text: str, asked: str, place: str) -> Origin | None:
        path = os.path.abspath(os.path.expanduser(text))
        if not text.lower().endswith(ARCHIVE_ENDINGS) or "://" in text:
            return None
        if not os.path.isfile(path):
            raise RegistryError(f"There is no archive {text!r}.")
        refuse_version(text, asked)
        return Origin(self.name, os.path.relpath(os.path.realpath(path), place))

    @contextmanager
    def open(self, origin: Origin, pin: Pin, place: str) -> Iterator[Package]:
        folder, name = os.path.split(os.path.realpath(os.path.join(place, origin.address)))
        try:
            data = read_file(folder, [name], 0, MAX_ARCHIVE + 1).data
        except (OSError, NotPlainFile) as error:
            reason = error.strerror if isinstance(error, OSError) else error.reason
            raise RegistryError(f"The archive {origin.address} cannot be read: {reason}.") from None
        yield open_archive(data, name, pin.digest)


def open_archive(data: bytes, name: str, digest: str = "") -> Package:
    """Return the package in the bytes of an archive. `digest`: the hash that it must have.

    Raises RegistryError for a wrong hash, and for anything in it that would be written elsewhere.
    """
    if len(data) > MAX_ARCHIVE:
        raise RegistryError(f"{name} has more than {MAX_ARCHIVE >> 20} MiB.")
    pin = Pin(digest=f"sha256:{hashlib.sha256(data).hexdigest()}")
    if digest and digest != pin.digest:
        raise RegistryError(f"{name} is not the archive that the lock pins: its hash is {pin.digest}, not {digest}.")
    try:
        if name.lower().endswith((".zip", ".whl")):
            return _Zip(data, name, pin)
        return _Tar(_unpack(data, name), name, pin)
    except _ARCHIVE_ERRORS as error:
        raise RegistryError(f"{name} cannot be unpacked: {error or 'it is damaged'}.") from None


_ARCHIVE_ERRORS = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    EOFError,
    NotImplementedError,  # a way to compress that Python does not know
    RuntimeError,  # a password
    ValueError,
    OSError,
)


class _Zip:
    def __init__(self, data: bytes, name: str, pin: Pin) -> None:
        self.pin = pin
        self._name = name
        if data.count(_ZIP_ENTRY) > MAX_PACKAGE_FILES:  # before anything is built for each of them
            raise RegistryError(f"{name} has more than {MAX_PACKAGE_FILES:,} files.")
        self._archive = zipfile.ZipFile(BytesIO(data))
        self.files: dict[str, PackageFile] = {}
        for member in self._archive.infolist():
            if member.is_dir():
                continue
            mode = member.external_attr >> 16
            target = None
            if stat.S_ISLNK(mode):
                [written] = self.read([PackageFile(member.filename, handle=member)], _MAX_TARGET)
                target = written.decode()
            file = PackageFile(member.filename, bool(mode & 0o111), target, member)
            _add_member(self.files, file, name)

    def read(self, files: Iterable[PackageFile], limit: int) -> Iterator[bytes]:
        for file in files:
            try:
                with self._archive.open(file.handle) as member:
                    data = member.read(limit + 1)
            except _ARCHIVE_ERRORS as error:
                raise RegistryError(f"{self._name} cannot be unpacked: {error or 'it is damaged'}.") from None
            yield _check_size(file, data, limit)


class _Tar:
    def __init__(self, data: bytes, name: str, pin: Pin) -> None:
        self.pin = pin
        self._archive = tarfile.TarFile(fileobj=BytesIO(data))
        self.files: dict[str, PackageFile] = {}
        for member in self._archive:
            if member.isdir():
                continue
            if not (member.isreg() or member.issym()):
                raise RegistryError(f"{name} cannot be unpacked: {member.name!r:.200} is a hard link or a device.")
            target = member.linkname if member.issym() else None
            file = PackageFile(member.name.removeprefix("./"), bool(member.mode & 0o111), target, member)
            _add_member(self.files, file, name)

    def read(self, files: Iterable[PackageFile], limit: int) -> Iterator[bytes]:
        for file in files:
            member = self._archive.extractfile(file.handle)
            assert member is not None  # a plain file
            yield _check_size(file, member.read(limit + 1), limit)


def _unpack(data: bytes, name: str) -> bytes:
    """Return the bytes of a gzip file, within a limit."""
    unpacked = bytearray()
    while data:
        stream = zlib.decompressobj(wbits=31)
        unpacked += stream.decompress(data, MAX_UNPACKED + 1 - len(unpacked))
        if len(unpacked) > MAX_UNPACKED:
            raise RegistryError(f"{name} cannot be unpacked: it has more than {MAX_UNPACKED >> 20} MiB.")
        if not stream.eof:
            raise EOFError
        data = stream.unused_data.lstrip(b"\0")
    return bytes(unpacked)


def _add_member(files: dict[str, PackageFile], file: PackageFile, name: str) -> None:
    parts = file.path.split("/")
    if parts[0] == "" or ".." in parts:
        raise RegistryError(f"{name} cannot be unpacked: {file.path!r:.200} leads out of it.")
    if ".git" in parts:
        return
    if file.path in files:
        raise RegistryError(f"{name} cannot be unpacked: it has {file.path!r:.200} twice.")
    if len(files) >= MAX_PACKAGE_FILES:
        raise RegistryError(f"{name} has more than {MAX_PACKAGE_FILES:,} files.")
    files[file.path] = file


def _check_size(file: PackageFile, data: bytes, limit: int) -> bytes:
    if len(data) > limit:
        raise RegistryError(f"{file.path!r:.200} has more than {limit >> 20} MiB.")
    return data


def refuse_version(text: str, asked: str) -> None:
    if asked:
        raise RegistryError(f"{text!r} has no versions. Leave out {asked!r}.")
