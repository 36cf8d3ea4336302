"""The only code that opens files: reading by descriptor, walking, atomic writes, locks, skillshelf's own folders.

`system` holds the calls to the operating system. Whatever touches the disk goes through it, so that a test can make any
single call fail.
"""

from typing import TYPE_CHECKING

from skillshelf.files import system
from skillshelf.files._gate import (
    FRESH_NS,
    NotPlainFile,
    Page,
    file_stamp,
    find_link,
    is_fresh,
    open_below,
    open_file_below,
    open_folder,
    open_folder_below,
    open_plain,
    read_at,
    read_file,
)
from skillshelf.files._homes import (
    NotPrivate,
    cache_home,
    config_home,
    make_folders,
    make_private_folders,
    read_private,
    state_home,
    user_skill_folders,
)
from skillshelf.files._identity import FolderIdentity, identify
from skillshelf.files._lock import LockTimeout, hold_lock, try_lock
from skillshelf.files._names import (
    SCRATCH_FOLDER,
    count_shared_names,
    fold_name,
    is_at_or_inside,
    is_inside,
    split_below,
)
from skillshelf.files._thread_locks import make_lock
from skillshelf.files._walk import TreeEntry, list_folder, mounts_below, walk
from skillshelf.lazy import export_lazily

if TYPE_CHECKING:
    from skillshelf.files._create import create_folder
    from skillshelf.files._replace import (
        ABSENT,
        FileChanged,
        hash_content,
        make_folder_below,
        make_link_below,
        read_version,
        remove_below,
        remove_folder_below,
        replace_below,
        set_mode_below,
    )
    from skillshelf.files._scratch import remove_stale_scratch
    from skillshelf.files._write import replace_file, sync_folder, write_all, write_new

__all__ = [
    "ABSENT",
    "FRESH_NS",
    "SCRATCH_FOLDER",
    "FileChanged",
    "FolderIdentity",
    "LockTimeout",
    "NotPlainFile",
    "NotPrivate",
    "Page",
    "TreeEntry",
    "cache_home",
    "config_home",
    "count_shared_names",
    "create_folder",
    "file_stamp",
    "find_link",
    "fold_name",
    "hash_content",
    "hold_lock",
    "identify",
    "is_at_or_inside",
    "is_fresh",
    "is_inside",
    "list_folder",
    "make_folder_below",
    "make_folders",
    "make_link_below",
    "make_lock",
    "make_private_folders",
    "mounts_below",
    "open_below",
    "open_file_below",
    "open_folder",
    "open_folder_below",
    "open_plain",
    "read_at",
    "read_file",
    "read_private",
    "read_version",
    "remove_below",
    "remove_folder_below",
    "remove_stale_scratch",
    "replace_below",
    "replace_file",
    "set_mode_below",
    "split_below",
    "state_home",
    "sync_folder",
    "system",
    "try_lock",
    "user_skill_folders",
    "walk",
    "write_all",
    "write_new",
]

# Most programs only read, and what writing needs (hashlib, secrets, shutil) takes 7 ms to import.
__getattr__ = export_lazily(
    __name__,
    {
        "_create": ["create_folder"],
        "_replace": [
            "ABSENT",
            "FileChanged",
            "hash_content",
            "make_folder_below",
            "make_link_below",
            "read_version",
            "remove_below",
            "remove_folder_below",
            "replace_below",
            "set_mode_below",
        ],
        "_scratch": ["remove_stale_scratch"],
        "_write": ["replace_file", "sync_folder", "write_all", "write_new"],
    },
)
