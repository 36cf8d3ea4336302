"""A shelf on a workspace whose project skills need the user's approval."""

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from fnmatch import fnmatchcase
from typing import NamedTuple

from skillshelf.errors import SourceError, TrustError
from skillshelf.files import NotPlainFile, count_shared_names, read_file
from skillshelf.shelf._shelf import Shelf, environment_source, project_sources, workspace_sources
from skillshelf.shelf._turn import Turn
from skillshelf.shelf.watch import Watch
from skillshelf.shelf.workspace_skills._project_files import MarkdownCommand, ProjectFiles
from skillshelf.skillmd import MAX_FILE, Unreadable, decode
from skillshelf.skills import BaseSkill, Choice, Delta, Diagnostic
from skillshelf.sources import SKILL_FILES, Source
from skillshelf.sources.workspace import Workspace, choose_workspace
from skillshelf.text import clean_line
from skillshelf.trust import Pending, Trust, TrustedSource, UnreviewedFile

_MAX_FAULTS = 10
_QUOTING = re.compile(r"[\"'\\]")
_IMPORTING = re.compile(r"-m\b|\bimport\b")
_WORD = re.compile(r"[^\s;&|<>()`$={},:]+")
_WILDCARD = re.compile(r"[*?\[]")


class RecordedWrite(NamedTuple):
    """The effects of a file that the agent wrote."""

    delta: Delta
    """The changes of the shelf."""
    note: str
    """What the model should know; empty if nothing."""


class WorkspaceSkills:
    """A shelf on a workspace. With a trust store, project skills are served only as the user approved them.

    Skills, AGENTS.md and CLAUDE.md files come from the whole repository; the agent works in one folder of it.
    """

    def __init__(
        self,
        root: str | os.PathLike[str] | Workspace | None = None,
        skills: Sequence[BaseSkill] | Shelf = (),
        trust: Trust | None = None,
        frozen: bool = False,
        *,
        packages: Sequence[str] = (),
        entry_points: bool = False,
        environment: bool | str | os.PathLike[str] = False,
        choices: Mapping[str, Choice] | None = None,
    ) -> None:
        """Open the skills of a workspace.

        `root` is taken as it is; without it, the workspace is found around the current folder. `skills` are code skills
        beside the workspace's, or a shelf to use instead of one with all these sources. `environment`: see
        `Shelf.open`.
        """
        workspace = choose_workspace(root)
        if not os.path.isdir(workspace.folder):
            raise SourceError(f"There is no folder {workspace.folder!r} to take as the workspace.")

        self.workspace = workspace
        self.root = workspace.root
        """The root of the repository, whose skills are in use; outside a repository, the folder itself."""
        self.folder = workspace.folder
        """The folder that the agent works in. File tools and commands cannot write outside it."""
        self.frozen = frozen
        project = project_sources(workspace, frozen=frozen)
        installed = None
        if environment:
            installed = environment_source(workspace, None if environment is True else environment)
        self.trusted: tuple[TrustedSource, ...] = ()
        """The sources whose skills need the user's approval: the root's, those of parents, installed packages."""
        of_project: Sequence[Source] = project
        of_packages: Source | None = installed
        if trust:
            of_project = self.trusted = tuple(
                TrustedSource(source, trust, frozen_tree=source.frozen_tree) for source in project
            )
            if installed:
                of_packages = TrustedSource(installed, trust)
                self.trusted += (of_packages,)
        self._trust = trust
        if isinstance(skills, Shelf):
            self.shelf = skills
        else:
            sources = workspace_sources(
                workspace,
                of_project,
                skills,
                packages=packages,
                entry_points=entry_points,
                environment=of_packages,
                authoring=True,
                frozen=frozen,
            )
            self.shelf = Shelf(sources, choices=choices, here=self.folder)

        self._files = ProjectFiles(workspace, trust)
        self._watched = Delta()
        """The changes that the watch reloaded and nobody has taken."""
        self._reported_faults: set[str] = set()

    @property
    def guidance(self) -> str:
        """The texts of the project's AGENTS.md and CLAUDE.md files, as far as the user approved them."""
        return self._files.guidance

    @property
    def commands(self) -> tuple[MarkdownCommand, ...]:
        """The Markdown commands of the project, as far as the user approved them, and the user's own."""
        return self._files.commands

    @property
    def pending(self) -> tuple[Pending, ...]:
        """The project's skills, instruction files and commands that the user has not approved as they are now."""
        skills = [pending for source in self.trusted for pending in source.pending]
        return (*skills, *self._files.pending)

    def find_pending_skills(self) -> tuple[Pending, ...]:
        """Return the pending skills, with the approvals that another process has written meanwhile."""
        return tuple(pending for source in self.trusted for pending in source.find_pending())

    def unreviewed_files(self, command: str) -> tuple[UnreviewedFile, ...]:
        """Return the skills' files that a command mentions and that the user has not approved as they are now."""
        files = [file for source in self.trusted for file in source.unreviewed_files()]
        here = os.path.relpath(self.folder, self.root)
        return _find_mentioned(command, files, here)

    @property
    def drift(self) -> tuple[str, ...]:
        """The names of skills that are not exactly as they were approved here: new, changed or gone."""
        names = [pending.name for source in self.trusted for pending in source.unapproved]
        names += [pending.name for pending in self._files.find_unapproved()]
        names += [name for source in self.trusted for name in source.gone]
        return tuple(names)

    def approve(self, pending: Sequence[Pending]) -> None:
        """Approve these exactly as they were shown. Raises TrustError."""
        if self._trust:
            self._trust.approve(*pending)

    # -- a repository of the user's own -------------------------------------------------------------------------------

    @property
    def is_own(self) -> bool:
        """True if the user declared this repository their own."""
        return bool(self.trusted) and self.trusted[0].own is not None

    @property
    def can_declare_own(self) -> bool:
        """True if the user may declare this repository their own and has not done so."""
        return self._trust is not None and self._trust.can_declare_own(self.root)

    def declare_own(self) -> None:
        """Declare this repository the user's own, and bring its skills into use as they are. Raises TrustError."""
        if self._trust is None:
            raise TrustError("All skills here are in use as they are: this session trusts the workspace.")
        self._trust.declare_own(self.root)
        self.reload()
        self._trust.take_own_changes(self.root)  # the user knows what is here now

    def disown(self) -> bool:
        """Review this repository like any other again. Return False if it was not the user's own."""
        if self._trust is None or not self._trust.disown(self.root):
            return False
        self.reload()
        return True

    # -- what the user should know ------------------------------------------------------------------------------------

    @property
    def unusable(self) -> tuple[Diagnostic, ...]:
        """The errors that keep a SKILL.md from being used, or from working as its author meant. Not for the model."""
        errors = [note for note in self.shelf.catalog.diagnostics if note.severity == "error"]
        for source in self.trusted:
            errors += source.unusable
        return tuple(dict.fromkeys(errors))

    def take_notices(self) -> list[str]:
        """Return what the user should know about the skills, each notice once.

        That is: skills that cannot be used, and in a repository of the user's own what changed since the last session.
        """
        notices = [*self._describe_own_changes(), *self.take_faults()]
        return [clean_line(notice) for notice in notices]  # names of folders must not add lines of their own

    def take_faults(self) -> list[str]:
        """Return why skills cannot be used, each once."""
        faults = map(self._describe_fault, self.unusable)
        fresh = [fault for fault in faults if fault not in self._reported_faults]
        self._reported_faults.update(fresh)
        if len(fresh) > _MAX_FAULTS:
            left = len(fresh) - _MAX_FAULTS
            fresh[_MAX_FAULTS:] = [f"… and {left:,} more problems in skills: `skillshelf check` lists them."]
        return fresh

    def _describe_own_changes(self) -> list[str]:
        if self._trust is None:
            return []
        lost = self._trust.explain_lost_own(self.root)
        if lost:
            is_known = lost in self._reported_faults
            self._reported_faults.add(lost)
            return [] if is_known else [lost]
        changes = self._trust.take_own_changes(self.root)
        kinds = (("changed", changes.changed), ("new", changes.added), ("removed", changes.removed))
        named = [f"{kind} {', '.join(paths)}" for kind, paths in kinds if paths]
        if not named:
            return []
        return [f"In use without a review, in your own repository: {'; '.join(named)}."]

    def _describe_fault(self, fault: Diagnostic) -> str:
        from skillshelf.explain import describe_broken

        fix = f" Fix: {fault.fix}." if fault.fix else ""
        return f"{describe_broken(fault.path.removeprefix(f'{self.root}/'), fault)}.{fix}"

    def describe_reload(self, delta: Delta) -> str:
        """Say in a line or two what a reload changed, and what still waits for the user."""
        if not self.pending:
            return describe_delta(delta)
        from skillshelf.explain import describe_pending

        changes = describe_delta(delta) if delta else "Skills reloaded."
        return " ".join([changes, *describe_pending(self.pending), "/skills trust shows everything and asks."])

    def watch(self, on_change: Callable[[], None]) -> Watch:
        """Reload automatically, and call `on_change` in a thread if a skill changed or begins to wait for review.

        `take_watched`, or the next turn, reports the changes. Raises MissingExtraError.
        """
        known = self._list_pending_versions()

        def reload(paths: list[str] | None) -> Delta:
            nonlocal known
            delta = self.shelf.reload(paths)
            if paths is None or any(self._files.includes(path) for path in paths):
                self._files.read()
            self._watched = _combine(self._watched, delta)
            before = known
            known = self._list_pending_versions()
            if delta or known != before:
                on_change()
            return delta

        return Watch(self.shelf, reload=reload)

    def _list_pending_versions(self) -> set[tuple[str, str]]:
        return {(pending.location, pending.tree) for pending in self.pending}

    def take_watched(self) -> Delta:
        """Return what the watch has reloaded since the last call or turn."""
        watched = self._watched
        self._watched = Delta()
        return watched

    def reload_for_turn(self) -> Delta:
        """Bring the shelf up to date. Return everything that changed since the last turn or `take_watched`."""
        return _combine(self.take_watched(), self.reload())

    def reload(self) -> Delta:
        """Bring the shelf up to date with the disk, unless the skills are frozen."""
        if self.frozen:
            return Delta()
        self._files.read()
        return self.shelf.reload()

    # -- what the agent writes ----------------------------------------------------------------------------------------

    def agent_at_work(self) -> AbstractContextManager[None]:
        """Let the agent change files in a `with` block. In a repository of the user's own, they review the changes.

        Raises TrustError, before the block, if that cannot be recorded.
        """
        return self.trusted[0].agent_at_work() if self.trusted else nullcontext()

    def is_reviewed(self, path: str) -> bool:
        """Return True if the user approved the file as it is now, or if it does not exist or need approval."""
        if self._files.includes(path):
            return self._files.is_reviewed(path)
        return all(source.is_reviewed(path) for source in self.trusted)

    def record_write(self, turn: Turn, path: str, text: str, is_seen: bool) -> RecordedWrite:
        """Update the shelf after the agent wrote this text to a file in its folder, given by its real path.

        `is_seen`: the user allowed this very write with the whole change in sight, and knew the file before. Content
        that the user has seen in full is approved.
        """
        is_skill_file = os.path.basename(path) in SKILL_FILES
        is_project_file = self._files.includes(path)
        if not is_skill_file and not is_project_file and not self._is_in_skill(path):
            return RecordedWrite(Delta(), "")
        if self.frozen:
            return RecordedWrite(Delta(), "The skills of this session are frozen: this change is not used.")

        problem = self._approve_write(path, text) if is_seen else ""
        if is_project_file:
            self._files.read()
            if self._files.is_pending(path) and not problem:
                problem = _say_waiting("The file")
            return RecordedWrite(Delta(), problem)
        delta = turn.wrote(path)

        notes: list[str] = []
        if delta or is_skill_file:
            notes.append(describe_delta(delta))
        for diagnostic in delta.diagnostics:
            fix = f" Fix: {diagnostic.fix}." if diagnostic.fix else ""
            notes.append(f"{diagnostic.code}: {diagnostic.message}.{fix}")
        if self._awaits_review(path):
            notes.append(_say_waiting("The skill as it is now"))
        if problem:
            notes.append(problem)
        return RecordedWrite(delta, "\n".join(notes))

    def _approve_write(self, path: str, text: str) -> str:
        """Approve what the user saw, unless another program has changed it since. Return the problem, if any."""
        if self._trust is None:
            return ""
        data = _read_bytes(self.folder, os.path.relpath(path, self.folder))
        if _decode(data) != text:
            return "The file is not as the user saw it: another program changed it."
        sha256 = hashlib.sha256(data).hexdigest()
        try:
            if self._files.includes(path):
                self._files.approve_write(path, sha256)
            else:
                for source in self.trusted:
                    source.approve_writes({path: sha256})
        except TrustError as error:
            return str(error)
        return ""

    def _is_in_skill(self, path: str) -> bool:
        folder = os.path.dirname(path)
        while folder.startswith(self.root) and folder != self.root:
            if any(os.path.lexists(os.path.join(folder, name)) for name in SKILL_FILES):
                return True
            folder = os.path.dirname(folder)
        return False

    def _awaits_review(self, path: str) -> bool:
        folder = os.path.join(os.path.dirname(path), "")
        return any(folder.startswith(os.path.join(pending.root, pending.key, "")) for pending in self.pending)


def _say_waiting(what: str) -> str:
    """Tell the model that what it wrote is not in use yet."""
    from skillshelf.explain import describe_waiting

    return describe_waiting(what, 1, whose="the user's") + ": /skills trust."


def describe_delta(delta: Delta) -> str:
    """Say in a line what a reload changed."""
    kinds = (("added", delta.added), ("changed", delta.changed), ("removed", delta.removed))
    changes = [f"{kind} {', '.join(names)}" for kind, names in kinds if names]
    return f"Skills reloaded: {'; '.join(changes) or 'nothing changed'}."


def _read_bytes(root: str, path: str) -> bytes:
    try:
        return read_file(root, path.split("/"), 0, MAX_FILE).data
    except (OSError, NotPlainFile):
        return b""


def _decode(data: bytes) -> str:
    try:
        return decode(data)
    except Unreadable:
        return ""


def _combine(first: Delta, second: Delta) -> Delta:
    """Return two changes, one after the other, as one."""
    gone = set(second.removed)
    added = set(first.added) | set(second.added)
    changed = set(first.changed) | set(second.changed)
    removed = (set(first.removed) - set(second.added)) | (gone - set(first.added))
    return Delta(
        tuple(sorted(added - gone)),
        tuple(sorted(changed - added - gone)),
        tuple(sorted(removed)),
        first.diagnostics + second.diagnostics,
    )


def _find_mentioned(command: str, files: Iterable[UnreviewedFile], here: str = "") -> tuple[UnreviewedFile, ...]:
    """Return the files that a command mentions: by name or pattern, as a Python module, or by their skill's folder.

    `here` is the folder that the command runs in, below the root: a command leaves out what both paths share.

    A shell can spell a name in many ways, so this finds plain mentions and helps the user to decide. It is not a
    boundary. A mention too many costs a line in a question, and a missed one may cost more: in doubt, a file counts as
    mentioned.
    """
    words = {*_WORD.findall(command), *_WORD.findall(_QUOTING.sub("", command))}
    names = {word.rstrip("/").rpartition("/")[2] for word in words}
    patterns = [name for name in names if _WILDCARD.search(name)]
    modules: set[str] = set()
    if _IMPORTING.search(command):
        modules = {word.rpartition(".")[2] for word in words}

    def is_mentioned(file: UnreviewedFile) -> bool:
        folder, _, name = file.path.rpartition("/")
        skill_folder = _leave_out_shared(file.folder, here)
        if name in names or (skill_folder and skill_folder in command):
            return True
        if name.endswith(".py") and name.removesuffix(".py") in modules:
            return True
        if folder and folder.rpartition("/")[2] in names:  # the folder it is in: `make -C scripts`
            return True
        return any(fnmatchcase(name, pattern) for pattern in patterns)

    return tuple(file for file in files if is_mentioned(file))


def _leave_out_shared(folder: str, here: str) -> str:
    """Return a folder without the leading names that it shares with `here`; the whole folder if nothing is left."""
    names = folder.split("/")[count_shared_names(folder, here) :]
    return "/".join(names) or folder
