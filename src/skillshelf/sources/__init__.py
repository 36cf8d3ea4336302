"""Where skills come from: a folder, a package, memory."""

from skillshelf.files import Page
from skillshelf.found import Found
from skillshelf.sources._base import Source
from skillshelf.sources._directory import MAX_FOLDERS, DirectorySource
from skillshelf.sources._folder import MAX_DEPTH, SKILL_FILES, Entries, read_skill_folder
from skillshelf.sources._ignore import IgnoreRules
from skillshelf.sources._ignorefile import IGNORE_FILE, IgnoreFile
from skillshelf.sources._memory import MemorySource
from skillshelf.sources._modules import ImportFailed, imported, key_of
from skillshelf.sources._names import REFERENCE_FOLDERS, SKIPPED_FOLDERS, VERSION_CONTROL_FOLDERS
from skillshelf.sources._package import EntryPointSource, ObjectSource, PackageSource
from skillshelf.sources._resources import files_below, package_of, parts_below, references_package
from skillshelf.sources._tree import Tree

__all__ = [
    "IGNORE_FILE",
    "MAX_DEPTH",
    "MAX_FOLDERS",
    "REFERENCE_FOLDERS",
    "SKILL_FILES",
    "SKIPPED_FOLDERS",
    "VERSION_CONTROL_FOLDERS",
    "DirectorySource",
    "Entries",
    "EntryPointSource",
    "Found",
    "IgnoreFile",
    "IgnoreRules",
    "ImportFailed",
    "MemorySource",
    "ObjectSource",
    "PackageSource",
    "Page",
    "Source",
    "Tree",
    "files_below",
    "imported",
    "key_of",
    "package_of",
    "parts_below",
    "read_skill_folder",
    "references_package",
]
