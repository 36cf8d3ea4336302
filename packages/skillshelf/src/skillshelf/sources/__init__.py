"""Where skills come from: a folder, a package, memory."""

from typing import TYPE_CHECKING

from skillshelf.files import Page
from skillshelf.lazy import export_lazily
from skillshelf.skills import Found
from skillshelf.sources._directory import DirectorySource, find_skill_places
from skillshelf.sources._ignore import IGNORE_FILE, IgnoreFile, IgnoreRules
from skillshelf.sources._limits import MAX_DEPTH, MAX_SKILL_BYTES, MAX_SKILL_FILES
from skillshelf.sources._memory import MemorySource
from skillshelf.sources._names import (
    REFERENCE_FOLDERS,
    SKIPPED_FOLDERS,
    VERSION_CONTROL_FOLDERS,
    explain_refused_path,
)
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
from skillshelf.sources._source import ENVIRONMENT, Cacheable, FolderSource, InFolder, Source
from skillshelf.sources._tree import SKILL_FILES, NoteKey, read_skill_folder

if TYPE_CHECKING:
    from skillshelf.sources._environment import EnvironmentSource
    from skillshelf.sources._plugins import (
        ListedFiles,
        Opener,
        Plugin,
        PluginOrigin,
        find_plugins,
        read_plugin,
        read_plugins,
    )

__all__ = [
    "BUNDLED",
    "ENVIRONMENT",
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
    "EnvironmentSource",
    "FolderSource",
    "Found",
    "IgnoreFile",
    "IgnoreRules",
    "ImportFailed",
    "InFolder",
    "ListedFiles",
    "MemorySource",
    "NoteKey",
    "ObjectSource",
    "Opener",
    "PackageSource",
    "Page",
    "Plugin",
    "PluginOrigin",
    "Source",
    "class_key",
    "explain_refused_path",
    "find_plugins",
    "find_references_package",
    "find_skill_places",
    "import_guarded",
    "list_package_files",
    "package_of",
    "read_plugin",
    "read_plugins",
    "read_skill_folder",
    "split_listed_path",
]

# Only projects with such packages, and repositories of plugins, need them.
__getattr__ = export_lazily(
    __name__,
    {
        "_environment": ["EnvironmentSource"],
        "_plugins": ["ListedFiles", "Opener", "Plugin", "PluginOrigin", "find_plugins", "read_plugin", "read_plugins"],
    },
)
