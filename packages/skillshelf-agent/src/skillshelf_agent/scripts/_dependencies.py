"""Packages that a Python script declares in itself (PEP 723), installed by uv into an environment outside."""

import hashlib
import json
import os
import re
import shutil
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from skillshelf.errors import SkillError
from skillshelf.files import make_private_folders, replace_file
from skillshelf.sandbox import CleanPath, Program, ProgramLimits, Sandbox, SandboxError, run_program

_BLOCK_START = "# /// script"
_BLOCK_END = "# ///"
_MAX_PACKAGES = 100
# A name, extras, then a version, a marker or an address: never an option of uv, nor a path.
_REQUIREMENT = re.compile(r"[A-Za-z0-9][\w.-]*+\s*+(?:\[[^\]]*+\]\s*+)?+(?:[<>=!~;@(].*)?", re.ASCII)
# Versions alone: uv would also take the path of a program, and run it.
_PYTHON_VERSIONS = re.compile(r"\s*(?:(?:~=|===?|!=|<=?|>=?)\s*\d[\w.*+]*\s*(?:,\s*|$))*", re.ASCII)
_MARK = "skillshelf.json"
"""The file that says that an environment is whole."""
_LIMITS = ProgramLimits(seconds=600.0)
# Where packages come from is the user's choice: these say so.
_PASSED_TO_UV = re.compile(
    r"UV_(?:DEFAULT_INDEX|INDEX|INDEX_URL|EXTRA_INDEX_URL|FIND_LINKS|OFFLINE|NATIVE_TLS|SYSTEM_CERTS|INDEX_\w+)"
    r"|SSL_CERT_(?:FILE|DIR)|(?:https?|all|no)_proxy",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Dependencies:
    """The packages of a script, as it declares them."""

    packages: tuple[str, ...]
    python: str = ""
    """The versions of Python that it runs with, such as `>=3.11`; empty if it does not say."""

    @property
    def digest(self) -> str:
        return hashlib.sha256(json.dumps([sorted(self.packages), self.python]).encode()).hexdigest()


def read_dependencies(text: str) -> Dependencies | None:
    """Return the packages that a script declares, or None if it declares none. Raises SkillError if it is unclear."""
    block = _find_block(text.splitlines())
    if block is None:
        return None
    try:
        values = tomllib.loads(block)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise SkillError(f"The script's `# /// script` block is not valid TOML ({error}), so it was not run.") from None

    packages = values.get("dependencies", [])
    python = values.get("requires-python", "")
    is_version = isinstance(python, str) and _PYTHON_VERSIONS.fullmatch(python)
    if not _is_list_of_packages(packages) or not is_version:
        raise SkillError(
            "The script was not run: its `# /// script` block must list packages by name, such as "
            'dependencies = ["requests>=2"], and the versions of Python, such as requires-python = ">=3.11".'
        )
    if not packages:
        return None
    return Dependencies(tuple(packages), python)


def _find_block(lines: list[str]) -> str | None:
    """Return the TOML between the marks, without the comment signs."""
    try:
        start = lines.index(_BLOCK_START) + 1
    except ValueError:
        return None
    content: list[str] = []
    last_end: int | None = None
    for line in lines[start:]:
        if line == _BLOCK_END:
            last_end = len(content)
        if not line.startswith("#"):
            break
        content.append(line[2:])
    return None if last_end is None else "\n".join(content[:last_end])


def _is_list_of_packages(value: Any) -> bool:
    if not isinstance(value, list) or len(value) > _MAX_PACKAGES:
        return False
    return all(isinstance(item, str) and "\n" not in item and _REQUIREMENT.fullmatch(item) for item in value)


def find_environment(dependencies: Dependencies, home: str) -> str | None:
    """Return the Python of the environment with these packages, or None if there is none yet."""
    place = _place_of(dependencies, home)
    python = f"{place}/bin/python"
    if os.path.exists(f"{place}/{_MARK}") and os.path.exists(python):
        return python
    return None


async def install_environment(
    dependencies: Dependencies, home: str, programs: CleanPath, sandbox: Sandbox, scratch: str
) -> str:
    """Install the packages and return the Python that has them.

    uv itself runs in the `sandbox`, with the network and `scratch` as its temporary folder.

    Only wheels are installed: building a package would run its code. Raises SkillError.
    """
    uv = find_uv(programs)
    place = _place_of(dependencies, home)
    cache = f"{home}/uv"
    make_private_folders(cache)
    shutil.rmtree(place, ignore_errors=True)
    make_private_folders(place)

    variables = {name: value for name, value in os.environ.items() if _PASSED_TO_UV.fullmatch(name)}
    variables |= {"UV_CACHE_DIR": cache, "UV_PYTHON_DOWNLOADS": "never", "UV_NO_PROGRESS": "1"}
    environment = programs.make_environment(variables)
    for arguments in _list_steps(dependencies, place, programs):
        program = Program(
            [uv, *arguments],
            folder=place,
            environment=environment,
            writable=[cache, place],
            readable=[os.path.dirname(uv)],
            scratch=scratch,
            network=True,
        )
        try:
            result = await run_program(program, sandbox, _LIMITS, merge=True)
        except SandboxError as error:
            raise SkillError(f"The script was not run: the sandbox of uv could not be set up ({error}).") from None
        if result.exit_code != 0:
            shutil.rmtree(place, ignore_errors=True)
            packages = ", ".join(dependencies.packages)
            raise SkillError(
                f"The script was not run: its packages ({packages}) could not be installed. Only built packages "
                f"(wheels) are installed, because building one runs its code. uv says: {result.stdout.strip()[-2000:]}"
            )
    with suppress(OSError):  # then they are installed again the next time
        replace_file(f"{place}/{_MARK}", json.dumps({"packages": list(dependencies.packages)}).encode())
    return f"{place}/bin/python"


def find_uv(programs: CleanPath) -> str:
    """Return the path of uv. Raises SkillError with the way to install it."""
    uv = programs.find("uv")
    if uv is None:
        raise SkillError(
            "The script was not run: it declares packages (`# /// script`), and installing them needs uv, which is not "
            "installed. The user can install it with `pipx install uv` or from https://docs.astral.sh/uv."
        )
    return uv


def _list_steps(dependencies: Dependencies, place: str, programs: CleanPath) -> Iterator[list[str]]:
    python = dependencies.python or programs.find_python() or "3"
    yield ["venv", "--quiet", "--allow-existing", "--no-project", "--python", python, place]
    install = ["pip", "install", "--quiet", "--no-build", "--link-mode", "copy", "--python", f"{place}/bin/python"]
    yield [*install, "--", *dependencies.packages]


def _place_of(dependencies: Dependencies, home: str) -> str:
    return f"{home}/{dependencies.digest}"


def describe_packages(dependencies: Dependencies) -> Mapping[str, str]:
    """Return what a question about the installation shows."""
    shown = {"packages": "\n".join(dependencies.packages)}
    if dependencies.python:
        shown["python"] = dependencies.python
    return shown
