"""Web pages in the system's Chromium, behind a proxy that keeps the network rules."""

from skillshelf_skills.browser._limits import BrowserLimits
from skillshelf_skills.browser._results import BrowserError

__all__ = ["BrowserError", "BrowserLimits"]
