"""Everything in a workspace that the agent uses only with the user's approval, for `skillshelf trust`."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from skillshelf.cli._output import shown_path
from skillshelf.errors import SkillNotFoundError, TrustError
from skillshelf.files import is_at_or_inside
from skillshelf.sources import ENVIRONMENT
from skillshelf.sources.entry_points import load_extension
from skillshelf.sources.workspace import Workspace

if TYPE_CHECKING:
    from skillshelf.sources import FolderSource
    from skillshelf.trust import OwnRepository, Pending, Trust, TrustedSource


class TrustItem(NamedTuple):
    """A skill, a file of instructions, a command or a folder of eval cases, and the user's decision on it."""

    source: "TrustedSource"
    key: str
    name: str
    location: str
    tree: str
    """The hash of the version in use; empty if there is none."""
    pending: "Pending | None"
    unapproved: "Pending | None" = None
    """What is in use because the repository is the user's own, and was never approved."""

    @property
    def status(self) -> str:
        if self.pending:
            return self.pending.status
        return "own" if self.unapproved else "approved"

    @property
    def approved_tree(self) -> str:
        return "" if self.unapproved else self.tree

    def as_json(self) -> dict[str, Any]:
        tree = self.tree
        if self.pending:
            tree = self.pending.tree
        facts: dict[str, Any] = {
            "name": self.name,
            "status": self.status,
            "path": self.location,
            "tree": tree,
            "approved": self.approved_tree or None,
        }
        if self.pending and self.pending.blocked:
            facts["blocked"] = self.pending.blocked
        return facts


class _TrustedFolder:
    """One of the folders with the project's skills, as the agent would see it."""

    def __init__(self, source: "FolderSource", trust: "Trust", files: Sequence[str] = ()) -> None:
        from skillshelf.trust import TrustedSource

        self.trust = trust
        self.source = TrustedSource(source, trust)
        self.root = self.source.root
        self._files = files

    def find_all(self) -> list[TrustItem]:
        """Return everything here that needs approval, and everything that was approved here and is gone now."""
        self.source.refresh()
        items: dict[str, TrustItem] = {}
        unapproved = {content.key: content for content in self.source.unapproved}
        for key, skill in self.source.served.items():
            location = f"{self.root}/{key}"
            items[key] = TrustItem(self.source, key, skill.name, location, skill.tree, None, unapproved.get(key))
        for item in self._find_own_files():
            items[item.key] = item
        for pending in (*self.source.pending, *self._find_pending_files()):
            location = f"{self.root}/{pending.key}"
            items[pending.key] = TrustItem(
                self.source, pending.key, pending.name, location, _approved_tree(pending), pending
            )
        for item in self._find_eval_folders():
            items.setdefault(item.key, item)
        if not self.source.refusal:
            for item in self._find_approved_before():
                items.setdefault(item.key, item)
        return list(items.values())

    def _find_pending_files(self) -> "list[Pending]":
        from skillshelf.trust import trusted_text

        files = []
        for path in self._files:
            pending = trusted_text(path, self.trust, self.root).pending
            if pending:
                files.append(pending)
        return files

    def _find_own_files(self) -> list[TrustItem]:
        from skillshelf.trust import find_unapproved_file

        items = []
        for path in self._files:
            content = find_unapproved_file(path, self.trust, self.root)
            if content and self.source.own:
                items.append(
                    TrustItem(self.source, content.key, content.name, content.location, content.tree, None, content)
                )
        return items

    def _find_eval_folders(self) -> list[TrustItem]:
        """Return the folders of eval cases. Those inside skills are approved with their skill."""
        find_folders = load_extension("skillshelf.evals", "find_folders")
        if find_folders is None or self.source.name == ENVIRONMENT:
            return []  # no case can run, so there is nothing to approve
        return [self.describe_folder(folder) for folder in find_folders(self.root) if self.contains(folder)]

    def _find_approved_before(self) -> list[TrustItem]:
        approvals = self.trust.approvals
        items = []
        for key in approvals.places.get(self.root, {}):
            tree = approvals.last(self.root, key)
            if tree in approvals.trees:
                location = f"{self.root}/{key}"
                items.append(TrustItem(self.source, key, approvals.trees[tree].name, location, tree, None))
        return items

    def describe_folder(self, folder: str) -> TrustItem:
        """Return a folder that need not be a skill, such as one with eval cases, with the user's decision on it."""
        from skillshelf.trust import find_pending_folder, find_unapproved_folder

        key = ""
        if folder != self.root:
            key = os.path.relpath(folder, self.root)
        pending = find_pending_folder(folder, self.root, self.trust)
        if pending:
            return TrustItem(self.source, key, pending.name, pending.location, _approved_tree(pending), pending)
        name = key or os.path.basename(self.root)
        unapproved = find_unapproved_folder(folder, self.root, self.trust)
        tree = self.trust.approvals.last(self.root, key)
        return TrustItem(self.source, key, name, folder, tree, None, unapproved)

    def contains(self, folder: str) -> bool:
        return is_at_or_inside(folder, self.root)


class TrustedWorkspace:
    """Everything in a workspace that the agent uses only with the user's approval."""

    def __init__(self, workspace: Workspace, python: str | None = None) -> None:
        from skillshelf.shelf import environment_source, project_sources
        from skillshelf.trust import Trust, find_command_files, find_instruction_files

        self.trust = Trust.open()
        levels = workspace.levels()
        files = [file for folder in levels for file in (*find_instruction_files(folder), *find_command_files(folder))]
        project, *outer = project_sources(workspace)
        self._folders = [_TrustedFolder(project, self.trust, files)]
        self._folders += [_TrustedFolder(source, self.trust) for source in outer]
        installed = environment_source(workspace, python)
        if installed:
            self._folders.append(_TrustedFolder(installed, self.trust))
        self.root = workspace.root

    @property
    def own(self) -> "OwnRepository | None":
        """The record of the repository if the user declared it their own."""
        return self.trust.find_own(self.root)

    @property
    def problems(self) -> list[str]:
        """What the user should know about the record: it cannot be used, or the repository was replaced."""
        problems = [*self.trust.problems, self.trust.explain_lost_own(self.root)]
        return [problem for problem in problems if problem]

    def find_all(self) -> list[TrustItem]:
        """Return everything here that needs approval, and everything that was approved here and is gone now."""
        items = [item for folder in self._folders for item in folder.find_all()]
        return sorted(items, key=lambda item: (item.name, item.location))

    def find_pending(self) -> "list[Pending]":
        return [item.pending for item in self.find_all() if item.pending]

    def find_approved(self) -> list[TrustItem]:
        return [item for item in self.find_all() if item.tree]

    def find(self, name: str) -> TrustItem:
        """Return the item with this path or name. Raises TrustError if several have the name."""
        items = self.find_all()
        path = name.rstrip("/")
        matches = [item for item in items if path in (item.key, item.location, shown_path(item.location))]
        if not matches:
            matches = [item for item in items if item.name == name]
        if len(matches) > 1:
            places = ", ".join(shown_path(item.location) for item in matches)
            raise TrustError(f"Several skills are named {name!r}. Give the path of the one you mean: {places}.")
        if matches:
            return matches[0]

        path = os.path.realpath(name)
        for folder in self._folders:
            if os.path.isdir(path) and folder.contains(path):
                return folder.describe_folder(path)  # any other folder, such as recordings of evals
        closest = [item.name for item in items if name in item.name][:3]
        hint = "" if closest else "`skillshelf trust --list` names everything that needs approval."
        raise SkillNotFoundError(name, closest, hint=hint)


def _approved_tree(pending: "Pending") -> str:
    """Return the hash of the version that the user approved before, or an empty string."""
    if pending.copy is None:
        return ""
    return pending.copy.tree
