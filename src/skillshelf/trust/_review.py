"""The page that the user reads before approving. Every line is cleaned for a terminal when it is added."""

import difflib
from collections import Counter
from collections.abc import Iterator

from skillshelf.errors import TrustError
from skillshelf.text import clean, decode_text, show_hidden
from skillshelf.trust._findings import MOST_INSTANCES, findings, is_script
from skillshelf.trust._pending import Pending
from skillshelf.trust._snapshot import Entry

_SHOWN = 100
# Steps of a comparison, of which a second has forty million; past this the new text is shown whole.
_MOST_STEPS = 40_000_000
# Bytes: as long as a SKILL.md may be.
_MOST_SHOWN = 1024 * 1024


def summary(pending: Pending) -> str:
    """Return a line about a pending skill, file or folder."""
    files = [one for one in pending.snapshot.entries if one.target is None]
    scripts = sum(is_script(one, None) for one in files)
    facts = [_count(len(files), "file"), f"{sum(one.size for one in files):,} bytes"]
    facts += [_count(scripts, "script")] if scripts else []
    facts += ["written by the agent in this session"] if pending.granted else []
    facts += [f"cannot be approved: {pending.blocked}"] if pending.blocked else []
    return _line(f"{pending.name} ({pending.status}): {', '.join(facts)}")


def review_text(pending: Pending) -> str:
    """Return the whole page: the raw text, every file, the findings, and the changes since the approved version."""
    return "\n".join(_page(pending)) + "\n"


def _page(pending: Pending) -> Iterator[str]:
    yield _line(f"{pending.name} ({pending.status})")
    yield _line(f"  where: {pending.location.removeprefix(pending.root).lstrip('/')}")
    yield _line(f"  hash:  {pending.tree or 'none'}")
    if pending.blocked:
        yield _line(f"  It cannot be approved: {pending.blocked}")
    if pending.granted:
        yield "  The agent wrote this in this session; until you approve it, it lasts no longer than that."
    try:
        contents = {one.path: pending.read(one) for one in pending.snapshot.entries if one.target is None}
    except TrustError as error:
        yield _line(str(error))
        return
    yield from _texts(pending, contents)
    if pending.snapshot.entries:
        yield from ("", "Files:")
    for entry in pending.snapshot.entries:
        yield _line(f"  {_facts(entry, contents.get(entry.path))}")
    for kind, found in findings(pending.snapshot, pending.file, contents):
        if found:
            yield from ("", f"{kind[0].upper()}{kind[1:]}:")
            yield from (_line(f"  {one}") for one in found[:_SHOWN])
            if len(found) > _SHOWN:
                least = "at least " if len(found) >= MOST_INSTANCES else ""
                yield f"  … and {least}{len(found) - _SHOWN:,} more"
    if pending.approved:
        yield from _changes(pending, contents)


def _texts(pending: Pending, contents: dict[str, bytes]) -> Iterator[str]:
    """Yield the first file whole; of a new skill the other texts too, since all of them are approved with it."""
    others = [] if pending.approved else [path for path in contents if path != pending.file]
    for path in [pending.file, *others]:
        text = decode_text(contents.get(path, b"\0"))
        if text is not None:
            yield from ("", _line(f"{path}:"))
            yield from _quote(text)


def _changes(pending: Pending, contents: dict[str, bytes]) -> Iterator[str]:
    approved = pending.approved
    before = {one.path: one for one in approved.entries} if approved else {}
    now = {one.path: one for one in pending.snapshot.entries}
    yield from ("", "Changes since the approved version:")
    for path in sorted(before.keys() | now.keys()):
        old, new = before.get(path), now.get(path)
        if old != new:
            yield from _change(pending, path, old, new, contents)
    if approved and approved.name != pending.snapshot.name:
        yield _line(f"  the folder was called {approved.name}")


def _change(
    pending: Pending, path: str, old: Entry | None, new: Entry | None, contents: dict[str, bytes]
) -> Iterator[str]:
    if old and new and old.executable != new.executable:
        yield _line(f"  {path}: {'now' if new.executable else 'no longer'} executable")
    try:
        old_data = pending.read_approved(old) if old and old.target is None else b""
    except TrustError as error:
        yield _line(f"  {path}: {error}")
        return
    old_text = decode_text(old_data)
    new_text = decode_text(contents.get(path, b""))
    is_text = old_text is not None and new_text is not None and not any(one and one.target for one in (old, new))
    if old and new and old.sha256 == new.sha256 and old.target == new.target:
        return
    if not is_text:
        yield _line(f"  {path}: {_version(old)} -> {_version(new)}")
        return
    before, after = _lines(old_text or "", keep=True), _lines(new_text or "", keep=True)
    if not _is_quick_to_compare(before, after):
        yield _line(f"  {path}: too long to compare; {_version(old)} -> {_version(new)}; the new text:")
        yield from _quote(new_text or "")
        return
    names = (path if old else "/dev/null", path if new else "/dev/null")
    yield from (f"  │ {_line(one)}" for one in difflib.unified_diff(before, after, *names, lineterm=""))


def _quote(text: str) -> Iterator[str]:
    """Yield the lines of a text, each with a bar, which keeps it from passing for a line of this page."""
    data = text.encode()
    beginning = data[:_MOST_SHOWN].decode(errors="ignore")
    yield from (f"  │ {_line(one)}" for one in _lines(beginning))
    if len(data) > _MOST_SHOWN:
        left = len(data) - _MOST_SHOWN
        yield f"  … {left:,} more bytes are not shown here: read the file itself before you approve it"


def _is_quick_to_compare(before: list[str], after: list[str]) -> bool:
    """Return True if difflib finds the changes soon, however the lines were chosen.

    It looks at each pair of equal lines once for every block that it finds. Lines that make up more than a hundredth
    of the text are left out of its search, and what both texts begin and end with costs nothing to speak of.
    """
    same = 0
    for old, new in zip(before, after, strict=False):
        if old != new:
            break
        same += 1
    before, after = before[same:], after[same:]
    popular = len(after) // 100 + 1 if len(after) >= 200 else len(after)
    old_counts = Counter(before)
    pairs = sum(old_counts[line] * count for line, count in Counter(after).items() if count <= popular)
    return (pairs + len(before) + len(after)) * min(len(before), len(after)) <= _MOST_STEPS


def _lines(text: str, keep: bool = False) -> list[str]:
    """`keep`: with the CR at their ends, which in a comparison can be all that changed."""
    lines = (text if keep else text.replace("\r\n", "\n")).split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _facts(entry: Entry, data: bytes | None) -> str:
    if entry.target is not None:
        return f"{entry.path} -> {entry.target} (a link, not followed)"
    marks = ["executable"] if entry.executable else []
    marks += ["script"] if is_script(entry, data) else []
    marks += ["binary"] if data is not None and decode_text(data) is None else []
    return f"{entry.path}  {entry.size:,} bytes" + (f"  [{', '.join(marks)}]" if marks else "")


def _version(entry: Entry | None) -> str:
    if entry is None:
        return "nothing"
    return f"a link to {entry.target}" if entry.target is not None else f"{entry.size:,} bytes, {entry.sha256[:16]}…"


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}" + "s" * (number != 1)


def _line(text: str) -> str:
    """Return text on one line, with nothing in it that hides or steers the terminal."""
    return clean(show_hidden(text)).replace("\n", "<U+000A>")
