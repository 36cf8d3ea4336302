"""One module for each framework that a shelf works with. Each needs the extra of its name."""

from skillshelf.adapters._common import FrameworkTools, call_tool

__all__ = [
    "FrameworkTools",
    "call_tool",
]
