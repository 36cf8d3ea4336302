"""Content beside the skills that is approved in the same way: project instructions, commands, folders of eval cases."""

import os
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from skillshelf.errors import TrustError
from skillshelf.files import NotPlainFile, TreeEntry, mounts_below, open_below, system, walk
from skillshelf.skillmd import MAX_FILE, Unreadable, decode
from skillshelf.sources import SKILL_FILES, SKIPPED_FOLDERS
from skillshelf.trust._approvals import OwnRepository, Pending
from skillshelf.trust._limits import MAX_IMPORT
from skillshelf.trust._own import is_foreign
from skillshelf.trust._store import Trust
from skillshelf.trust._trees import Snapshot, TreeCopy, hash_file, read_verified, take_snapshot

INSTRUCTION_FILES = ("AGENTS.md", "CLAUDE.md")
"""The names of files with project instructions. If a folder has several, they apply in this order."""

COMMAND_FOLDERS = (".agents/commands", ".claude/commands")
"""Where a folder keeps its Markdown commands, in order of precedence."""
_COMMAND_FILE = re.compile(r"(?:.*/)?\.(?:agents|claude)/commands/(?P<below>.+\.md)", re.S)


def _any_file(path: str) -> bool:
    return True


def find_instruction_files(folder: str) -> list[str]:
    """Return the paths of a folder's instruction files, whether they exist or not, without one that repeats another.

    Many repositories have the same text under both names: as a link, as a copy, or as a file that imports the other.
    """
    agents, claude = (os.path.join(folder, name) for name in INSTRUCTION_FILES)
    if _leads_to(agents, claude):
        return [claude]
    if _leads_to(claude, agents) or _repeats(claude, agents):
        return [agents]
    return [agents, claude]


def find_command_files(folder: str) -> list[str]:
    """Return the paths of the Markdown commands in a folder's places for them."""
    return [f"{folder}/{place}/{path}" for place in COMMAND_FOLDERS for path in list_commands(folder, place)]


def list_commands(folder: str, place: str = "") -> list[str]:
    """Return the paths of the commands below a place in a folder. Links are not followed."""
    try:
        with open_below(folder, place.split("/") if place else []) as top:
            files = [entry for entry in walk(top) if entry.kind == "file"]
    except (OSError, NotPlainFile):
        return []
    return [file.path for file in files if file.name.endswith(".md") and file.name not in SKILL_FILES]


def is_command_file(path: str) -> bool:
    """Return True for a file that is a Markdown command by its path."""
    return _COMMAND_FILE.fullmatch(path) is not None and os.path.basename(path) not in SKILL_FILES


def name_command(path: str) -> str:
    """Return what a user types for the command in a file: `git:commit` for `.claude/commands/git/commit.md`."""
    match = _COMMAND_FILE.fullmatch(path)
    below = match["below"] if match else path
    return below.removesuffix(".md").replace("/", ":")


def _leads_to(link: str, file: str) -> bool:
    """Return True if a link leads to the other file of its folder. Nothing is read through it."""
    try:
        target = system.readlink(link)
    except OSError:  # it is not a link
        return False
    return os.path.normpath(os.path.join(os.path.dirname(link), target)) == file and os.path.isfile(file)


def _repeats(claude: str, agents: str) -> bool:
    if not os.path.lexists(claude) or not os.path.lexists(agents):
        return False
    folder = os.path.dirname(claude)
    first, second = (_read_file(folder, os.path.basename(path)) for path in (claude, agents))
    if first.fault or second.fault:
        return False
    is_import = len(first.text) < MAX_IMPORT and first.text.strip() in ("@AGENTS.md", "@./AGENTS.md")
    return is_import or first.text == second.text


class TrustedText(NamedTuple):
    """A file of project instructions, as far as the user approved it."""

    text: str | None
    """The version in use; None if there is none."""
    pending: Pending | None
    """The file on disk, if the user has not approved it as it is."""


def trusted_text(path: str | os.PathLike[str], trust: Trust, root: str | os.PathLike[str] | None = None) -> TrustedText:
    """Return the text of a file that may be used, and the file as pending if it differs from that text.

    `root` is the workspace, if the file is not directly in it.
    """
    trust.refresh()
    top, below = _split_file(path, root)
    if not os.path.lexists(f"{top}/{below}"):
        return TrustedText(None, None)

    file = _read_file(top, below)
    content = _describe_file(trust, top, below, file)
    if not content.blocked and trust.is_approved(content.tree):
        trust.note_places(top, {below: content.tree})
        return TrustedText(file.text, None)
    own = trust.find_own(top)
    if own and own.applies(content):
        with suppress(TrustError):  # the record cannot be written: it stays pending
            trust.use_own(top, content)
        own = trust.find_own(top)
    if own and content.tree and own.in_use.get(below) == content.tree:
        return TrustedText(file.text, None)
    return TrustedText(_copied_text(content.copy), replace(content, by_agent=_needs_review(own, content)))


def approve_file_write(path: str, sha256: str, trust: Trust, root: str) -> bool:
    """Approve an instruction file or a command that the agent wrote with the whole change in the user's sight.

    `sha256` is the hash of the content that the user saw. Return False if the file has another one by now, or cannot be
    approved. Raises TrustError if the record cannot be written.
    """
    pending = trusted_text(path, trust, root).pending
    if pending is None:
        return True
    if pending.blocked or [entry.sha256 for entry in pending.snapshot.entries] != [sha256]:
        return False
    trust.approve_write(pending)
    return True


def find_unapproved_file(path: str, trust: Trust, root: str) -> Pending | None:
    """Return a file that the user has not approved as it is, even if it is in use as the user's own; None otherwise."""
    top, below = _split_file(path, root)
    if not os.path.lexists(f"{top}/{below}"):
        return None
    content = _describe_file(trust, top, below, _read_file(top, below))
    if trust.is_approved(content.tree) and not content.blocked:
        return None
    return content


def find_file_trees(root: str) -> dict[str, str]:
    """Return the files of project instructions and commands, by path below the root, as the hash of their content.

    All folders count, except those of other repositories inside: an agent that works at the root could write
    instructions for one that starts deeper. For a folder that cannot be read whole there is an entry without a hash.
    """
    trees: dict[str, str] = {}

    def enter(folder: TreeEntry) -> bool:
        return folder.name not in SKIPPED_FOLDERS

    def report(folder: str, reason: str) -> None:
        trees.update(dict.fromkeys((os.path.normpath(f"{folder}/{name}") for name in INSTRUCTION_FILES), ""))

    with suppress(FileNotFoundError, NotADirectoryError, NotPlainFile), open_below(root, []) as top:
        for entry in walk(top, enter, report):
            is_content = entry.name in INSTRUCTION_FILES or is_command_file(entry.path)
            if is_content and not is_foreign(root, os.path.dirname(entry.path), [entry.name]):
                trees[entry.path] = _read_file(root, entry.path).snapshot.tree
    return trees


def _describe_file(trust: Trust, top: str, below: str, file: "_InstructionFile") -> Pending:
    return Pending(
        root=top,
        key=below,
        name=below,
        snapshot=file.snapshot,
        location=f"{top}/{below}",
        kind="command" if is_command_file(below) else "file",
        copy=_last_in_use(trust, top, below),
        blocked=trust.refusal(top) or file.fault,
    )


def _describe_folder(folder: str, workspace: str, trust: Trust, has_file: Callable[[str], bool] = _any_file) -> Pending:
    root, key = _split_folder(os.path.realpath(folder), os.path.realpath(workspace))
    snapshot = take_snapshot(root, key, mounts_below(root), has_file).snapshot
    is_skill = any(snapshot.entry(name) for name in SKILL_FILES)
    return Pending(
        root=root,
        key=key,
        name=key or os.path.basename(root),
        snapshot=snapshot,
        location=_first_file(f"{root}/{key}".rstrip("/"), snapshot),
        kind="skill" if is_skill else "folder",
        copy=_last_in_use(trust, root, key),
        blocked=trust.refusal(root) or snapshot.fault,
    )


def _needs_review(own: OwnRepository | None, content: Pending) -> bool:
    return own is not None and content.key in own.to_review


def find_pending_folder(
    folder: str, workspace: str, trust: Trust, has_file: Callable[[str], bool] = _any_file
) -> Pending | None:
    """Return a folder as pending, or None if the user approved it as it is now.

    A folder outside the workspace counts as a place in the folder above it. `has_file` is False for files that do not
    count.
    """
    trust.refresh()
    content = _describe_folder(folder, workspace, trust, has_file)
    if not content.blocked and trust.is_approved(content.tree):
        trust.note_places(content.root, {content.key: content.tree})
        return None
    own = trust.find_own(content.root)
    if own and own.applies(content):
        # A skill may just have been changed by an agent. Cases beside the skills are like any other code of the user.
        is_in_use = own.in_use.get(content.key) == content.tree
        if content.kind == "folder" or is_in_use or not trust.is_agent_at_work(content.root):
            return None
    return replace(content, by_agent=_needs_review(own, content))


def find_unapproved_folder(folder: str, workspace: str, trust: Trust) -> Pending | None:
    """Return a folder that the user has not approved as it is, even if it is the user's own; None otherwise."""
    trust.refresh()
    content = _describe_folder(folder, workspace, trust)
    if trust.is_approved(content.tree) and not content.blocked:
        return None
    return content


def _last_in_use(trust: Trust, root: str, key: str) -> TreeCopy | None:
    """Return the copy of the version that a place had last, if the workspace can be trusted at all."""
    tree = trust.approvals.last_in_use(root, key, trust.find_own(root))
    if not tree or trust.refusal(root):
        return None
    return trust.copy(tree)


class _InstructionFile(NamedTuple):
    snapshot: Snapshot
    text: str = ""
    fault: str = ""
    """Why it cannot be used; empty if it can."""


def _read_file(top: str, below: str) -> _InstructionFile:
    folder, name = os.path.split(below)
    try:
        entry = hash_file(top, below)
    except TrustError as error:
        return _InstructionFile(Snapshot(name, fault=str(error)), fault=str(error))

    snapshot = Snapshot(name, (entry,))
    if entry.size > MAX_FILE:
        return _InstructionFile(snapshot, fault=f"it is larger than {MAX_FILE >> 10} KiB")
    try:
        # These are the very bytes that were hashed, so they can be served from memory if they are approved.
        return _InstructionFile(snapshot, decode(read_verified(top, folder, entry)))
    except TrustError as error:
        return _InstructionFile(Snapshot(name, fault=str(error)), fault=str(error))
    except Unreadable as error:
        return _InstructionFile(snapshot, fault=error.diagnostic.message)


def _copied_text(copy: TreeCopy | None) -> str | None:
    if copy is None:
        return None
    try:
        return decode(copy.read(copy.snapshot.name, 0, MAX_FILE).data)
    except (OSError, NotPlainFile, Unreadable):
        return None


def _split_file(path: str | os.PathLike[str], root: str | os.PathLike[str] | None) -> tuple[str, str]:
    """Return the workspace and the file's path below it. Raises TrustError if the file is elsewhere."""
    folder, name = os.path.split(os.path.abspath(path))
    folder = os.path.realpath(folder)
    top = folder if root is None else os.path.realpath(root)
    prefix = top.rstrip("/") + "/"
    if not f"{folder}/".startswith(prefix):
        raise TrustError(f"{os.fspath(path)!r} is not in the workspace {os.fspath(root or '.')!r}.")
    return top, os.path.join(folder, name).removeprefix(prefix)


def _split_folder(folder: str, workspace: str) -> tuple[str, str]:
    """Return the workspace, or the folder above, and the folder's path below it."""
    if folder == workspace:
        return workspace, ""
    prefix = workspace.rstrip("/") + "/"
    if folder.startswith(prefix):
        return workspace, folder.removeprefix(prefix)
    return os.path.split(folder)


def _first_file(path: str, snapshot: Snapshot) -> str:
    """Return the path of the SKILL.md if the folder is a skill after all, otherwise the folder's."""
    for name in SKILL_FILES:
        if snapshot.entry(name):
            return f"{path}/{name}"
    return path
