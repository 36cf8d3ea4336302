"""Where skills come from: a folder, a package, memory."""

from skillshelf.files import Page
from skillshelf.skills import Found
from skillshelf.sources._directory import DirectorySource, find_skill_places
from skillshelf.sources._ignore import IGNORE_FILE, IgnoreFile, IgnoreRules
from skillshelf.sources._limits import MAX_DEPTH, MAX_SKILL_BYTES, MAX_SKILL_FILES
from skillshelf.sources._memory import MemorySource
from skillshelf.sources._names import REFERENCE_FOLDERS, SKIPPED_FOLDERS, VERSION_CONTROL_FOLDERS
from skillshelf.sources._package import (
    BUNDLED,
    ClassSource,
    EntryPointSource,
    ImportFailed,
    ObjectSource,
    PackageSource,
    class_key,
    import_guarded,
)
from skillshelf.sources._resources import (
    find_references_package,
    list_package_files,
    package_of,
    split_listed_path,
)
from skillshelf.sources._source import Cacheable, InFolder, Source
from skillshelf.sources._tree import SKILL_FILES, NoteKey, read_skill_folder

__all__ = [
    "BUNDLED",
    "IGNORE_FILE",
    "MAX_DEPTH",
    "MAX_SKILL_BYTES",
    "MAX_SKILL_FILES",
    "REFERENCE_FOLDERS",
    "SKILL_FILES",
    "SKIPPED_FOLDERS",
    "VERSION_CONTROL_FOLDERS",
    "Cacheable",
    "ClassSource",
    "DirectorySource",
    "EntryPointSource",
    "Found",
    "IgnoreFile",
    "IgnoreRules",
    "ImportFailed",
    "InFolder",
    "MemorySource",
    "NoteKey",
    "ObjectSource",
    "PackageSource",
    "Page",
    "Source",
    "class_key",
    "find_references_package",
    "find_skill_places",
    "import_guarded",
    "list_package_files",
    "package_of",
    "read_skill_folder",
    "split_listed_path",
]
