"""The chat: `Terminal` for a user at a screen, `Pipe` for one message and its answer. Needs the extra `chat`."""

from typing import TYPE_CHECKING

from skillshelf._lazy import export_lazily

if TYPE_CHECKING:
    from skillshelf.repl._pipe import Pipe
    from skillshelf.repl._terminal import Terminal

__all__ = ["Pipe", "Terminal"]

__getattr__ = export_lazily(__name__, {"_pipe": ["Pipe"], "_terminal": ["Terminal"]}, extra="chat")
