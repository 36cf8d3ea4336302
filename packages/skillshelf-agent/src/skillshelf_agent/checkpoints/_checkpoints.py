"""Checkpoints: what each turn changed in the workspace, and taking it back."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

from skillshelf.errors import CheckpointError
from skillshelf.files import hash_content
from skillshelf.text import clean_line, count_noun, truncate
from skillshelf_agent.checkpoints import _limits
from skillshelf_agent.checkpoints._base import BaseCopy, ObservedChange
from skillshelf_agent.checkpoints._restore import LeftFile, Restoration, restore
from skillshelf_agent.checkpoints._states import BLOCKED_STATE, Look, PathState, look_at, may_hold_secrets
from skillshelf_agent.checkpoints._store import (
    FileChange,
    TurnFiles,
    TurnRecord,
    is_same,
    load_turns,
    remove_old,
)
from skillshelf_agent.checkpoints._sweep import TooManyFiles, sweep
from skillshelf_agent.filetools import FileAccess, Parts, show_path

_MAX_MESSAGE = 80
_MAX_NAMED = 10
_MAX_NAMED_TO_MODEL = 50


@dataclass(frozen=True, slots=True)
class Undone:
    """The result of an undo or a redo."""

    message: str
    """The message whose turn it was."""
    changed: tuple[str, ...]
    """The paths that were brought back."""
    left: tuple[LeftFile, ...]


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A path with its contents before and after a turn, or a session."""

    path: str
    before: PathState
    after: PathState
    old: bytes | None
    """None if there was nothing, or the content is not kept."""
    new: bytes | None
    is_current: bool = True
    """False if the user changed it since. Then `after` and `new` are the file as it is now."""
    in_command: bool = False
    """True if it changed while a command ran: by the command, or by the user at the same time."""


class Checkpoints:
    """The checkpoints of one workspace, for one session at a time."""

    def __init__(self, access: FileAccess, home: str) -> None:
        """`home`: the folder for the checkpoints of this workspace, outside of it."""
        self._access = access
        self._home = home
        self._base = BaseCopy(access.root, home)
        self._lock = threading.Lock()
        """Tools run in threads, and several at once."""
        self._folder = ""
        self._turns: list[TurnFiles] = []
        self._turn: TurnFiles | None = None
        """The turn in progress."""
        self._commands = 0
        """How many commands run right now."""
        self._is_swept = False
        """True if the base copy is from this turn."""
        self._problems: list[str] = []

    def open_session(self, session: str) -> None:
        """Go on with the checkpoints of this session."""
        self._folder = os.path.join(self._home, session)
        self._turns = load_turns(self._folder)
        self._turn = None

    # -- a turn -------------------------------------------------------------------------------------------------------

    def begin_turn(self, message: str, begun: datetime | None = None) -> None:
        """Begin the turn of a message that was sent at this time.

        Nothing is looked at or written until a tool is about to change something.
        """
        number = self._turns[-1].record.number + 1 if self._turns else 1
        line = truncate(clean_line(" ".join(message[: 4 * _MAX_MESSAGE].split())), _MAX_MESSAGE)
        self._turn = TurnFiles(self._folder, TurnRecord(number, line, begun=begun))
        self._is_swept = False
        self._commands = 0
        self._problems = []

    def before_write(self, parts: Parts, new: bytes) -> None:
        """Keep a file that a tool is about to write."""
        with self._lock:
            turn = self._turn
            if turn is None:
                return
            try:
                self._record(turn, self._plan_write(parts, new))
            except OSError as error:
                self._note_failure(error)

    def after_write(self, parts: Parts) -> None:
        """Record what a tool has made of a file, and of the folders on the way to it."""
        with self._lock:
            turn = self._turn
            if turn is None:
                return
            changes: list[FileChange] = []
            try:
                for depth in range(1, len(parts) + 1):
                    change = turn.record.changes.get("/".join(parts[:depth]))
                    if change is None:
                        continue
                    after = look_at(self._access.root, parts[:depth]).state
                    if after != change.after:
                        changes.append(change.model_copy(update={"after": after}))
                if changes:
                    turn.add_changes(changes)
            except OSError as error:
                self._note_failure(error)

    def _plan_write(self, parts: Parts, new: bytes) -> Iterator[_PathChange]:
        for depth in range(1, len(parts)):
            folder = look_at(self._access.root, parts[:depth]).state
            if folder.kind == "absent":
                yield _PathChange("/".join(parts[:depth]), folder, PathState(kind="folder", mode=0o777), b"")
        current = look_at(self._access.root, parts)
        mode = current.state.mode if current.state.kind == "file" else 0o666
        planned = PathState(kind="file", mode=mode, size=len(new), digest=hash_content(new))
        yield _PathChange("/".join(parts), current.state, planned, current.data)

    def before_command(self) -> None:
        """Keep the workspace as it is, because a command is about to run."""
        with self._lock:
            self._commands += 1
            is_large = self._base.size > _limits.SWEPT_TWICE
            if self._turn is None or self._commands > 1 or (is_large and self._is_swept):
                return
            try:
                self._base.refresh(sweep(self._access))
                self._is_swept = True
            except TooManyFiles:
                self._note(
                    f"This folder has more than {_limits.ENTRIES:,} files, so changes by commands cannot be taken "
                    "back. Start the chat in a smaller folder if they should be."
                )
            except OSError as error:
                self._note_failure(error)
            self._note_base_problem()

    def after_command(self) -> None:
        """Record what a command has changed."""
        with self._lock:
            self._commands = max(0, self._commands - 1)
            turn = self._turn
            if turn is None or not self._is_swept:
                return
            try:
                observed = self._base.observe(sweep(self._access))
                self._record(turn, self._list_steps(observed), in_command=True)
                self._note_base_problem()
            except TooManyFiles:
                self._is_swept = False
                self._note("The last command made too many files to compare: its changes cannot be taken back.")
            except OSError as error:
                self._note_failure(error)

    def end_turn(self) -> list[str]:
        """End the turn. Return what the user should know about changes that cannot be taken back."""
        with self._lock:
            turn = self._turn
            self._turn = None
            notes = list(self._problems)
            if turn is None or not turn.record.changes:
                return notes
            self._turns.append(turn)
            unkept = [change.path for change in turn.record.effective_changes if not self._can_undo(turn, change)]
            if unkept:
                notes.append(f"{_name_paths(unkept)}: cannot be taken back, {self._explain_limits()}.")
            with suppress(OSError):
                remove_old(os.path.dirname(self._home))
            return notes

    def _explain_limits(self) -> str:
        per_file = _limits.FILE_BYTES // 1024**2
        in_all = _limits.COPIED_BYTES // 1024**2
        return (
            f"since the content before was not kept (the limits are {per_file} MB for a file and {in_all} MB in all, "
            "and files that may hold secrets are never kept)"
        )

    def _list_steps(self, observed: Sequence[ObservedChange]) -> Iterator[_PathChange]:
        for change in observed:
            data = self._base.read(change.before.digest) if change.before.digest else b""
            yield _PathChange(change.path, change.before, change.after.state, data or b"")

    def _record(self, turn: TurnFiles, steps: Iterable[_PathChange], *, in_command: bool = False) -> None:
        """Add steps to the turn, joined with its earlier ones. Raises OSError."""
        batch = _Batch(turn)
        for step in steps:
            earlier = turn.record.changes.get(step.path)
            change = FileChange(path=step.path, before=step.before, after=step.after, in_command=in_command)
            if earlier is not None and (earlier.before, earlier.after) == (step.before, step.after):
                change = earlier  # written by a file tool at the same time as a command ran
            elif earlier is not None and earlier.after in (step.before, step.after):
                change.before = earlier.before
                change.in_command = in_command or earlier.in_command
            # Otherwise the user has changed the file in between: only what the agent did after that is taken back.
            batch.add(change, Look(step.before, step.data))
        batch.write()

    def _note(self, problem: str) -> None:
        if problem not in self._problems:
            self._problems.append(problem)

    def _note_base_problem(self) -> None:
        if self._base.problem:
            self._note(f"Some changes by commands cannot be taken back: {self._base.problem}.")

    def _note_failure(self, error: OSError) -> None:
        self._note(f"A change of this turn cannot be taken back, since keeping it failed: {error.strerror or error}.")

    # -- afterwards ---------------------------------------------------------------------------------------------------

    def undo(self, *, commands: bool = False) -> Undone:
        """Take back the last turn that changed files and was not taken back. Raises CheckpointError.

        A file that is not as the turn left it stays as it is, and so does one that changed while a command ran, unless
        `commands` is given: the user may have edited it.
        """
        with self._lock:
            turn = self._find_last()
            if turn is None:
                raise CheckpointError("There is nothing to take back: no turn of this session has changed a file.")
            return self._undo(turn, commands=commands)

    def rewind(self, since: datetime, *, files: bool, commands: bool) -> list[Undone]:
        """Note that messages from this time on are no longer in the conversation.

        With `files`, take their changes back, the last turn's first; `commands` is as in `undo`. Raises
        CheckpointError.
        """
        with self._lock:
            undone: list[Undone] = []
            for turn in reversed(self._list_since(since)):
                if files and not turn.record.is_undone and turn.record.effective_changes:
                    undone.append(self._undo(turn, commands=commands))
                with suppress(OSError):  # the model is not told that these files have changed
                    turn.mark_rewound()
            return undone

    def _undo(self, turn: TurnFiles, *, commands: bool) -> Undone:
        changes = turn.record.effective_changes
        self._keep_current(turn, changes)
        items = [
            Restoration(change.path, change.before, change.after, is_doubtful=change.in_command and not commands)
            for change in changes
        ]
        return self._restore(turn, items, is_undone=True)

    def _list_since(self, since: datetime) -> list[TurnFiles]:
        return [turn for turn in self._turns if turn.record.begun and turn.record.begun >= since]

    def undo_file(self, path: str) -> Undone:
        """Take back one file that an undo has left because the user changed it, or may have.

        The user's version is kept, and `redo` brings it back. Raises CheckpointError, or FileAccessError for a path
        outside the workspace.
        """
        with self._lock:
            wanted = "/".join(self._access.resolve(path))
            turn = next((turn for turn in reversed(self._turns) if wanted in turn.record.left), None)
            if turn is None:
                raise CheckpointError(
                    f"{show_path(path)!r} is not a file that an undo has left. /undo alone takes back the last turn."
                )
            if may_hold_secrets(wanted):
                raise CheckpointError(
                    f"{show_path(path)!r} may hold secrets, so your version would not be kept. It was left as it is: "
                    "change or remove it yourself."
                )
            change = turn.record.changes[wanted]
            self._keep_current(turn, [change], replace_after=True)
            still_left = [left for left in turn.record.left if left != wanted]
            return self._restore(turn, [Restoration(wanted, change.before, None)], is_undone=True, left=still_left)

    def redo(self) -> Undone:
        """Bring back the turn that was taken back last, if no turn has changed files since. Raises CheckpointError."""
        with self._lock:
            turn = None
            for candidate in reversed(self._turns):
                if candidate.record.effective_changes:
                    if not candidate.record.is_undone:
                        break
                    turn = candidate
            if turn is None:
                raise CheckpointError("There is nothing to bring back: no turn was taken back since the last change.")
            changes = turn.record.effective_changes
            items = [Restoration(change.path, change.after, change.before) for change in changes]
            return self._restore(turn, items, is_undone=False)

    def list_changes(self, *, whole_session: bool = False, since: datetime | None = None) -> list[ChangedFile]:
        """Return what the last turn that changed files did to them.

        With `whole_session`, all turns count together; with `since`, those of messages from this time on. Turns that
        were taken back do not count.
        """
        with self._lock:
            last = self._find_last()
            turns = [last] if last else []
            if whole_session or since:
                turns = self._list_since(since) if since else self._turns
                turns = [turn for turn in turns if not turn.record.is_undone]
            joined: dict[str, FileChange] = {}
            for turn in turns:
                for path, change in turn.record.changes.items():
                    first = joined.get(path, change)
                    in_command = first.in_command or change.in_command
                    joined[path] = change.model_copy(update={"before": first.before, "in_command": in_command})
            return [self._describe(joined[path]) for path in sorted(joined) if not is_same(joined[path])]

    def take_note(self) -> str:
        """Return what the model must know about turns that were taken back since its last message, or nothing."""
        lines: list[str] = []
        for turn in self._turns:
            record = turn.record
            if record.is_told:
                continue
            action = "took back" if record.is_undone else "brought back"
            changed = [change.path for change in record.effective_changes if change.path not in record.left]
            paths = _name_paths(changed, for_model=True)
            line = f'The user {action} your file changes for "{record.message}": {paths}.'
            if record.is_rewound and not record.is_undone:
                line = f"The user took back messages that you had answered, but not your file changes: {paths}."
            if record.left:
                line += f" Left as they are: {_name_paths(record.left, for_model=True)}."
            lines.append(line)
            with suppress(OSError):
                turn.mark_told()
        if not lines:
            return ""
        lines.append("Read these files again before you rely on their content.")
        return f"[Note from the application, not a request: {' '.join(lines)}]"

    def close(self) -> None:
        self._base.close()

    def _find_last(self) -> TurnFiles | None:
        """Return the last turn that changed something and was not taken back."""
        for turn in reversed(self._turns):
            if not turn.record.is_undone and turn.record.effective_changes:
                return turn
        return None

    def _keep_current(self, turn: TurnFiles, changes: Sequence[FileChange], *, replace_after: bool = False) -> None:
        """Keep the files as they are now, so that nothing is lost and `redo` can bring them back.

        With `replace_after`, the files as they are now count as what the turn left.
        """
        try:
            batch = _Batch(turn)
            for change in changes:
                current = look_at(self._access.root, change.path.split("/"))
                after = current.state if replace_after else change.after
                if current.state == after and current.state != change.before:
                    batch.add(change.model_copy(update={"after": after}), current)
            batch.write()
        except OSError as error:
            raise CheckpointError(
                f"Nothing was taken back: the files as they are could not be kept first ({error.strerror or error})."
            ) from error

    def _restore(
        self, turn: TurnFiles, items: Sequence[Restoration], *, is_undone: bool, left: Sequence[str] = ()
    ) -> Undone:
        """Bring paths back, and record that. `left` are paths that were left before, and still are."""
        changed: list[str] = []
        newly_left: list[LeftFile] = []
        for outcome in restore(self._access.root, items, self._read):
            if outcome.left:
                newly_left.append(outcome.left)
            elif outcome.is_changed:
                changed.append(outcome.path)
        try:
            turn.mark_undone(is_undone, [*left, *(file.path for file in newly_left)])
        except OSError as error:
            raise CheckpointError(
                f"The files were brought back, but that could not be recorded: {error.strerror or error}. "
                "Repeating it does no harm."
            ) from error
        newly_left.sort(key=lambda file: file.path)
        return Undone(turn.record.message, tuple(sorted(changed)), tuple(newly_left))

    def _read(self, digest: str) -> bytes | None:
        """Return a content from any turn of the session: one turn's result is where the next one began."""
        for turn in reversed(self._turns):
            data = turn.read(digest)
            if data is not None:
                return data
        return None

    def _can_undo(self, turn: TurnFiles, change: FileChange) -> bool:
        if not change.before.has_content:
            return change.before.kind != "other"
        return change.before.digest in turn.record.places

    def _describe(self, change: FileChange) -> ChangedFile:
        old = self._read(change.before.digest) if change.before.digest else None
        current = Look(BLOCKED_STATE)
        with suppress(OSError):
            current = look_at(self._access.root, change.path.split("/"))
        new = current.data if current.state.digest else None
        changed = ChangedFile(change.path, change.before, change.after, old, new, in_command=change.in_command)
        if current.state == change.after:
            return changed
        kept = self._read(change.after.digest) if change.after.digest else None
        if kept is not None:
            return replace(changed, new=kept)
        return replace(changed, after=current.state, is_current=False)


class _Batch:
    """Changes and contents on their way to a turn's files."""

    def __init__(self, turn: TurnFiles) -> None:
        self._turn = turn
        self._changes: list[FileChange] = []
        self._contents: list[Look] = []
        self._size = 0

    def add(self, change: FileChange, content: Look) -> None:
        self._changes.append(change)
        self._contents.append(content)
        self._size += len(content.data)
        if self._size > _limits.BATCH_BYTES:
            self.write()

    def write(self) -> None:
        """Write everything that was added since the last time. Raises OSError."""
        if self._changes:
            self._turn.add_changes(self._changes, self._contents)
        self._changes = []
        self._contents = []
        self._size = 0


@dataclass(frozen=True, slots=True)
class _PathChange:
    """What one tool call did to one path."""

    path: str
    before: PathState
    after: PathState
    data: bytes
    """The content before."""


def _name_paths(paths: Sequence[str], *, for_model: bool = False) -> str:
    limit = _MAX_NAMED_TO_MODEL if for_model else _MAX_NAMED
    names = ", ".join(show_path(path) for path in paths[:limit])
    if len(paths) > limit:
        names += f" and {count_noun(len(paths) - limit, 'more file')}"
    return names or "no file"
