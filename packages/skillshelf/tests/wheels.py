"""Tiny wheels, and environments they are installed in, without pip."""

import base64
import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path

SKILL = "---\nname: {name}\ndescription: Uses {name}.\n---\n\nImport {name}.\n"


def make_wheel(
    folder: Path, name: str, files: Mapping[str, str], version: str = "1.0", requires: tuple[str, ...] = ()
) -> Path:
    """Write a wheel with these files, and a RECORD with their hashes."""
    info = f"{name}-{version}.dist-info"
    requirements = "".join(f"Requires-Dist: {requirement}\n" for requirement in requires)
    contents = {**files, f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requirements}"}
    rows = [f"{path},sha256={digest(text)},{len(text.encode())}\n" for path, text in contents.items()]
    record = "".join([*rows, f"{info}/RECORD,,\n"])
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for inner, text in {**contents, f"{info}/RECORD": record}.items():
            wheel.writestr(inner, text)
    return path


def digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")


class Environment:
    """An environment below a folder, and a project beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = str(folder / "venv/bin/python")
        self.site = folder / "venv/lib/python3.11/site-packages"
        self.site.mkdir(parents=True)
        (folder / "venv/bin").mkdir()
        (folder / "venv/bin/python").touch()

    def name(self, *packages: str) -> None:
        """Have the project depend on packages."""
        (self.folder / "pyproject.toml").write_text(f"[project]\nname = 'shop'\ndependencies = {list(packages)}\n")

    def install(
        self, name: str, files: Mapping[str, str] | None = None, version: str = "1.0", requires: tuple[str, ...] = ()
    ) -> None:
        """Install a distribution; without `files`, one with a skill of its name."""
        if files is None:
            files = {f"{name}/__init__.py": "", f"{name}/.agents/skills/{name}/SKILL.md": SKILL.format(name=name)}
        wheel = make_wheel(self.folder, name, files, version, requires)
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(self.site)
        wheel.unlink()
