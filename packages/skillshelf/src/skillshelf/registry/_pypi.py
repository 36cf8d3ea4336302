"""Skills in Python packages, at `<package>/.agents/skills/<name>`. pip gets one wheel; nothing is built."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory

from skillshelf.errors import RegistryError
from skillshelf.files import read_file, system
from skillshelf.registry._git import limit_file_size
from skillshelf.registry._local import MAX_ARCHIVE, open_archive
from skillshelf.registry._lock import Origin, Pin
from skillshelf.registry._package import Package, PackageFile
from skillshelf.text import clean_line, truncate

_SOURCE = re.compile(r"pypi:(?P<package>[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?)(?:(?:@|==)(?P<version>.*))?", re.ASCII)
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.!+_-]*")
_SKILLS = [".agents", "skills"]
_SECONDS = 600.0


class PypiSource:
    """A package on PyPI, or on the index that pip is set up for: `pypi:package[@version]`."""

    name = "pypi"

    def parse(self, text: str, asked: str, place: str) -> Origin | None:
        if not text.startswith("pypi:"):
            return None
        match = _SOURCE.fullmatch(text)
        if match is None:
            raise RegistryError(f"{text!r:.200} does not name a package. Give pypi:package or pypi:package@version.")
        version = match["version"] or ""
        if version and asked and version != asked:
            raise RegistryError(f"{text!r:.200} names the version {version!r}, and --ref {asked!r}. Give one of them.")
        return Origin(self.name, match["package"], asked=version or asked)

    @contextmanager
    def open(self, origin: Origin, pin: Pin, place: str) -> Iterator[Package]:
        with TemporaryDirectory(prefix="skillshelf-") as folder:
            wheel = _download(origin.address, pin.version or origin.asked, folder)
            data = read_file(folder, [wheel], 0, MAX_ARCHIVE + 1).data
        package = open_archive(data, wheel)
        yield _Wheel(package, Pin(version=wheel.split("-")[1]))


class _Wheel:
    """The files of the skills in a wheel."""

    def __init__(self, package: Package, pin: Pin) -> None:
        self.pin = pin
        self.read = package.read
        self.files = {path: file for path, file in package.files.items() if self._is_of_skill(file)}

    def _is_of_skill(self, file: PackageFile) -> bool:
        parts = file.path.split("/")
        return len(parts) > 4 and parts[1:3] == _SKILLS


def _download(package: str, version: str, folder: str) -> str:
    """Get one wheel with pip, and return its name. Raises RegistryError."""
    if version and not _VERSION.fullmatch(version):
        raise RegistryError(f"{version!r:.80} cannot be the version of a package.")
    wanted = f"{package}=={version}" if version else package
    options = ["--no-deps", "--only-binary=:all:", "--no-input", "--disable-pip-version-check", "--quiet"]
    try:
        completed = subprocess.run(
            [sys.executable, "-I", "-m", "pip", "download", *options, "--dest", folder, wanted],
            cwd=folder,  # pip is not the workspace's
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=_SECONDS,
            preexec_fn=limit_file_size,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise RegistryError(f"pip took more than {_SECONDS:.0f} seconds to get {wanted}.") from None
    wheels = [name for name in system.listdir(folder) if name.endswith(".whl")]
    if completed.returncode or len(wheels) != 1:
        lines = completed.stderr.decode(errors="replace").strip().splitlines()
        reason = truncate(clean_line(lines[-1] if lines else "there is no wheel"), 300)
        raise RegistryError(f"{wanted} cannot be fetched by pip: {reason.removeprefix('ERROR: ')}")
    return wheels[0]
