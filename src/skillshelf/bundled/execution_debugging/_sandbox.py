"""What keeps a run inside its folder on this machine."""

import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from skillshelf.agent import Confinement, find_confinement

_PROBE_SECONDS = 30.0
_BUBBLEWRAP_BLOCKS = (
    "writing, creating, renaming or deleting files outside the folder and a temporary one",
    "changing the mode, owner, times or attributes of files outside",
    "seeing, signalling or changing your other processes",
)
_BUBBLEWRAP_LEAVES = (
    "reading every file you can read",
    "connecting to Unix sockets outside (Docker, an SSH agent, tmux, a session bus)",
    "files in the folder that run later, such as a Makefile, an editor's tasks or a Git hook",
)
_NETWORK = "the network, including services on this machine"


@dataclass(frozen=True, slots=True)
class Sandbox:
    """How far runs are confined. It is true if they are confined at all."""

    level: str
    """`mounted`, `supervised`, `landlock`, `bubblewrap` or `none`."""
    reason: str
    """Why the level is not higher; empty at the highest."""
    blocked: tuple[str, ...]
    stays_open: tuple[str, ...]
    network: bool
    """True if runs can use the network."""
    bubblewrap: str = ""
    """The path of the program, if it makes the sandbox."""

    def __bool__(self) -> bool:
        return self.level != "none"

    @property
    def launcher_level(self) -> str:
        """The level that the agent's own launcher sets up."""
        return "none" if self.bubblewrap else self.level

    def wrap(self, words: Sequence[str], folder: str, writable: Sequence[str]) -> list[str]:
        """Return the words of a program as they have to be started, before the launcher adds its own."""
        if not self.bubblewrap:
            return list(words)
        return [*_bubblewrap_words(self.bubblewrap, folder, writable, network=self.network), *words]


def find_sandbox(*, network: bool, bubblewrap: str = "", confinement: Confinement | None = None) -> Sandbox:
    """Return the best sandbox of this machine. `network`: whether runs may use it.

    The agent's own confinement comes first. `bubblewrap`, the path of that program, is used if the confinement is
    missing, or has no filter for the network. `confinement` is found by itself if it is None.
    """
    if confinement is None:
        confinement = find_confinement()
    is_weak = not confinement.can_block_network
    if is_weak and bubblewrap and _probe_bubblewrap(bubblewrap):
        blocked = _BUBBLEWRAP_BLOCKS if network else (_NETWORK, *_BUBBLEWRAP_BLOCKS)
        stays_open = (*_BUBBLEWRAP_LEAVES, _NETWORK) if network else _BUBBLEWRAP_LEAVES
        return Sandbox("bubblewrap", confinement.reason, blocked, stays_open, network, bubblewrap)

    if not network:
        confinement = confinement.without_network()
    return Sandbox(
        confinement.level, confinement.reason, confinement.blocked, confinement.stays_open, confinement.network
    )


def _bubblewrap_words(program: str, folder: str, writable: Sequence[str], *, network: bool) -> list[str]:
    words = [program, "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    for path in writable:
        words += ["--bind", path, path]
    # The process namespace ends everything in it with its first process, whatever a program started.
    words += ["--unshare-all", "--die-with-parent", "--new-session", "--chdir", folder]
    if network:
        words.append("--share-net")
    return [*words, "--"]


@cache
def _probe_bubblewrap(program: str) -> bool:
    """Return True if a program under bubblewrap can write inside its folder and not outside."""
    with tempfile.TemporaryDirectory(prefix="skillshelf-", ignore_cleanup_errors=True) as place:
        inside = os.path.realpath(os.path.join(place, "inside"))
        os.mkdir(inside)
        script = 'echo x > written && ! (echo x > "$0") 2> /dev/null'
        words = _bubblewrap_words(program, inside, [inside], network=False)
        command = [*words, "/bin/sh", "-c", script, os.path.join(place, "outside")]
        try:
            done = subprocess.run(command, capture_output=True, timeout=_PROBE_SECONDS, stdin=subprocess.DEVNULL)
        except (OSError, subprocess.SubprocessError):
            return False
        return done.returncode == 0
