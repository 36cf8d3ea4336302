"""The only code that opens files: reading by descriptor, atomic writes, and skillshelf's own folders.

`system` holds the calls to the operating system. Whatever touches the disk goes through it, so that a test can make any
single call fail.
"""

from skillshelf.files import system as system
from skillshelf.files._gate import NotPlainFile, Page, open_below, open_folder, open_plain, read_file
from skillshelf.files._homes import cache_home, config_home, make_private_folders, state_home, user_skill_folders
from skillshelf.files._mounts import mounts_below
from skillshelf.files._write import replace_file, sync_folder, write_new

__all__ = [
    "NotPlainFile",
    "Page",
    "cache_home",
    "config_home",
    "make_private_folders",
    "mounts_below",
    "open_below",
    "open_folder",
    "open_plain",
    "read_file",
    "replace_file",
    "state_home",
    "sync_folder",
    "system",
    "user_skill_folders",
    "write_new",
]
