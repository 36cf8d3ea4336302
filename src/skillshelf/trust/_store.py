"""What the person agreed to: a record of trees by their hash, and a copy of each to serve from."""

import os
import secrets
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

from skillshelf.errors import TrustError
from skillshelf.files import make_private_folders, state_home, system
from skillshelf.trust._approvals import Agreement, Approvals, NewerVersion, dump, parse
from skillshelf.trust._copies import Copy, load_copy, make_copy, remove
from skillshelf.trust._pending import Pending
from skillshelf.trust._record import RecordFile

_MOVE = "Set XDG_STATE_HOME to a folder of yours outside the workspace"
_UNTRUSTED = "Nothing counts as approved: run `skillshelf trust` to look at what is pending."


class Trust:
    """The person's agreements. Whatever cannot be read or told to be whole counts as not agreed to."""

    def __init__(self, home: str | None) -> None:
        """`home`: the folder of what skillshelf keeps; None where there is none. `Trust.open` finds it."""
        self.path = os.path.join(os.path.abspath(home), "trust") if home else ""
        self.generation = 0
        """Counts the changes."""
        self.problem = ""
        """Why nothing is trusted though something was; empty where all is well."""
        self.approvals = Approvals()
        self._file = RecordFile(self.path)
        self._read: tuple[bytes | None, str] = (None, "")
        self._is_newer = False
        self._copies: dict[str, Copy] = {}

    @classmethod
    def open(cls, home: str | os.PathLike[str] | None = None) -> "Trust":
        """The user's own. Raises TrustError for a record that a newer skillshelf wrote."""
        trust = cls(state_home() if home is None else os.fspath(home))
        trust.refresh()
        if trust._is_newer:
            raise TrustError(trust.problem)
        return trust

    @property
    def problems(self) -> tuple[str, ...]:
        return (self.problem,) if self.problem else ()

    def refusal(self, root: str) -> str:
        """Why nothing in this workspace can be trusted at all; empty where it can."""
        if not self.path:
            return f"There is no folder to keep approvals in: this user has no home. {_MOVE}."
        inside = root.rstrip("/") + "/"
        # The path as well as where it leads: either way the workspace could ship what counts as the person's word.
        if any(f"{path}/".startswith(inside) for path in (self.path, os.path.realpath(self.path))):
            return f"The approvals would lie inside the workspace, which could bring its own. {_MOVE}."
        return ""

    def is_approved(self, tree: str) -> bool:
        return tree in self.approvals.trees

    def copy(self, tree: str) -> Copy | None:
        """The copy of an approved tree; None where there is none that is whole."""
        if not self.is_approved(tree):
            return None
        copy = self._copies.get(tree) or load_copy(f"{self.path}/trees", tree)
        if copy is None or not copy.is_intact():
            self._copies.pop(tree, None)
            return None
        self._copies[tree] = copy
        return copy

    def refresh(self) -> None:
        """Look whether another process changed the record."""
        if self.path and self._file.may_differ():
            self._load(held=False)

    def approve(self, *pending: Pending) -> None:
        """The person agreed to these, exactly as they were looked at. All of them or, with a TrustError, none."""
        for one in pending:
            reason = self.refusal(one.root) or one.blocked or one.snapshot.fault
            if reason:
                raise TrustError(f"{one.name!r} cannot be approved: {reason}")
        with self._changing(f"approve {', '.join(repr(one.name) for one in pending)}"):
            approvals, now = self.approvals, datetime.now(UTC).isoformat(timespec="seconds")
            for one in pending:
                self._keep_copy(one)
                approvals = approvals.agreed(one.tree, Agreement(one.name, now)).seen(one.root, one.key, one.tree)
            self._replace(approvals)

    def revoke(self, trees: Collection[str]) -> None:
        """These trees are no longer agreed to, wherever they lie."""
        with self._changing("revoke an approval"):
            self._replace(self.approvals.without(trees))

    def seen(self, root: str, found: Mapping[str, str]) -> None:
        """Places have these approved trees now, which keep serving there when something changes.

        No more than a note: where it cannot be written, all goes on without.
        """
        if all(self.approvals.last(root, key) == tree for key, tree in found.items()):
            return
        with suppress(TrustError), self._changing("note a place"):
            approvals = self.approvals
            for key, tree in found.items():
                if tree in approvals.trees:
                    approvals = approvals.seen(root, key, tree)
            self._replace(approvals)

    @contextmanager
    def _changing(self, what: str) -> Iterator[None]:
        """With the lock held and the record as it is now. What is left over of copies goes at the end."""
        if not self.path:
            raise TrustError(f"Cannot {what}: {self.refusal('')}")
        try:
            with self._file.locked():
                make_private_folders(f"{self.path}/trees")
                self._load(held=True)
                if self._is_newer or self._read[1]:
                    raise TrustError(f"Cannot {what}. {self.problem}")
                yield
                with suppress(OSError):
                    self._collect()
        except OSError as error:
            reason = error.strerror or str(error)
            raise TrustError(f"Cannot {what}: {self.path} cannot be written ({reason}). {_MOVE}.") from None

    def _load(self, held: bool) -> None:
        """`held`: the lock is ours."""
        first, before = self.generation == 0, self._read
        self._read = data, fault = self._file.read()
        if self._read == before and not first:
            return
        approvals, self._is_newer = Approvals(), False
        if not fault and data is not None:
            try:
                approvals = parse(data)
            except NewerVersion:
                self._is_newer = True
                fault = "A newer skillshelf wrote the record of approvals, and only that can read it"
            except ValueError:
                fault = "The record of approvals is damaged"
                self._set_aside(data, held)
        if not fault and data is None and os.path.lexists(self._file.bad):
            fault = "The record of approvals was damaged"
        if os.path.lexists(self._file.bad) and "damaged" in fault:
            fault += f" and is set aside as {self._file.bad}"
        self.approvals, self.problem = approvals, f"{fault}. {_UNTRUSTED}" if fault else ""
        self.generation += 1

    def _set_aside(self, data: bytes, held: bool) -> None:
        if held:
            self._file.set_aside(data)
            return
        with suppress(TrustError, OSError), self._file.locked():
            self._file.set_aside(data)

    def _keep_copy(self, pending: Pending) -> None:
        trees, tree = f"{self.path}/trees", pending.tree
        known = load_copy(trees, tree)
        if known and known.is_intact():
            return
        scratch = f"{trees}/.new-{secrets.token_hex(8)}"
        make_copy(pending.root, pending.folder, pending.snapshot, scratch)
        if os.path.lexists(f"{trees}/{tree}"):
            remove(f"{trees}/{tree}")
        system.rename(scratch, f"{trees}/{tree}")
        self._copies.pop(tree, None)

    def _replace(self, approvals: Approvals) -> None:
        # The record alone is forced to disk: a copy that a power cut tears is told by its hash and not served.
        data = dump(approvals)
        self._file.replace(data)
        # Not read back: a failing disk would then look like a record without approvals, and their copies would go.
        self._read = (data, "")
        self._is_newer = False
        self.approvals = approvals
        self.problem = ""
        self.generation += 1

    def _collect(self) -> None:
        """Copies that nobody agrees to any more, and what a killed process left."""
        for name in system.listdir(f"{self.path}/trees"):
            if name not in self.approvals.trees:
                remove(f"{self.path}/trees/{name}")
        self._file.collect()
