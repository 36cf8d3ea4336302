"""A case as bytes that another process, perhaps on another machine, can run: all of it but the checks, which stay."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import tarfile
import threading
from collections.abc import Callable, Mapping
from typing import Any

from skillshelf.agent import Call, Fail
from skillshelf.errors import EvalError
from skillshelf.evals._case import Case, Edit, Message
from skillshelf.evals._code_skills import CodeSkill
from skillshelf.evals._folders import LEFT_OUT, skills_in
from skillshelf.evals.engine._versions import packed, same_here, version_of, version_of_step, written


class Packer:
    """Packs cases. A folder of skills is read once, however many cases have it."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        """What was packed, by digest."""
        self._folders: dict[str, list[tuple[str, str]]] = {}
        self._named: dict[str, list[str]] = {}

    def case(self, case: Case) -> str:
        """The digest of a case with all that belongs to it. Raises TypeError for one that cannot travel."""
        plain = {
            **self._plain(case),
            "code_skills": [self._code_skill(skill) for skill in case.code_skills],
            "script": None if case.script is None else [_step(step) for step in case.script],
        }
        return self._put(json.dumps(plain, sort_keys=True).encode())

    def known(self, case: Case) -> str:
        """A digest for a case that cannot travel, of all that can be known of it. Of what cannot, it is always new."""
        plain = {
            **self._plain(case),
            "code_skills": [version_of(skill) for skill in case.code_skills],
            "script": None if case.script is None else [_step(step, version_of_step) for step in case.script],
            "written": written(case),
        }
        return hashlib.sha256(json.dumps(plain, sort_keys=True, default=repr).encode()).hexdigest()

    def _plain(self, case: Case) -> dict[str, Any]:
        return {
            "name": case.name,
            "skill": case.skill,
            "should_trigger": case.should_trigger,
            "turns": [_turn(turn) for turn in case.turns],
            "files": {path: base64.b64encode(data).decode() for path, data in sorted(case.files.items())},
            "skills": [skill for folder in case.skills for skill in self._folder(folder)],
            "policy": case.policy,
            "model": case.model,
        }

    def _code_skill(self, skill: CodeSkill) -> list[str]:
        if not isinstance(skill, str):
            return packed(skill)
        if skill not in self._named:
            self._named[skill] = packed(skill)
        return self._named[skill]

    def _folder(self, folder: str) -> list[tuple[str, str]]:
        if folder not in self._folders:
            names = {os.path.basename(os.path.abspath(path)): path for path in skills_in(folder)}
            self._folders[folder] = [(name, self._put(_archive(path))) for name, path in sorted(names.items())]
        return self._folders[folder]

    def _put(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        self.blobs.setdefault(digest, data)
        return digest


class Unpacker:
    """Unpacks cases. Each skill is unpacked once, in a folder that nobody writes to."""

    def __init__(self, folder: str) -> None:
        self._into = folder
        self._lock = threading.Lock()

    def case(self, digest: str, get: Callable[[str], bytes]) -> Case:
        """`get`: what was packed under a digest. Raises EvalError for a code skill that is another one here."""
        plain = json.loads(get(digest))
        files = {path: base64.b64decode(data) for path, data in plain["files"].items()}
        return Case(
            plain["name"],
            tuple(_turn_from(turn) for turn in plain["turns"]),
            skill=plain["skill"],
            should_trigger=plain["should_trigger"],
            files=files,
            skills=tuple(self._skill(name, digest, get) for name, digest in plain["skills"]),
            code_skills=tuple(same_here(name, version) for name, version in plain["code_skills"]),
            script=None if plain["script"] is None else tuple(_step_from(step) for step in plain["script"]),
            policy=plain["policy"],
            model=plain["model"],
        )

    def _skill(self, name: str, digest: str, get: Callable[[str], bytes]) -> str:
        home = os.path.join(self._into, digest)
        with self._lock:  # several trials want it at the same time, and none wants half of it
            if not os.path.isdir(home):
                _extract(get(digest), os.path.join(f"{home}.part", name))
                os.rename(f"{home}.part", home)
        return os.path.join(home, name)


def _extract(packed: bytes, folder: str) -> None:
    """Links stay as they are, and lead no file out of the folder. Raises EvalError."""
    os.makedirs(folder, exist_ok=True)
    top = os.path.realpath(folder)
    # Python learnt to look after this in 3.11.4.
    careful: Any = {"filter": "tar"} if hasattr(tarfile, "tar_filter") else {}
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        for member in archive:
            above = os.path.realpath(os.path.dirname(os.path.join(top, member.name)))
            if not _is_plain(member) or ".." in member.name.split("/") or os.path.commonpath([top, above]) != top:
                raise EvalError(f"a packed skill has a file that leads out of its folder: {member.name!r:.80}")
            archive.extract(member, top, **careful)


def _is_plain(member: tarfile.TarInfo) -> bool:
    """As in a workspace: a pipe is no part of a skill."""
    return member.isfile() or member.isdir() or member.issym()


def _archive(folder: str) -> bytes:
    """The same bytes for the same files, whoever owns them and whenever they were written."""

    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        if member.name == f"./{LEFT_OUT}" or not _is_plain(member):
            return None
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        member.mtime, member.mode = 0, 0o755 if member.mode & 0o100 else 0o644
        return member

    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        archive.add(folder, ".", filter=plain)  # goes through a folder in the order of its names
    return packed.getvalue()


def _turn(turn: Message | Edit) -> dict[str, Any]:
    return {"say": turn.text} if isinstance(turn, Message) else {"path": turn.path, "text": turn.text}


def _turn_from(plain: Mapping[str, Any]) -> Message | Edit:
    return Message(plain["say"]) if "say" in plain else Edit(plain["path"], plain["text"])


def _no_place(step: Any) -> Any:
    raise TypeError(f"a step that is a function stays in its process: {step!r:.80}")


def _step(step: Any, other: Callable[[Any], Any] = _no_place) -> Any:
    """`other`: what becomes of a function."""
    match step:
        case str():
            return step
        case list():
            return [_step(one, other) for one in step]
        case Call(tool=tool, arguments=arguments):
            return {"tool": tool, "arguments": arguments}
        case Fail(error=error, after=after):
            return {"fail": str(error), "after": after}
    return other(step)


def _step_from(plain: Any) -> Any:
    if isinstance(plain, str):
        return plain
    if isinstance(plain, list):
        return [_step_from(one) for one in plain]
    if "fail" in plain:
        return Fail(ConnectionError(plain["fail"]), plain["after"])
    return Call(plain["tool"], plain["arguments"])
