"""Views of what a turn changed in the workspace, and of taking it back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from skillshelf.agent import ChangedFile, LeftFile, Undone
from skillshelf.agent.checkpoints import FileState
from skillshelf.agent.filetools import diff_texts, show_path
from skillshelf.rendering import truncate_cells
from skillshelf.repl._quotes import Diff
from skillshelf.text import clean, clean_line, count_noun, decode_text

_MAX_LISTED = 20
_MAX_MESSAGE_CELLS = 40
_MAX_DIFF_BYTES = 256 * 1024
_MAX_DIFF_LINES = 1_000


def view_undone(undone: Undone, action: str) -> Sequence[RenderableType]:
    """Return what an undo or a redo did. `action` says it in words: `Took back`."""
    message = truncate_cells(clean_line(undone.message), _MAX_MESSAGE_CELLS)
    lines: list[RenderableType] = [f'{action} "{message}": {count_noun(len(undone.changed), "path")}.']
    lines += [Text(f"  {show_path(path)}", "dim") for path in undone.changed[:_MAX_LISTED]]
    if len(undone.changed) > _MAX_LISTED:
        lines.append(Text(f"  … and {len(undone.changed) - _MAX_LISTED:,} more", "dim"))
    if undone.left:
        lines.append(Text("Left as they are:", "yellow"))
        lines += [Text(f"  {_explain_left(file)}", "yellow") for file in undone.left[:_MAX_LISTED]]
    if len(undone.left) > _MAX_LISTED:
        lines.append(Text(f"  … and {len(undone.left) - _MAX_LISTED:,} more", "yellow"))
    return lines


def _explain_left(file: LeftFile) -> str:
    path = show_path(file.path)
    if file.reason == "changed":
        return f"{path}: it was changed since. /undo {path} takes it back anyway, and /redo brings your version back."
    if file.reason == "not-kept":
        return f"{path}: its content was not kept (too large, secret, or its checkpoint is too old)."
    return f"{path}: {clean_line(file.problem)}."


def view_changes(changes: Sequence[ChangedFile]) -> Iterator[RenderableType]:
    """Return the changes as diffs. Binary and large files are only named."""
    for change in changes:
        if change.before.kind != "folder" and change.after.kind != "folder":
            yield from _view_change(change)


def _view_change(change: ChangedFile) -> Iterator[RenderableType]:
    path = show_path(change.path)
    title = Text.assemble((path, "bold"), (f"  {_describe_change(change)}", "dim"))
    if not change.is_current:
        title.append("  you changed it since: this is the file as it is now", "yellow")

    old = _read_text(change.before, change.old)
    new = _read_text(change.after, change.new)
    if old is None or new is None:
        sizes = f"{_format_state(change.before)} → {_format_state(change.after)}"
        yield title.append(f"  not shown: {sizes}", "dim")
        return

    diff = diff_texts(old, new, change.path)
    lines = diff.count("\n") + 1
    if lines > _MAX_DIFF_LINES:
        yield title.append(f"  not shown: {lines:,} lines of changes", "dim")
        return
    yield title
    if diff:
        yield Diff(clean(diff))


def _describe_change(change: ChangedFile) -> str:
    before = change.before
    after = change.after
    if before.kind == "absent":
        return "created"
    if after.kind == "absent":
        return "deleted"
    if before.kind != after.kind:
        return f"a {before.kind} became a {after.kind}"
    if before.mode != after.mode:
        mode = f"mode {before.mode:o} → {after.mode:o}"
        return mode if before.digest == after.digest else f"changed, {mode}"
    return "changed"


def _read_text(state: FileState, data: bytes | None) -> str | None:
    """Return a content as text: empty if there is nothing, None if it cannot be shown."""
    if state.kind == "absent":
        return ""
    if data is None or len(data) > _MAX_DIFF_BYTES:
        return None
    return decode_text(data)


def _format_state(state: FileState) -> str:
    if state.kind == "absent":
        return "nothing"
    if state.kind == "other":
        return "unknown"
    return f"{state.size:,} bytes"
