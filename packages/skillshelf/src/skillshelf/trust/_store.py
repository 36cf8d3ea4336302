"""The user's approvals on disk: a record of approved trees by hash, and a copy of each to serve from."""

import os
import secrets
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple

from skillshelf.errors import TrustError
from skillshelf.files import (
    LockTimeout,
    NotPlainFile,
    NotPrivate,
    file_stamp,
    hold_lock,
    is_fresh,
    make_private_folders,
    read_private,
    replace_file,
    state_home,
    system,
)
from skillshelf.trust._approvals import (
    Approvals,
    ApprovedTree,
    NewerVersion,
    OwnChanges,
    OwnRepository,
    Pending,
    dump_approvals,
    find_changes,
    parse_approvals,
)
from skillshelf.trust._own import AgentLock, check_repository, identify_repository
from skillshelf.trust._trees import TreeCopy, load_copy, make_copy, remove_copy

_MOVE = "Set XDG_STATE_HOME to a folder of yours outside the workspace"
_UNTRUSTED = "Nothing counts as approved: run `skillshelf trust` to review what is pending."
# A process that dies releases the lock, and one that lives needs it for a moment.
_LOCK_SECONDS = 20.0


class RecordText(NamedTuple):
    """The record's bytes, or the reason why they cannot be used."""

    data: bytes | None
    """None if there is no record."""
    fault: str = ""


class RecordFile:
    """The file `approvals.json`, and the lock beside it."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.path = f"{folder}/approvals.json"
        self.bad = f"{self.path}.bad"
        """The name that a damaged record gets."""
        self._last_status: os.stat_result | None = None

    def may_have_changed(self) -> bool:
        """Return True unless the file's times prove that it is the one read last."""
        status = self._status()
        if status is None or self._last_status is None:
            return True
        return file_stamp(status) != file_stamp(self._last_status) or is_fresh(status, time.time_ns())

    def read(self) -> RecordText:
        """Read the file, which only this user may have written."""
        self._last_status = self._status()
        try:
            return RecordText(read_private(self.path))
        except FileNotFoundError:
            return RecordText(None)
        except NotPlainFile:
            return RecordText(None, "The record of approvals is not a plain file")
        except NotPrivate as error:
            return RecordText(None, str(error))
        except OSError as error:
            return RecordText(None, f"The record of approvals cannot be read: {error.strerror}")

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the lock. Raises OSError if it cannot be written, TrustError if another process does not release it."""
        make_private_folders(self.folder)
        path = f"{self.folder}/lock"
        try:
            with hold_lock(path, timeout=_LOCK_SECONDS):
                yield
        except LockTimeout:
            raise TrustError(f"Another process has held {path} for {_LOCK_SECONDS:.0f} seconds. Try again.") from None

    def set_aside(self, data: bytes) -> None:
        """Rename a damaged record, unless another process has repaired it. Call it with the lock held."""
        if self.read().data == data:
            system.replace(self.path, self.bad)

    def remove_leftovers(self) -> None:
        """Remove the scratch files of killed processes. Call it with the lock held."""
        for name in system.listdir(self.folder):
            if name.startswith("approvals.json.") and not name.endswith(".bad"):
                system.unlink(f"{self.folder}/{name}")

    def _status(self) -> os.stat_result | None:
        try:
            return system.stat(self.path, follow_symlinks=False)
        except OSError:
            return None


class Trust:
    """The user's approvals. If they cannot be read, or may be damaged, nothing counts as approved."""

    def __init__(self, home: str | None) -> None:
        """`home`: the folder of skillshelf's lasting data, or None if there is none. `Trust.open` finds it."""
        self.path = os.path.join(os.path.abspath(home), "trust") if home else ""
        self.generation = 0
        """The number of changes so far."""
        self.problem = ""
        """Why the record cannot be used, so that nothing is trusted; empty if all is well."""
        self.approvals = Approvals()
        self._record = RecordFile(self.path)
        self._last_read = RecordText(None)
        self._is_newer = False
        self._copies: dict[str, TreeCopy] = {}

    @classmethod
    def open(cls, home: str | os.PathLike[str] | None = None) -> "Trust":
        """Return the user's own approvals. Raises TrustError if a newer skillshelf wrote the record."""
        trust = cls(state_home() if home is None else os.fspath(home))
        trust.refresh()
        if trust._is_newer:
            raise TrustError(trust.problem)
        return trust

    @property
    def problems(self) -> tuple[str, ...]:
        """`problem` as a tuple, which is empty if all is well."""
        return (self.problem,) if self.problem else ()

    def refusal(self, root: str) -> str:
        """Return the reason why nothing in this workspace can be trusted; empty if there is none."""
        if not self.path:
            return f"There is no folder to keep approvals in: this user has no home. {_MOVE}."
        workspace = root.rstrip("/") + "/"
        # Both the path and its target count: either way the workspace could ship a record of approvals.
        if any(f"{path}/".startswith(workspace) for path in (self.path, os.path.realpath(self.path))):
            return f"The approvals would be stored inside the workspace, which could then approve itself. {_MOVE}."
        return ""

    def is_approved(self, tree: str) -> bool:
        """Return True if the user approved this content."""
        return tree in self.approvals.trees

    def copy(self, tree: str) -> TreeCopy | None:
        """Return the copy of a tree that is approved or in use; None if it is missing or damaged."""
        if tree not in self.approvals.kept_trees:
            return None
        copy = self._copies.get(tree) or load_copy(self._trees, tree)
        if copy is None or not copy.is_intact():
            self._copies.pop(tree, None)
            return None
        self._copies[tree] = copy
        return copy

    def restore_copy(self, content: Pending) -> TreeCopy | None:
        """Make a lost copy again from the same content. Return None if the content has changed or the disk is full."""
        with suppress(TrustError), self._change(f"copy {content.name!r}"):
            self._store_copy(content)
        return self.copy(content.tree)

    def refresh(self) -> None:
        """Read the record again if another process may have changed it."""
        if self.path and self._record.may_have_changed():
            self._load(is_locked=False)

    def approve(self, *pending: Pending) -> None:
        """Approve pending content exactly as it was shown: all of it or, with a TrustError, none."""
        for item in pending:
            reason = self.refusal(item.root) or item.blocked or item.snapshot.fault
            if reason:
                raise TrustError(f"{item.name!r} cannot be approved: {reason}")

        names = ", ".join(repr(item.name) for item in pending)
        with self._change(f"approve {names}"):
            now = _now()
            approvals = self.approvals
            for item in pending:
                self._store_copy(item)
                approval = ApprovedTree(item.name, now, item.kind)
                approvals = approvals.approve(item.root, item.key, item.tree, approval)
            self._write(approvals)

    def revoke(self, trees: Collection[str]) -> None:
        """Withdraw the approval of these trees, wherever they are."""
        with self._change("revoke an approval"):
            self._write(self.approvals.remove(trees))

    def note_places(self, root: str, trees: Mapping[str, str]) -> None:
        """Record which approved tree each place has now, so that it keeps being served when the files change.

        This is only a note: if it cannot be written, nothing else fails.
        """
        own = self.approvals.own.get(root)
        if all(self.approvals.last_in_use(root, key, own) == tree for key, tree in trees.items()):
            return
        with suppress(TrustError), self._change("note a place"):
            approvals = self.approvals
            for key, tree in trees.items():
                if self.is_approved(tree):
                    approvals = approvals.place(root, key, tree)
            self._write(approvals)

    # -- repositories of the user's own -------------------------------------------------------------------------------

    def can_declare_own(self, root: str) -> bool:
        """Return True if a repository is not the user's own yet and could be declared so."""
        if self.find_own(root) or self.refusal(root) or self.problem:
            return False
        try:
            identify_repository(root)
        except (TrustError, OSError):
            return False
        return True

    def declare_own(self, root: str) -> None:
        """Record that a repository is the user's own. Raises TrustError if it cannot be."""
        try:
            identity = identify_repository(root)
        except OSError as error:
            raise TrustError(f"{root!r} cannot be your own repository: {error.strerror}.") from None
        reason = self.refusal(root)
        if reason:
            raise TrustError(f"{root!r} cannot be your own repository: {reason}")
        with self._change("declare a repository your own"):
            self._write(self.approvals.with_own(root, OwnRepository(identity, since=_now())))

    def disown(self, root: str) -> bool:
        """Record that a repository is one like any other. Return False if it was so before."""
        with self._change("end a declaration"):
            if root not in self.approvals.own:
                return False
            self._write(self.approvals.without_own(root))
            return True

    def why_not_own(self, root: str) -> str:
        """Return the reason why a repository that was declared the user's own does not count as such; else ''."""
        repository = self.approvals.own.get(root)
        if repository is None:
            return ""
        return self.refusal(root) or check_repository(root, repository.identity)

    def explain_lost_own(self, root: str) -> str:
        """Tell the user that a repository they declared their own no longer counts as such; empty if it does."""
        reason = self.why_not_own(root)
        if not reason:
            return ""
        return (
            f"You declared {root} your own repository, but {reason.rstrip('.')}. So its skills wait for review. "
            "If it is yours, run `skillshelf trust --mine` there again."
        )

    def find_own(self, root: str) -> OwnRepository | None:
        """Return the repository if the user declared it their own and it is still the same folder."""
        repository = self.approvals.own.get(root)
        if repository is None or self.why_not_own(root):
            return None
        return repository

    def use_own(self, root: str, *content: Pending, gone: Collection[str] = ()) -> None:
        """Bring content of the user's own repository into use, exactly as it is in its snapshot. Raises TrustError.

        Nothing changes while an agent is at work there, and where the user has to review something. `gone` are the keys
        of skills that no longer exist.
        """
        with self._change("use your own skills"):
            repository = self.find_own(root)
            if repository is None or self.is_agent_at_work(root):
                return
            for item in content:
                if item.key in repository.to_review:
                    continue
                with suppress(TrustError):  # it is being edited right now, and the next look finds it again
                    self._store_copy(item)
                    repository = repository.use(item.key, item.tree)
            left = {key: tree for key, tree in repository.in_use.items() if key not in gone}
            self._write(self.approvals.with_own(root, replace(repository, in_use=left)))

    def approve_write(self, content: Pending) -> None:
        """Approve content that the agent wrote with the whole change in the user's sight. Raises TrustError.

        If the version before it was in use as the user's own, without ever having been approved, so is this one.
        """
        if content.copy is None or self.is_approved(content.copy.tree):
            self.approve(content)
            return
        with self._change(f"use {content.name!r}"):
            repository = self.find_own(content.root)
            if repository:
                self._store_copy(content)
                repository = repository.use(content.key, content.tree).end_review(content.key)
                self._write(self.approvals.with_own(content.root, repository))

    def is_agent_at_work(self, root: str) -> bool:
        """Return True if an agent is at work in a repository, or was killed there and its changes are not recorded."""
        return self._agent_lock(root).exists()

    def lock_for_agent(self, root: str, before: Mapping[str, str]) -> int:
        """Return a descriptor of a lock for an agent at work, until it is closed. Raises TrustError.

        `before` has the skills and files of instructions that are there, by key. Afterwards call
        `record_agent_changes`.
        """
        with self._change("run a command of the agent in your own repository"):
            return self._agent_lock(root).acquire(before)

    def record_agent_changes(self, root: str, find_content: Callable[[], Mapping[str, str]]) -> None:
        """Once no agent is at work in a repository any more, record what has changed since the first of them began.

        `find_content` returns the skills and files of instructions that are there now, by key. Raises TrustError.
        """
        lock = self._agent_lock(root)
        if not lock.exists():
            return
        with self._change("record what the agent changed"):
            if not lock.exists() or lock.is_held():
                return
            repository = self.approvals.own.get(root)
            if repository:
                before = lock.read_before()
                usable = {*self.approvals.trees, *repository.in_use.values()}
                changed = []
                for key, tree in find_content().items():
                    is_same = bool(tree) and before.get(key) == tree
                    if not is_same and tree not in usable:
                        changed.append(key)
                if changed:
                    self._write(self.approvals.with_own(root, repository.require_review(changed)))
            lock.remove()

    def _agent_lock(self, root: str) -> AgentLock:
        return AgentLock(f"{self.path}/agents", root)

    def take_own_changes(self, root: str) -> OwnChanges:
        """Return what came into use in the user's own repository since the last call, in any process."""
        repository = self.find_own(root)
        if repository is None:
            return OwnChanges()
        changes = find_changes(repository)
        if any(changes):
            with suppress(TrustError), self._change("note what you were informed of"):
                current = self.approvals.own.get(root)
                if current:
                    self._write(self.approvals.with_own(root, replace(current, announced=repository.in_use)))
        return changes

    # -- the record and the copies ------------------------------------------------------------------------------------

    @property
    def _trees(self) -> str:
        """The folder of the copies."""
        return f"{self.path}/trees"

    @contextmanager
    def _change(self, action: str) -> Iterator[None]:
        """Hold the lock with the current record loaded. At the end, remove copies that are no longer needed."""
        if not self.path:
            raise TrustError(f"Cannot {action}: {self.refusal('')}")
        try:
            with self._record.lock():
                make_private_folders(self._trees)
                self._load(is_locked=True)
                if self._is_newer or self._last_read.fault:
                    raise TrustError(f"Cannot {action}. {self.problem}")
                yield
                with suppress(OSError):
                    self._remove_leftovers()
        except OSError as error:
            reason = error.strerror or str(error)
            raise TrustError(f"Cannot {action}: {self.path} cannot be written ({reason}). {_MOVE}.") from None

    def _load(self, *, is_locked: bool) -> None:
        is_first = self.generation == 0
        text = self._record.read()
        if text == self._last_read and not is_first:
            return
        self._last_read = text

        approvals = Approvals()
        fault = text.fault
        is_damaged = False
        self._is_newer = False
        if text.data is not None:
            try:
                approvals = parse_approvals(text.data)
            except NewerVersion:
                self._is_newer = True
                fault = "A newer skillshelf wrote the record of approvals, and only that version can read it"
            except ValueError:
                is_damaged = True
                fault = "The record of approvals is damaged"
                self._set_aside(text.data, is_locked)
        elif not fault and os.path.lexists(self._record.bad):
            is_damaged = True
            fault = "The record of approvals was damaged"

        if is_damaged and os.path.lexists(self._record.bad):
            fault += f" and is set aside as {self._record.bad}"
        self.approvals = approvals
        self.problem = f"{fault}. {_UNTRUSTED}" if fault else ""
        self.generation += 1

    def _set_aside(self, data: bytes, is_locked: bool) -> None:
        if is_locked:
            self._record.set_aside(data)
            return
        with suppress(TrustError, OSError), self._record.lock():
            self._record.set_aside(data)

    def _store_copy(self, pending: Pending) -> None:
        tree = pending.tree
        stored = load_copy(self._trees, tree)
        if stored and stored.is_intact():
            return

        scratch = f"{self._trees}/.new-{secrets.token_hex(8)}"
        make_copy(pending.root, pending.folder, pending.snapshot, scratch)
        if os.path.lexists(f"{self._trees}/{tree}"):
            remove_copy(f"{self._trees}/{tree}")
        system.rename(scratch, f"{self._trees}/{tree}")
        self._copies.pop(tree, None)

    def _write(self, approvals: Approvals) -> None:
        data = dump_approvals(approvals)
        # Only the record is forced to disk: a copy torn by a power cut fails its hash and is not served.
        replace_file(self._record.path, data, durable=True)
        # Not read back: a failing disk would then look like a record without approvals, and their copies would go.
        self._last_read = RecordText(data)
        self._is_newer = False
        self.approvals = approvals
        self.problem = ""
        self.generation += 1

    def _remove_leftovers(self) -> None:
        """Remove the copies of revoked trees, and files that a killed process left behind."""
        kept = self.approvals.kept_trees
        for name in system.listdir(self._trees):
            if name not in kept:
                remove_copy(f"{self._trees}/{name}")
        self._record.remove_leftovers()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
