"""A script of a skill, ready to be asked about and run."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import dropwhile
from typing import Any

from skillshelf.errors import ReferenceNotAllowedError, SkillError, SkillNotFoundError
from skillshelf.explain import explain_to_model
from skillshelf.files import NotPlainFile
from skillshelf.sandbox import CleanPath
from skillshelf.shelf import Shelf, resolve_reference
from skillshelf.skillmd import find_declared_variables
from skillshelf.skills import SkillDescriptor
from skillshelf.text import decode_text
from skillshelf.trust import ScriptFolders
from skillshelf_agent.scripts._dependencies import Dependencies, read_dependencies

_MAX_SCRIPT = 1024 * 1024
_BY_ENDING = {
    ".py": "python3",
    ".sh": "sh",
    ".bash": "bash",
    ".js": "node",
    ".mjs": "node",
    ".cjs": "node",
    ".rb": "ruby",
    ".pl": "perl",
}
_SHEBANG_NAMES = {"python": "python3", "uv": "python3", "nodejs": "node", "dash": "sh"}
_PYTHON_VERSION = re.compile(r"python3(\.\d+)?")
_INSTALL_HINTS = {
    "node": "Node.js (https://nodejs.org)",
    "python3": "Python (https://python.org)",
}


@dataclass(frozen=True, slots=True)
class SkillScript:
    """A script as it would run: the content, the interpreter and everything else that the user is asked about."""

    skill: str
    path: str
    """Its path in the skill's folder."""
    folder: str
    """The copy of the skill's folder that it runs from."""
    tree: str
    """The hash over all files of the skill. The script may import or read any of them."""
    interpreter: str
    """The path of the program that runs it."""
    text: str = field(repr=False)
    arguments: tuple[str, ...] = ()
    network: bool = False
    """True if it asks for the network."""
    dependencies: Dependencies | None = None
    """The packages that it declares, if there are any."""
    variables: tuple[str, ...] = ()
    """The names of the environment variables that the skill declares."""

    @property
    def file(self) -> str:
        """The path of the copy that runs."""
        return f"{self.folder}/{self.path}"

    def as_json(self) -> dict[str, Any]:
        """Return the script for programs that answer questions about it."""
        return {
            "skill": self.skill,
            "path": self.path,
            "hash": self.tree,
            "interpreter": self.interpreter,
            "arguments": list(self.arguments),
            "network": self.network,
            "packages": list(self.dependencies.packages) if self.dependencies else [],
            "variables": list(self.variables),
        }

    @property
    def content_key(self) -> str:
        """A text that is the same for the same script, with the same content and the same wish for the network."""
        return f"{self.skill}/{self.path} {self.tree} {'network' if self.network else ''}".rstrip()


def is_runnable(path: str) -> bool:
    """Return True if a reference looks like a script from its path: it has the ending of one, or none in scripts/."""
    ending = os.path.splitext(path)[1]
    return ending in _BY_ENDING or (not ending and path.startswith("scripts/"))


def find_script(
    shelf: Shelf,
    folders: ScriptFolders,
    programs: CleanPath,
    *,
    skill: str,
    script: str,
    arguments: Sequence[str] = (),
    network: bool = False,
) -> SkillScript:
    """Find a script on the list of a skill, in the version that the skill is served in.

    Raises SkillError, for example if the script is not on the list or its interpreter is not installed.
    """
    try:
        candidate = shelf.catalog.find(skill)
    except SkillNotFoundError as error:
        raise explain_to_model(shelf, error) from None
    descriptor = candidate.descriptor
    path = resolve_reference(descriptor, script, any_case=False)
    if path not in descriptor.main_references:
        raise ReferenceNotAllowedError(
            descriptor.name, path, _list_scripts(descriptor), "it is neither in scripts/ nor named in the instructions"
        )
    copy = folders.get(shelf.sources[candidate.place.source], candidate.place.key)
    try:
        data = copy.read(path, 0, _MAX_SCRIPT + 1).data
    except (OSError, NotPlainFile):
        raise ReferenceNotAllowedError(
            descriptor.name, path, _list_scripts(descriptor), "it is not a plain file of the skill"
        ) from None
    text = decode_text(data)
    if text is None or len(data) > _MAX_SCRIPT:
        raise SkillError(f"{path!r} is not a script: it is not text, or larger than {_MAX_SCRIPT >> 20} MiB.")

    kind = _find_kind(path, data)
    if kind is None:
        runnable = ", ".join(sorted(set(_BY_ENDING)))
        raise SkillError(
            f"{path!r} of the skill {descriptor.name!r} is not a script that can be run here. A script ends in one of "
            f"{runnable}, or its first line names its interpreter."
        )
    dependencies = read_dependencies(text) if kind == "python3" else None
    return SkillScript(
        skill=descriptor.name,
        path=path,
        folder=copy.files,
        tree=copy.tree,
        interpreter=_find_interpreter(kind, programs, descriptor.name, path),
        text=text,
        arguments=tuple(arguments),
        network=network,
        dependencies=dependencies,
        variables=find_declared_variables(descriptor.metadata),
    )


def _list_scripts(descriptor: SkillDescriptor) -> tuple[str, ...]:
    return tuple(path for path in descriptor.main_references if is_runnable(path))


def _find_kind(path: str, data: bytes) -> str | None:
    """Return the name of the program that a script is for. Only the name counts, wherever its first line finds it."""
    words = _split_shebang(data.split(b"\n", 1)[0])
    if words:
        name = os.path.basename(words[0])
        name = _SHEBANG_NAMES.get(name, name)
        if _PYTHON_VERSION.fullmatch(name):
            return "python3"
        return name if name in _BY_ENDING.values() else None
    return _BY_ENDING.get(os.path.splitext(path)[1])


def _find_interpreter(kind: str, programs: CleanPath, skill: str, path: str) -> str:
    found = programs.find_python() if kind == "python3" else programs.find(kind)
    if found is None:
        raise SkillError(
            f"{path!r} of the skill {skill!r} needs {kind}, which is not installed, or only in the workspace. The user "
            f"can install {_INSTALL_HINTS.get(kind, kind)}."
        )
    return found


def _split_shebang(first_line: bytes) -> Sequence[str]:
    """Return the words of a script's first line after `#!`, without `env` and its options; empty if it has none."""
    if not first_line.startswith(b"#!"):
        return ()
    words = first_line[2:].decode("ascii", "replace").split()
    if words and os.path.basename(words[0]) == "env":
        return list(dropwhile(lambda word: word.startswith("-") or "=" in word, words[1:]))
    return words
