"""Where skills come from: a folder, a package, memory."""

from skillshelf.files import Page
from skillshelf.found import Found
from skillshelf.sources.base import Source
from skillshelf.sources.directory import DirectorySource
from skillshelf.sources.memory import MemorySource
from skillshelf.sources.package import EntryPointSource, ObjectSource, PackageSource

__all__ = [
    "DirectorySource",
    "EntryPointSource",
    "Found",
    "MemorySource",
    "ObjectSource",
    "PackageSource",
    "Page",
    "Source",
]
