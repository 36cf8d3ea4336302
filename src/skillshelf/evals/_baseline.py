"""What a skill is held against: its absence, a folder with its old version, or its folder at a revision of git."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from skillshelf.errors import EvalError
from skillshelf.evals._folders import is_skill, skill_name, skills_in
from skillshelf.evals._paths import workspace_path
from skillshelf.sources import SKILL_FILES

NONE = "none"
# Nothing of the repository's own may run, and nothing is fetched for it.
_GIT = ("git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
_QUIET = {"GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}


@dataclass(frozen=True, slots=True)
class Baseline:
    """`--baseline`, and a folder that the old versions of skills can be put in."""

    given: str
    stage: str

    @property
    def removes(self) -> bool:
        return self.given == NONE

    def old_version(self, skill: str, folder: str) -> str:
        """The folder with the old version of the skill in `folder`, under the name that it has there.

        Empty for a skill that is new since that revision. Raises EvalError.
        """
        # Two skills may lie in folders of the same name.
        home = hashlib.sha256(os.path.realpath(folder).encode("utf-8", "surrogateescape")).hexdigest()[:16]
        target = os.path.join(self.stage, home, os.path.basename(os.path.abspath(folder)))
        if not os.path.isdir(target):
            if os.path.isdir(self.given):
                shutil.copytree(_in_folder(self.given, skill), target, symlinks=True)
            elif not _at_revision(self.given, folder, target):
                return ""
        return target


def _in_folder(given: str, skill: str) -> str:
    """The skill in a folder that is one, or that has folders of skills in it."""
    for folder in skills_in(given):
        if is_skill(folder) and (skill_name(folder) == skill or os.path.basename(folder) == skill):
            return folder
    raise EvalError(
        f"--baseline {given}: there is no skill {skill!r} in this folder", "Give the folder of its old version"
    )


def _at_revision(revision: str, folder: str, target: str) -> bool:
    """The files of a skill's folder as they were, if it was there.

    From git's own objects, so that no filter, hook or checkout has a say. Raises EvalError.
    """
    where = f"--baseline {revision}"
    if not shutil.which("git"):
        raise EvalError(f"{where}: git is not installed", "Give `none`, or a folder with the old version")
    if _git(folder, "rev-parse", "--git-dir") is None:
        raise EvalError(
            f"{where}: there is no such folder, and {folder} is in no git repository",
            "Give `none`, a folder with the old version, or a revision where there is a repository",
        )
    commit = _git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if commit is None:
        raise EvalError(
            f"{where}: there is neither such a folder nor such a revision", "`git log --oneline` names revisions"
        )
    listed = _git(folder, "ls-tree", "-r", "-z", commit.decode().strip(), ".") or b""
    entries = list(_entries(listed))
    if not any(path in SKILL_FILES for _, _, path in entries):
        return False
    for (mode, _, path), data in zip(entries, _blobs(folder, [oid for _, oid, _ in entries]), strict=True):
        _put(os.path.join(target, path), mode, data)
    return True


def _entries(listed: bytes) -> Iterator[tuple[str, str, str]]:
    """Mode, object and path of each file; a submodule has no content here."""
    for line in listed.split(b"\0")[:-1]:
        about, _, path = line.partition(b"\t")
        mode, kind, oid = about.decode().split()
        if kind == "blob":
            # A tree can be made by hand, with `..` in it.
            yield mode, oid, workspace_path(os.fsdecode(path))


def _blobs(folder: str, oids: Sequence[str]) -> Iterator[bytes]:
    answer = _git(folder, "cat-file", "--batch", stdin="".join(f"{oid}\n" for oid in oids).encode()) or b""
    at = 0
    for _ in oids:
        end = answer.index(b"\n", at)
        size = int(answer[at:end].split()[2])
        yield answer[end + 1 : end + 1 + size]
        at = end + size + 2


def _put(path: str, mode: str, data: bytes) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if mode == "120000":
        os.symlink(os.fsdecode(data), path)
        return
    with open(path, "wb") as file:
        file.write(data)
    if mode == "100755":
        os.chmod(path, 0o755)


def _git(folder: str, *words: str, stdin: bytes = b"") -> bytes | None:
    """What git says; None where it refuses."""
    done = subprocess.run(
        [*_GIT, "-C", folder, *words], input=stdin, capture_output=True, check=False, env={**os.environ, **_QUIET}
    )
    return done.stdout if done.returncode == 0 else None
