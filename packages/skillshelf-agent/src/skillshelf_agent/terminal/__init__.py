"""The chat: `run_terminal` for a user at a screen, `Pipe` for one message and its answer. Needs the extra `chat`."""

from typing import TYPE_CHECKING

from skillshelf.lazy import export_lazily

if TYPE_CHECKING:
    from skillshelf_agent.terminal._face import OpenedAgent
    from skillshelf_agent.terminal._pipe import Pipe
    from skillshelf_agent.terminal._start import User, run_terminal

__all__ = ["OpenedAgent", "Pipe", "User", "run_terminal"]

# A terminal has its prompt after 0.2 s. A pipe imports the agent first, which takes a second more.
__getattr__ = export_lazily(
    __name__,
    {"_face": ["OpenedAgent"], "_pipe": ["Pipe"], "_start": ["User", "run_terminal"]},
    extra="chat",
)
