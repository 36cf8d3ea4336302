"""The chat: `Terminal` for a user at a screen, `Pipe` for one message and its answer. Needs the extra `chat`.

`play_demo` plays the demonstration on a screen, and `record_demo` records it.
"""

from typing import TYPE_CHECKING

from skillshelf._lazy import export_lazily

if TYPE_CHECKING:
    from skillshelf.repl._demo import play_demo, record_demo
    from skillshelf.repl._picker import pick_session
    from skillshelf.repl._pipe import Pipe
    from skillshelf.repl._terminal import Terminal

__all__ = ["Pipe", "Terminal", "pick_session", "play_demo", "record_demo"]

__getattr__ = export_lazily(
    __name__,
    {"_demo": ["play_demo", "record_demo"], "_picker": ["pick_session"], "_pipe": ["Pipe"], "_terminal": ["Terminal"]},
    extra="chat",
)
