"""Build a wheel of a fixture package and install it into a folder of its own, as pip does."""

import base64
import hashlib
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

from importable import PACKAGES


def build_wheel(package: Path, target: Path, entry_points: Mapping[str, str] | None = None) -> Path:
    """Write a wheel that holds one package and announces entry points of the group `skillshelf.skills`."""
    name = package.name
    info = f"{name}-1.0.dist-info"
    files = {path.relative_to(package.parent).as_posix(): path.read_bytes() for path in _files_of(package)}
    files[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n".encode()
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    if entry_points:
        lines = [f"{key} = {value}" for key, value in entry_points.items()]
        files[f"{info}/entry_points.txt"] = "\n".join(["[skillshelf.skills]", *lines, ""]).encode()

    wheel = target / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        record = []
        for path, data in files.items():
            archive.writestr(path, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{path},sha256={digest},{len(data)}\n")
        archive.writestr(f"{info}/RECORD", "".join([*record, f"{info}/RECORD,,\n"]))
    return wheel


def install_wheel(wheel: Path, target: Path) -> Path:
    """Install a wheel with pip, without the network, and return the folder to put on PYTHONPATH."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-compile"]
    subprocess.run([*command, "--disable-pip-version-check", "--target", target, wheel], check=True)
    return target


def install_shop(target: Path, entry_points: Mapping[str, str] | None = None) -> Path:
    """Install the package `shop_skills` and return the folder to put on PYTHONPATH."""
    target.mkdir(parents=True)
    return install_wheel(build_wheel(PACKAGES / "installed/shop_skills", target.parent, entry_points), target)


def _files_of(package: Path) -> list[Path]:
    return sorted(path for path in package.rglob("*") if path.is_file() and path.suffix != ".pyc")
