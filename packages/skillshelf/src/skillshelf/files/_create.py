"""Creating a folder with its files in one step."""

import os
from collections.abc import Mapping
from contextlib import suppress

from skillshelf.files import system
from skillshelf.files._gate import open_below
from skillshelf.files._homes import make_folders
from skillshelf.files._names import SCRATCH_FOLDER
from skillshelf.files._scratch import name_scratch, noting_scratch, remove_stale_scratch
from skillshelf.files._write import FOLDER, write_new


def create_folder(path: str, contents: Mapping[str, bytes]) -> None:
    """Create a folder with these files in one step: after a crash it is complete or not there.

    Raises FileExistsError if anything is at `path`. `contents` maps paths below the folder to their bytes. Missing
    parents of `path` are created first and stay, whatever happens.
    """
    parent, name = os.path.split(os.path.abspath(path))
    make_folders(parent)
    remove_stale_scratch(parent)
    draft = name_scratch()
    parent_fd = system.open(parent, FOLDER)
    try:
        if _exists(name, parent_fd):
            raise FileExistsError(f"{path} exists")
        with noting_scratch(parent, [SCRATCH_FOLDER, draft]):
            with suppress(FileExistsError):
                system.mkdir(SCRATCH_FOLDER, dir_fd=parent_fd)
            with open_below(parent_fd, [SCRATCH_FOLDER]) as scratch_fd:
                _write_tree(draft, contents, scratch_fd)
                system.rename(draft, name, src_dir_fd=scratch_fd, dst_dir_fd=parent_fd)
    finally:
        system.close(parent_fd)


def _exists(name: str, dir_fd: int) -> bool:
    try:
        system.stat(name, dir_fd=dir_fd, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _write_tree(folder: str, contents: Mapping[str, bytes], dir_fd: int) -> None:
    system.mkdir(folder, dir_fd=dir_fd)
    with open_below(dir_fd, [folder]) as top:
        for path, data in contents.items():
            *parents, name = path.split("/")
            for depth in range(1, len(parents) + 1):
                with suppress(FileExistsError):
                    system.mkdir("/".join(parents[:depth]), dir_fd=top)
            with open_below(top, parents) as inner:
                write_new(name, data, 0o666, dir_fd=inner)
