"""The baseline of a comparison: no skill, a folder with its old version, or its folder at a git revision."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from skillshelf.errors import EvalError
from skillshelf.sources import SKILL_FILES
from skillshelf_evals._folders import check_workspace_path, is_named, is_skill, skills_in

NONE = "none"
# Nothing of the repository's own may run, and nothing is fetched for it.
_GIT_COMMAND = ("git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
_GIT_ENVIRONMENT = {"GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
_LINK_MODE = "120000"
_EXECUTABLE_MODE = "100755"


@dataclass(frozen=True, slots=True)
class Baseline:
    """The value of `--baseline`, and a folder for the old versions of skills."""

    given: str
    stage: str

    @property
    def removes_skill(self) -> bool:
        return self.given == NONE

    def stage_old_version(self, skill: str, folder: str) -> str:
        """Return a folder with the old version of the skill in `folder`, under the same name.

        Empty for a skill that is new since that revision. Raises EvalError.
        """
        # Two skills may be in folders of the same name.
        real_folder = os.path.realpath(folder).encode("utf-8", "surrogateescape")
        home = hashlib.sha256(real_folder).hexdigest()[:16]
        target = os.path.join(self.stage, home, os.path.basename(os.path.abspath(folder)))
        if os.path.isdir(target):
            return target

        if os.path.isdir(self.given):
            shutil.copytree(_find_skill(self.given, skill), target, symlinks=True)
        elif not _write_revision(self.given, folder, target):
            return ""

        return target


def _find_skill(folder: str, name: str) -> str:
    """Return the folder of a skill: `folder` itself, or one in it. Raises EvalError."""
    for skill in skills_in(folder):
        if is_skill(skill) and is_named(skill, name):
            return skill
    raise EvalError(
        f"--baseline {folder}: there is no skill {name!r} in this folder", "Give the folder of its old version"
    )


class _Blob(NamedTuple):
    """A file in a git tree."""

    mode: str
    object_id: str
    path: str


def _write_revision(revision: str, folder: str, target: str) -> bool:
    """Write the files of a skill's folder at a revision to `target`. Return False if the skill was not there yet.

    They come from git's own objects, so no filter, hook or checkout is involved. Raises EvalError.
    """
    commit = _find_commit(revision, folder)
    listing = _run_git(folder, "ls-tree", "-r", "-z", commit, ".") or b""
    blobs = list(_parse_tree(listing))
    _check_paths(revision, blobs)
    if not any(blob.path in SKILL_FILES for blob in blobs):
        return False
    contents = _read_objects(folder, [blob.object_id for blob in blobs])
    for blob, data in zip(blobs, contents, strict=True):
        _write_blob(os.path.join(target, blob.path), blob.mode, data)
    return True


def _find_commit(revision: str, folder: str) -> str:
    option = f"--baseline {revision}"
    if not shutil.which("git"):
        raise EvalError(f"{option}: git is not installed", "Give `none`, or a folder with the old version")
    if _run_git(folder, "rev-parse", "--git-dir") is None:
        raise EvalError(
            f"{option}: there is no such folder, and {folder} is not in a git repository",
            "Give `none`, or a folder with the old version; a revision needs a repository",
        )

    commit = _run_git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if commit is None:
        raise EvalError(
            f"{option}: there is neither such a folder nor such a revision", "`git log --oneline` lists revisions"
        )

    return commit.decode().strip()


def _parse_tree(listing: bytes) -> Iterator[_Blob]:
    """Parse the output of `git ls-tree -z`. Submodules are left out: they have no content here."""
    for line in listing.split(b"\0")[:-1]:
        facts, _, path = line.partition(b"\t")
        mode, kind, object_id = facts.decode().split()
        if kind == "blob":
            # A tree can be made by hand, with `..` in it.
            yield _Blob(mode, object_id, check_workspace_path(os.fsdecode(path)))


def _check_paths(revision: str, blobs: Sequence[_Blob]) -> None:
    """Raise EvalError if a path is there twice, as a file and as a folder: a link of that name would lead out."""
    paths = [blob.path for blob in blobs]
    folders = {path[:end] for path in paths for end, sign in enumerate(path) if sign == "/"}
    if len(set(paths)) < len(paths) or folders.intersection(paths):
        raise EvalError(f"--baseline {revision}: the folder of the skill is damaged there", "`git fsck` says more")


def _read_objects(folder: str, object_ids: Sequence[str]) -> Iterator[bytes]:
    """Parse the output of `git cat-file --batch`: a line with the size, the content and a newline for each object."""
    request = "".join(f"{object_id}\n" for object_id in object_ids).encode()
    answer = _run_git(folder, "cat-file", "--batch", stdin=request) or b""
    position = 0
    for _ in object_ids:
        start = answer.index(b"\n", position) + 1
        size = int(answer[position:start].split()[2])
        yield answer[start : start + size]
        position = start + size + 1


def _write_blob(path: str, mode: str, data: bytes) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if mode == _LINK_MODE:
        os.symlink(os.fsdecode(data), path)
        return
    with open(path, "wb") as file:
        file.write(data)
    if mode == _EXECUTABLE_MODE:
        os.chmod(path, 0o755)


def _run_git(folder: str, *arguments: str, stdin: bytes = b"") -> bytes | None:
    """Return the output of git, or None if it fails."""
    done = subprocess.run(
        [*_GIT_COMMAND, "-C", folder, *arguments],
        input=stdin,
        capture_output=True,
        check=False,
        env={**os.environ, **_GIT_ENVIRONMENT},
    )
    return done.stdout if done.returncode == 0 else None
