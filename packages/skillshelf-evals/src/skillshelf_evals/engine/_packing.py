"""Packing: a case as bytes that another process, perhaps on another machine, can run. The checks stay here.

Only the commands of `run` checks travel, because they are run in the workspace of the trial.

A code skill travels by name and version. The version is a digest of the written code and the references: the modules
that these import are not part of it. If a change there changes what the model is asked, the response cache asks again.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import inspect
import io
import json
import os
import re
import secrets
import sys
import tarfile
import threading
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any

from skillshelf.errors import EvalError, SkillError
from skillshelf.skills import BaseSkill
from skillshelf.sources import class_key
from skillshelf_agent.testing import Fail, ScriptedCall
from skillshelf_evals._case import (
    Case,
    CodeSkill,
    Edit,
    Message,
    import_code_skill,
    make_code_skill,
    make_code_source,
)
from skillshelf_evals._folders import EVALS_FOLDER, skills_in
from skillshelf_evals.check import find_commands, run
from skillshelf_evals.formats import read_step

# References are read in pages of this size.
PAGE_SIZE = 1 << 20
_LINE_SUFFIX = re.compile(r":\d+$")


class Packer:
    """Packs cases. A folder of skills is read once, however many cases use it."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        """The packed data, by digest."""
        self._folders: dict[str, list[tuple[str, str]]] = {}
        self._code_skills: dict[str, list[str]] = {}

    def pack(self, case: Case) -> str:
        """Pack a case with everything that belongs to it, and return its digest.

        Raises TypeError for a case that cannot leave the process: with a function in its script, or a skill object.
        """
        plain = self._plain_values(case, self._pack_code_skill, _refuse_function)
        return self._add_blob(json.dumps(plain, sort_keys=True).encode())

    def digest(self, case: Case) -> str:
        """Return a digest of everything that can be known of a case that cannot be packed.

        If a part of it cannot be known, the digest is new each time.
        """
        plain = {**self._plain_values(case, version_of, _version_of_step), "written": _digest_file_of(case)}
        return _digest(json.dumps(plain, sort_keys=True, default=repr).encode())

    def _plain_values(
        self, case: Case, convert_skill: Callable[[CodeSkill], Any], convert_function: Callable[[Any], Any]
    ) -> dict[str, Any]:
        script = None if case.script is None else [_step_as_json(step, convert_function) for step in case.script]
        return {
            "name": case.name,
            "skill": case.skill,
            "should_trigger": case.should_trigger,
            "turns": [_turn_as_json(turn) for turn in case.turns],
            "files": {path: base64.b64encode(data).decode() for path, data in sorted(case.files.items())},
            "skills": [skill for folder in case.skills for skill in self._pack_folder(folder)],
            "policy": case.policy,
            "model": case.model,
            "commands": find_commands(case.checks),
            "code_skills": [convert_skill(skill) for skill in case.code_skills],
            "script": script,
        }

    def _pack_code_skill(self, skill: CodeSkill) -> list[str]:
        if not isinstance(skill, str):
            raise TypeError(f"a skill object stays in its process: {skill!r:.80}")
        if skill not in self._code_skills:
            self._code_skills[skill] = [skill, version_of(skill)]
        return self._code_skills[skill]

    def _pack_folder(self, folder: str) -> list[tuple[str, str]]:
        if folder not in self._folders:
            paths = {os.path.basename(os.path.abspath(path)): path for path in skills_in(folder)}
            self._folders[folder] = [(name, self._add_blob(_archive(path))) for name, path in sorted(paths.items())]
        return self._folders[folder]

    def _add_blob(self, data: bytes) -> str:
        digest = _digest(data)
        self.blobs.setdefault(digest, data)
        return digest


class Unpacker:
    """Unpacks cases. Each skill is unpacked once, into a folder that no trial writes to."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._lock = threading.Lock()

    def unpack(self, digest: str, get_blob: Callable[[str], bytes]) -> Case:
        """Return the case packed under a digest. Raises EvalError for a code skill that has another version here."""
        plain = json.loads(get_blob(digest))
        script = None
        if plain["script"] is not None:
            script = tuple(map(read_step, plain["script"]))
        return Case(
            name=plain["name"],
            turns=tuple(_turn_from_json(turn) for turn in plain["turns"]),
            skill=plain["skill"],
            should_trigger=plain["should_trigger"],
            files={path: base64.b64decode(data) for path, data in plain["files"].items()},
            skills=tuple(self._unpack_skill(name, digest, get_blob) for name, digest in plain["skills"]),
            code_skills=tuple(_check_version(name, version) for name, version in plain["code_skills"]),
            script=script,
            policy=plain["policy"],
            model=plain["model"],
            checks=tuple(run(command, timeout=timeout) for command, timeout in plain["commands"]),
        )

    def _unpack_skill(self, name: str, digest: str, get_blob: Callable[[str], bytes]) -> str:
        home = os.path.join(self._folder, digest)
        with self._lock:  # several trials want the skill at the same time, and none wants half of it
            if not os.path.isdir(home):
                _extract(get_blob(digest), os.path.join(f"{home}.part", name))
                os.rename(f"{home}.part", home)
        return os.path.join(home, name)


def _archive(folder: str) -> bytes:
    """Return a tar archive that is the same for the same files, whoever owns them and whenever they were written."""

    def normalize(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        if member.name == f"./{EVALS_FOLDER}" or not _is_plain(member):
            return None
        member.uid = 0
        member.gid = 0
        member.uname = ""
        member.gname = ""
        member.mtime = 0
        member.mode = 0o755 if member.mode & 0o100 else 0o644
        return member

    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        archive.add(folder, ".", filter=normalize)  # it goes through a folder in the order of its names
    return packed.getvalue()


def _extract(packed: bytes, folder: str) -> None:
    """Extract an archive. Links stay as they are, but no file is written through one. Raises EvalError."""
    os.makedirs(folder, exist_ok=True)
    top = os.path.realpath(folder)
    # tarfile has filters since Python 3.11.4.
    filters: Any = {"filter": "tar"} if hasattr(tarfile, "tar_filter") else {}
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        for member in archive:
            parent = os.path.realpath(os.path.dirname(os.path.join(top, member.name)))
            is_inside = ".." not in member.name.split("/") and os.path.commonpath([top, parent]) == top
            if not _is_plain(member) or not is_inside:
                raise EvalError(f"a packed skill has a file that leads out of its folder: {member.name!r:.80}")
            archive.extract(member, top, **filters)


def _is_plain(member: tarfile.TarInfo) -> bool:
    """True for the files that a workspace takes from a skill: no pipes or devices."""
    return member.isfile() or member.isdir() or member.issym()


def _turn_as_json(turn: Message | Edit) -> dict[str, Any]:
    if isinstance(turn, Message):
        return {"say": turn.text}
    return {"path": turn.path, "text": turn.text}


def _turn_from_json(plain: Mapping[str, Any]) -> Message | Edit:
    if "say" in plain:
        return Message(plain["say"])
    return Edit(plain["path"], plain["text"])


def _refuse_function(step: Any) -> Any:
    raise TypeError(f"a step that is a function stays in its process: {step!r:.80}")


def _step_as_json(step: Any, convert_function: Callable[[Any], Any]) -> Any:
    match step:
        case str():
            return step
        case list():
            return [_step_as_json(part, convert_function) for part in step]
        case ScriptedCall(tool=tool, arguments=arguments):
            return {"tool": tool, "arguments": arguments}
        case Fail(error=error, after=after):
            return {"fail": str(error), "after": after}
    return convert_function(step)


def version_of(skill: CodeSkill) -> str:
    """Return a digest that is the same for the same code anywhere. Raises EvalError for a skill that cannot be made."""
    made = make_code_skill(skill)
    modules = {cls.__module__ for cls in _own_classes(type(made))}
    if isinstance(skill, str):
        modules.add(_module_of(import_code_skill(skill)))
        modules.add(skill.partition(":")[0])
    else:
        modules.add(_module_of(skill))

    sources = [f"{module} {_digest_module(module)}" for module in sorted(modules)]
    return _digest("\n".join([class_key(type(made)), *sources, *_digest_references(made)]).encode())


def _check_version(name: str, version: str) -> str:
    """Return the name of a code skill. Raises EvalError if it has another version on this machine."""
    if version_of(name) != version:
        raise EvalError(
            f"The code skill {name} has another version on {os.uname().nodename} than where the run began",
            "Install the same one on every worker, its references too, and start the worker again",
        )
    return name


def _own_classes(cls: type[BaseSkill]) -> Iterator[type]:
    """Yield the skill's class and its bases, but not those of Python itself, which differ between machines."""
    package = cls.__module__.partition(".")[0]
    for base in cls.__mro__:
        is_own = issubclass(base, BaseSkill) or base.__module__.partition(".")[0] == package
        if base is not BaseSkill and is_own:
            yield base


def _module_of(target: Any) -> str:
    while isinstance(target, functools.partial):
        target = target.func
    return str(getattr(target, "__module__", None) or type(target).__module__)


def _digest_module(name: str) -> str:
    """Return a digest of a module as it was imported: a worker that runs for weeks has the old code of a changed file.

    A module without a source gets a new digest each time.
    """
    module = sys.modules.get(name)
    if module is None:
        return _unknown()
    try:
        return _digest_source(module)
    except (OSError, TypeError):
        return _unknown()


@functools.lru_cache(1024)
def _digest_source(module: ModuleType) -> str:
    return _digest(inspect.getsource(module).encode("utf-8", "surrogatepass"))


def _digest_references(skill: BaseSkill) -> Iterator[str]:
    """Yield the digest of each reference, as the model would get it."""
    source = make_code_source([skill])
    source.refresh()
    key = class_key(type(skill))
    descriptor = skill.descriptor(source.name)
    for path in descriptor.references:
        digest = hashlib.sha256()
        offset = 0
        size = 1
        try:
            while offset < size:
                page = source.reference(key, descriptor, path, offset, PAGE_SIZE)
                digest.update(page.data)
                offset += max(len(page.data), 1)
                size = page.size
            yield f"{path} {digest.hexdigest()}"
        except (SkillError, OSError) as error:  # it fails in a trial in the same way
            yield f"{path} {type(error).__name__}"


def _version_of_step(step: Any) -> str:
    """Return a digest of a function in a script, by the module that defines it."""
    if not callable(step):
        return _unknown()
    return f"{getattr(step, '__qualname__', '')} {_digest_module(_module_of(step))}"


def _digest_file_of(case: Case) -> str:
    """Return a digest of the file that a case is written in, with the values that its skill objects are made of."""
    try:
        with open(_LINE_SUFFIX.sub("", case.location), "rb") as file:
            return _digest(file.read())
    except OSError:
        has_objects = any(isinstance(skill, BaseSkill) for skill in case.code_skills)
        return _unknown() if has_objects else ""  # a skill object may have been made of anything


def _unknown() -> str:
    return f"unknown {secrets.token_hex(16)}"


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
