"""How far this machine can confine a command, and the acts that stay possible for a confined one."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections import deque
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from skillshelf.agent.launcher import landlock_version, launch_command, open_plan
from skillshelf.files import system
from skillshelf.sources import SKIPPED_FOLDERS

Level = Literal["mounted", "supervised", "landlock", "none"]

_LEVELS: tuple[Level, ...] = ("mounted", "supervised", "landlock")
_PROBE_SECONDS = 60.0
_MAX_SEARCHED_FOLDERS = 5_000
"""How many folders are searched for Git directories before each command. That many take about 0.1 s."""
_NAMES_IN_GIT_DIRECTORY = {"HEAD", "objects", "refs"}
"""Git takes a folder with these for a repository, whatever its name is."""
_GIT_DATA_FOLDERS = frozenset({"objects", "refs", "logs", "hooks"})
"""Folders of a Git directory in which there is no other one."""

# The approval question and docs/concepts/safety.md take their words from here.
_WRITES = "writing, creating, renaming or deleting files outside the folder and a temporary one"
_METADATA = "changing the mode, owner, times or attributes of files outside"
_SOCKETS = "connecting to Unix sockets outside (Docker, an SSH agent, tmux, a session bus)"
_MEMORY = "reading or changing the memory of your other processes"
_SIGNALS = "sending signals to your other processes"
_GIT = "changing the hooks and configuration of Git repositories in the folder"

_READING = "reading every file you can read"
_NETWORK = "the network, including services on this machine"
_LATER = "files in the folder that run later, such as a Makefile, an editor's tasks or a new Git repository"
_PRIORITY = "the priority of your other processes"
_LIMITS = "the resource limits and System V shared memory of your other processes"
_TRUNCATING = "truncating files outside"
_KEYS = "reading and changing the keys that the kernel holds for you"
_TERMINALS = "changing the settings of your terminals and other devices"


@dataclass(frozen=True, slots=True)
class Confinement:
    """How commands are confined on this machine. It is true if they are confined at all."""

    level: Level
    reason: str = ""
    """Why the level is not higher; empty at the highest."""
    landlock: int = 0
    """The version of the kernel's Landlock; 0 if it has none."""
    network: bool = True
    """False if the program gets no network."""

    def __bool__(self) -> bool:
        return self.level != "none"

    @property
    def can_block_network(self) -> bool:
        """True if a program can be kept from the network here."""
        return self.level in ("mounted", "supervised")

    def without_network(self) -> Confinement:
        """Return the confinement of a program that gets no network, as far as the system can keep it from that."""
        return replace(self, network=not self.can_block_network)

    @property
    def blocked(self) -> tuple[str, ...]:
        """The acts that are refused to a command."""
        return tuple(act for act, is_blocked in self._acts() if is_blocked)

    @property
    def stays_open(self) -> tuple[str, ...]:
        """The acts that stay possible, beyond writing in the folder."""
        if not self:
            return ("everything you can do",)
        still_possible = (act for act, is_blocked in self._acts() if not is_blocked)
        return (_READING, *still_possible)

    @property
    def summary(self) -> str:
        """A sentence or two for a user who decides about a command."""
        if not self:
            return f"It can do everything you can do: {self.reason}."
        return f"It can write in this folder only. Still open: {'; '.join(self.stays_open)}."

    @property
    def short_summary(self) -> str:
        """One sentence for a user who has read the summary."""
        if not self:
            return self.summary
        network = "use the network" if self.network else "not use the network"
        return f"It can write in this folder only, read every file you can read, and {network}."

    def as_json(self) -> dict[str, object]:
        """Return the level, its reason, and both lists, for programs."""
        return {
            "level": self.level,
            "reason": self.reason,
            "blocked": list(self.blocked),
            "stays_open": list(self.stays_open),
        }

    def _acts(self) -> tuple[tuple[str, bool], ...]:
        """Return each act that a level may block, and whether this one does."""
        is_confined = bool(self)
        is_mounted = self.level == "mounted"
        is_supervised = is_mounted or self.level == "supervised"
        # Landlock knows truncation since version 3, devices since 5 and signals since 6.
        return (
            (_NETWORK, not self.network),
            (_LATER, False),
            (_PRIORITY, False),
            (_WRITES, is_confined),
            (_METADATA, is_supervised),
            (_SOCKETS, is_supervised),
            (_MEMORY, is_confined),
            (_SIGNALS, is_confined and self.landlock >= 6),
            (_GIT, is_mounted),
            (_LIMITS, is_mounted),
            (_TRUNCATING, is_mounted or (is_confined and self.landlock >= 3)),
            (_KEYS, is_supervised),
            (_TERMINALS, is_confined and self.landlock >= 5),
        )


@cache
def find_confinement() -> Confinement:
    """Find the highest level this machine can set up, by starting the launcher. The result is cached."""
    if not sys.platform.startswith("linux"):
        return Confinement("none", "confinement needs Linux")

    reasons: list[str] = []
    for level in _LEVELS:
        reason = _probe_level(level)
        if not reason:
            why_not_higher = reasons[0] if reasons else ""
            return Confinement(level, why_not_higher, landlock_version())
        reasons.append(reason)
    return Confinement("none", reasons[-1])


def can_confine() -> bool:
    """Return True if commands can be confined on this machine."""
    return bool(find_confinement())


def _probe_level(level: Level) -> str:
    """Return the reason why a level cannot be set up here, or an empty string if it holds."""
    with tempfile.TemporaryDirectory(prefix="skillshelf-", ignore_cleanup_errors=True) as place:
        inside = os.path.realpath(os.path.join(place, "inside"))
        outside = os.path.join(place, "outside")
        repository = os.path.join(inside, ".git")
        os.makedirs(repository)

        # Exit status 0 if writing works inside and fails outside.
        script = 'echo x > written && ! (echo x > "$0") 2> /dev/null'
        try:
            with open_plan(level, writable=[inside], repositories=[repository]) as plan:
                command = launch_command(["/bin/sh", "-c", script, outside], plan)
                result = subprocess.run(command, cwd=inside, capture_output=True, timeout=_PROBE_SECONDS)
        except (OSError, subprocess.SubprocessError) as error:
            return f"the launcher did not start: {error}"

        if result.returncode == 0:
            return ""
        lines = result.stderr.decode(errors="replace").strip().splitlines()
        if not lines:
            return "a confined command could write outside its folder"
        return lines[-1]


def find_repositories(root: str) -> list[str]:
    """Return the Git directories below a folder, including bare ones and those of submodules, and the `.git` files.

    A command must not change their hooks and configuration. Links are not followed. Folders of dependencies and caches
    are left out. The search ends after 5,000 folders. Unlike `files.walk`, it goes level by level, so that a deep
    folder cannot use up the limit before its neighbours are searched.
    """
    repositories: list[str] = []
    pending = deque([root])
    searched = 0
    while pending and searched < _MAX_SEARCHED_FOLDERS:
        folder = pending.popleft()
        searched += 1
        try:
            with system.scandir(folder) as listing:
                entries = list(listing)
        except OSError:  # gone meanwhile, or not readable: then a command cannot read it either
            continue

        skipped = SKIPPED_FOLDERS
        if _NAMES_IN_GIT_DIRECTORY.issubset(entry.name for entry in entries):
            repositories.append(folder)
            skipped = _GIT_DATA_FOLDERS

        for entry in entries:
            path = os.path.join(folder, entry.name)
            is_folder = entry.is_dir(follow_symlinks=False)
            if entry.name == ".git":
                if is_folder:
                    pending.appendleft(path)  # before its neighbours, of which a clone can bring any number
                elif not entry.is_symlink():
                    repositories.append(path)
            elif is_folder and entry.name not in skipped:
                pending.append(path)
    return repositories
