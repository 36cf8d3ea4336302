"""Skills from Git repositories, by the `git` program.

A bare repository in the user's cache gets one commit, and files are read from it as objects. Nothing is checked out, so
no hook, filter or LFS command of the repository runs. Credential helpers work; nothing asks for a password.
"""

import hashlib
import os
import re
import signal
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from glob import escape as glob_escape
from glob import glob
from resource import RLIM_INFINITY, RLIMIT_FSIZE, getrlimit, setrlimit
from subprocess import DEVNULL, PIPE, Popen
from tempfile import TemporaryFile
from threading import Timer
from typing import IO
from urllib.parse import urlsplit

from skillshelf.errors import RegistryError
from skillshelf.files import LockTimeout, cache_home, hold_lock, make_private_folders, system
from skillshelf.registry._lock import Origin, Pin
from skillshelf.registry._package import MAX_PACKAGE_FILES, Package, PackageFile
from skillshelf.text import clean_line, truncate

_SECONDS = 600.0
"""For one fetch. One that stands still ends after 30 seconds."""
_MAX_PACK = 1024 * 1024 * 1024
_MAX_OUTPUT = 128 * 1024 * 1024
"""Bytes of the list of files: 100 for each of a million."""
_MAX_ERRORS = 64 * 1024

_HOSTS = ("github.com", "gitlab.com", "bitbucket.org", "codeberg.org")
"""Whose addresses people give without `.git`."""
_SHORT = re.compile(r"(?P<address>[A-Za-z0-9][\w.-]*/[\w.-]+)(?:/(?P<path>[^@]+))?(?:@(?P<ref>.+))?")
_URL = re.compile(
    r"(?P<address>(?:\w+://[^/]*/|[\w.-]+@[\w.-]+:).+?)(?:(?<=\.git)/(?P<path>[^@]+))?(?:(?<!/)@(?P<ref>[^@:]+))?"
)
_PASTED = re.compile(
    r"https://github\.com/(?P<address>[\w.-]+/[\w.-]+)/(?:tree|blob)/(?P<ref>[^/]+)(?:/(?P<path>.+?))??(?:/SKILL\.md)?"
)
_KEPT = "refs/skillshelf"
"""Each fetched commit has a ref, so that Git never removes it."""
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_SHORT_COMMIT = re.compile(r"[0-9a-f]{4,}")
_REF = re.compile(r"[\w][\w./+-]*")
_LINE = re.compile(rb"(?P<mode>\d+) (?P<type>\w+) (?P<name>[0-9a-f]+)\t(?P<path>.*)", re.S)

_OF_ONE_REPOSITORY = (
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
)
"""Variables that would lead Git to another repository, as those of a hook do."""
_OPTIONS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "fetch.unpackLimit=1",  # one pack, whose size is bounded, instead of a file for each object
    "http.lowSpeedLimit=1000",
    "http.lowSpeedTime=30",
)


class GitSource:
    """A Git repository: `owner/repo[/path][@ref]` on GitHub, or the URL of one."""

    name = "git"

    def parse(self, text: str, asked: str, place: str) -> Origin | None:
        _refuse_password(text.removeprefix("git+"))  # before any message repeats it
        match = _match(text)
        if match is None:
            return None
        if match.re is _SHORT and os.path.isdir(text):
            raise RegistryError(
                f"{text!r} is a folder here, and could be a repository on GitHub. Give ./{text} or "
                f"https://github.com/{match['address']}."
            )
        address, path, ref = (match[part] or "" for part in ("address", "path", "ref"))
        if ref and asked and ref != asked:
            raise RegistryError(f"{text!r} names the version {ref!r}, and --ref {asked!r}. Give one of them.")
        asked = ref or asked
        if asked and not _REF.fullmatch(asked):
            raise RegistryError(f"{asked!r:.80} cannot be a branch, tag or commit.")
        path = path.strip("/")
        if ".." in path.split("/"):
            raise RegistryError(f"{path!r:.200} leads out of the repository.")
        return Origin(self.name, address, path, asked)

    @contextmanager
    def open(self, origin: Origin, pin: Pin, place: str) -> Iterator[Package]:
        _refuse_password(origin.address)
        repository = _Repository(_url(origin.address), origin.address)
        commit = pin.commit
        ref = ""
        if not commit:
            commit, ref = repository.find_commit(origin.asked)
        if not _COMMIT.fullmatch(commit):
            raise RegistryError(f"{commit!r:.80} is not a commit.")
        repository.fetch(commit, ref or origin.asked)
        yield _Commit(repository, commit)


def _match(text: str) -> re.Match[str] | None:
    text = text.rstrip("/")
    if text.partition("/")[0] in _HOSTS:
        text = f"https://{text}"
    pasted = _PASTED.fullmatch(text)
    if pasted:
        return pasted
    if text.startswith("git+"):
        return _URL.fullmatch(text.removeprefix("git+"))
    if "://" in text:
        parts = urlsplit(text)
        is_git = parts.scheme in ("file", "git", "ssh") or parts.hostname in _HOSTS or ".git" in parts.path
        return _URL.fullmatch(text) if is_git else None
    if "@" in text.partition("/")[0]:
        return _URL.fullmatch(text)
    return _SHORT.fullmatch(text)


def _refuse_password(address: str) -> None:
    """Refuse an address with a secret in it: the lock is committed, and other users see the arguments of a program."""
    if "://" not in address:
        return
    try:
        parts = urlsplit(address)
    except ValueError as error:
        raise RegistryError(f"{address!r:.200} is not a URL: {error}.") from None
    if parts.password or (parts.username and parts.scheme in ("http", "https")):
        raise RegistryError("Don't put a password or token in a URL. Use a credential helper of Git.")


def _url(address: str) -> str:
    return f"https://github.com/{address.removesuffix('.git')}.git" if _SHORT.fullmatch(address) else address


class _Repository:
    """The bare repository in the cache that has the commits of an address."""

    def __init__(self, url: str, shown: str) -> None:
        self.url = url
        self.shown = clean_line(shown)
        cache = cache_home()
        if cache is None:
            raise RegistryError(
                "There is no folder to keep repositories in: this user has no home. Set XDG_CACHE_HOME."
            )
        self.folder = os.path.join(cache, "git", hashlib.sha256(url.encode()).hexdigest()[:32])
        try:
            make_private_folders(self.folder)
        except OSError as error:
            reason = error.strerror or str(error)
            raise RegistryError(f"Repositories cannot be kept in {cache}: {reason}. Set XDG_CACHE_HOME.") from None
        with self._lock():
            self._remove_leftovers()
            self.run("init", "--quiet", "--bare", "--template=", ".")  # also completes one that was cut short

    def _remove_leftovers(self) -> None:
        """Remove what a killed Git left: locks, at which the next one would give up, and parts of packs."""
        for pattern in ("*.lock", f"{_KEPT}/*.lock", "objects/pack/tmp_*"):
            for path in glob(f"{glob_escape(self.folder)}/{pattern}"):
                with suppress(OSError):
                    system.unlink(path)

    def find_commit(self, asked: str) -> tuple[str, str]:
        """Return the commit that a branch, tag or commit means now, and the full name of the branch or tag."""
        if _COMMIT.fullmatch(asked):
            return asked, ""
        wanted = ["HEAD"]
        if asked.startswith("refs/"):
            wanted = [asked]
        elif asked:
            wanted = [f"refs/heads/{asked}", f"refs/tags/{asked}"]
        output = self.run("ls-remote", "--", self.url, *wanted, *(f"{ref}^{{}}" for ref in wanted))
        found = {}
        for line in output.decode(errors="replace").splitlines():
            commit, _, ref = line.partition("\t")
            if ref.removesuffix("^{}") in wanted:  # a pattern also matches at the end of longer names
                found[ref] = commit
        refs = [ref for ref in wanted if ref in found]
        if not refs:
            what = f"no branch or tag {asked!r}" if asked else "no commit"
            hint = " Give a commit with all its digits." if _SHORT_COMMIT.fullmatch(asked) else ""
            raise RegistryError(f"{self.shown} has {what}.{hint}")
        commits = {found.get(f"{ref}^{{}}", found[ref]) for ref in refs}
        if len(commits) > 1:
            raise RegistryError(f"{self.shown} has a branch and a tag {asked!r}. Give {' or '.join(refs)}.")
        return commits.pop(), refs[0]

    def fetch(self, commit: str, ref: str) -> None:
        """Get a commit, unless it is here already. Raises RegistryError."""
        with self._lock():
            if self._has(commit):
                return
            kept = f"{_KEPT}/{commit}"
            try:
                self._fetch(f"+{commit}:{kept}")
            except RegistryError:
                # Some servers give out branches and tags only.
                if not ref or _COMMIT.fullmatch(ref):
                    raise
                self._fetch(f"+{ref}:{kept}")
            if not self._has(commit):
                raise RegistryError(f"{self.shown} no longer has the commit {commit}.")

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Be the only process that writes to the repository."""
        try:
            with hold_lock(f"{self.folder}.lock", timeout=_SECONDS):
                yield
        except LockTimeout:
            raise RegistryError(f"Another process is fetching {self.shown}. Try again.") from None

    def _fetch(self, refspec: str) -> None:
        self.run("fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--", self.url, refspec)

    def _has(self, commit: str) -> bool:
        """Return True for a commit with all its files. A killed fetch leaves some of them, but no ref."""
        with suppress(RegistryError):
            kept, wanted = self.run("rev-parse", f"{_KEPT}/{commit}^{{commit}}", f"{commit}^{{commit}}").split()
            return kept == wanted  # either may be a tag of it
        return False

    def run(self, *words: str) -> bytes:
        """Run a Git command and return its output. Raises RegistryError with the reason."""
        with TemporaryFile() as errors:
            with self.start(*words, errors=errors) as process:
                assert process.stdout is not None
                output: bytes = process.stdout.read(_MAX_OUTPUT + 1)
                is_whole = len(output) <= _MAX_OUTPUT
                failed = is_whole and process.wait()
            errors.seek(0)
            lines = errors.read(_MAX_ERRORS).decode(errors="replace").strip().splitlines()
        if failed:
            reason = truncate(_find_reason(lines) or f"git {words[0]} ended with {failed}", 300)
            raise RegistryError(f"{self.shown} cannot be fetched: {reason}")
        if not is_whole:
            raise RegistryError(f"{self.shown} has too many files.")
        return output

    @contextmanager
    def start(self, *words: str, errors: "IO[bytes] | int" = DEVNULL) -> "Iterator[Popen[bytes]]":
        """Start a Git command. It and what it started have ended at the end of the block, or when time is up."""
        command = ["git", *(word for option in _OPTIONS for word in ("-c", option)), *words]
        try:
            process = Popen(
                command,
                cwd=self.folder,
                env=git_environment(self.folder),
                stdin=PIPE,
                stdout=PIPE,
                stderr=errors,
                start_new_session=True,
                preexec_fn=limit_file_size,
            )
        except FileNotFoundError:
            raise RegistryError("git is not installed. Skills from repositories need it.") from None
        timer = Timer(_SECONDS, _kill, [process.pid])
        timer.start()
        try:
            with process:
                try:
                    yield process
                finally:
                    _kill(process.pid)
        finally:
            timer.cancel()


def _find_reason(complaint: Sequence[str]) -> str:
    """Return the reason that Git gives, in one line, without the advice after it. Before it is what SSH says."""
    ends = [number for number, line in enumerate(complaint) if line.startswith("fatal: ")]
    last = ends[0] if ends else len(complaint) - 1
    reason = "; ".join(clean_line(line.removeprefix("fatal: ")) for line in complaint[max(last - 1, 0) : last + 1])
    if "terminal prompts disabled" in reason:  # what GitHub asks for a name that does not exist
        return "there is no such repository, or it is private and no credential helper of Git has a password for it"
    return reason


def _kill(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def limit_file_size() -> None:
    """Bound the files that a program writes. This runs in the new process: do no more here."""
    hard = getrlimit(RLIMIT_FSIZE)[1]
    size = _MAX_PACK if hard == RLIM_INFINITY else min(_MAX_PACK, hard)
    setrlimit(RLIMIT_FSIZE, (size, hard))


def git_environment(folder: str) -> dict[str, str]:
    """Return the user's environment, in which nothing asks and no workspace has a say."""
    environment = {name: value for name, value in os.environ.items() if name not in _OF_ONE_REPOSITORY}
    return {
        **environment,
        "LC_ALL": "C",  # messages in English
        "GIT_DIR": folder,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "",
        "SSH_ASKPASS": "",
        "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
    }


class _Commit:
    """The files of a commit, read as objects. Submodules are left out."""

    def __init__(self, repository: _Repository, commit: str) -> None:
        self.pin = Pin(commit=commit)
        self._repository = repository
        self.files: dict[str, PackageFile] = {}
        links = []
        for row in repository.run("ls-tree", "-r", "-z", commit).split(b"\0"):
            match = _LINE.fullmatch(row)
            if match is None or match["type"] != b"blob":
                continue
            # A name that is not UTF-8 is one that no skill can have.
            path = match["path"].decode(errors="surrogateescape")
            file = PackageFile(path, match["mode"] == b"100755", handle=match["name"])
            self.files[path] = file
            if match["mode"] == b"120000":
                links.append(file)
            if len(self.files) > MAX_PACKAGE_FILES:
                raise RegistryError(f"{repository.shown} has more than {MAX_PACKAGE_FILES:,} files.")
        for link, target in zip(links, self.read(links, _MAX_TARGET), strict=True):
            self.files[link.path] = link._replace(target=target.decode(errors="surrogateescape"))

    def read(self, files: Iterable[PackageFile], limit: int) -> Iterator[bytes]:
        with self._repository.start("cat-file", "--batch") as process:
            questions, answers = process.stdin, process.stdout
            assert questions is not None
            assert answers is not None
            for file in files:
                questions.write(file.handle + b"\n")
                questions.flush()
                header = answers.readline().split()
                if len(header) != 3:
                    raise RegistryError(f"{self._repository.shown}: {file.path!r:.200} cannot be read from the cache.")
                size = int(header[2])
                if size > limit:
                    raise RegistryError(f"{file.path!r:.200} has more than {limit >> 20} MiB.")
                data = answers.read(size + 1)[:size]
                if len(data) != size:
                    raise RegistryError(f"{self._repository.shown}: {file.path!r:.200} cannot be read from the cache.")
                yield data


_MAX_TARGET = 1024 * 1024
"""Bytes of the text in a link."""
