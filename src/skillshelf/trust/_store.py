"""The user's approvals on disk: a record of approved trees by hash, and a copy of each to serve from."""

import os
import secrets
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime

from skillshelf.errors import TrustError
from skillshelf.files import make_private_folders, replace_file, state_home, system
from skillshelf.trust._approvals import (
    Approvals,
    ApprovedTree,
    NewerVersion,
    RecordFile,
    RecordText,
    dump_approvals,
    parse_approvals,
)
from skillshelf.trust._own import (
    AgentMark,
    AgentMarks,
    OwnChanges,
    OwnRepository,
    check_repository,
    find_changes,
    identify_repository,
)
from skillshelf.trust._pending import Pending
from skillshelf.trust._trees import TreeCopy, load_copy, make_copy, remove_copy

_MOVE = "Set XDG_STATE_HOME to a folder of yours outside the workspace"
_UNTRUSTED = "Nothing counts as approved: run `skillshelf trust` to review what is pending."


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
        self._marks = AgentMarks(f"{self.path}/agents")
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
                approvals = approvals.add(item.tree, approval).place(item.root, item.key, item.tree)
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

    def use_own(self, root: str, *content: Pending, gone: Collection[str] = (), is_seen: bool = False) -> None:
        """Bring content of the user's own repository into use, exactly as it is in its snapshot. Raises TrustError.

        While an agent works there, nothing changes. If an agent was killed there, the content is held instead, because
        it may be the agent's; `settle_killed` ends this. `gone` are the keys of skills that no longer exist. `is_seen`:
        the agent wrote the content in the user's sight.
        """
        with self._change("use your own skills"):
            repository = self.find_own(root)
            agents = "idle" if is_seen else self._marks.find_state(root)
            if repository is None or agents == "at work":
                return
            if agents == "killed":
                repository = repository.hold(item.key for item in content)
            for item in content:
                if item.key in repository.held and not is_seen:
                    continue
                with suppress(TrustError):  # it is being edited right now, and the next look finds it again
                    self._store_copy(item)
                    repository = repository.use(item.key, item.tree)
            left = {key: tree for key, tree in repository.in_use.items() if key not in gone}
            self._write(self.approvals.with_own(root, replace(repository, in_use=left)))

    def settle_killed(self, root: str, find_trees: Callable[[], Mapping[str, str]]) -> None:
        """If an agent was killed in a repository, hold everything that it may have changed, and remove its mark.

        `find_trees` returns all skills and files of instructions that are there, by key: the mark is the only sign of
        the agent, so none of them may be left for later. Raises TrustError.
        """
        if not self._marks.any(root):
            return
        with self._change("hold what a killed agent changed"):
            repository = self.find_own(root)
            if repository is None or self._marks.find_state(root) != "killed":
                return
            usable = {*self.approvals.trees, *repository.in_use.values()}
            changed = [key for key, tree in find_trees().items() if tree not in usable]
            self._write(self.approvals.with_own(root, repository.hold(changed)))
            self._marks.remove_abandoned(root)

    def mark_agent(self, root: str) -> AgentMark:
        """Record that an agent changes files of a repository, until `hold`. Raises TrustError."""
        with self._change("run a command of the agent in your own repository"):
            return self._marks.set(root)

    def hold(self, root: str, keys: Collection[str], mark: AgentMark) -> None:
        """Hold what an agent left at these keys until the user has looked at it, and remove the agent's mark.

        If that cannot be recorded, the mark stays behind, and everything that changed is held as after a kill.
        """
        try:
            with suppress(TrustError), self._change("hold what the agent changed"):
                repository = self.approvals.own.get(root)
                if repository and not repository.held.issuperset(keys):
                    self._write(self.approvals.with_own(root, repository.hold(keys)))
                mark.remove()
        finally:
            mark.release()

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
