"""The cache of whole skills by content: the base of a merge, and what an update replaced."""

import os
from contextlib import suppress
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from skillshelf.errors import RegistryError
from skillshelf.files import NotPlainFile, cache_home, make_private_folders, read_file, replace_file
from skillshelf.registry._local import MAX_ARCHIVE, open_archive
from skillshelf.registry._package import SkillContent, read_content


def keep(content: SkillContent) -> None:
    """Keep a skill as an archive. Raises OSError."""
    folder = _folder()
    path = f"{folder}/{content.snapshot.tree}.zip"
    if os.path.lexists(path):
        return
    data = BytesIO()
    with ZipFile(data, "w") as archive:
        for entry in content.snapshot.entries:
            member = ZipInfo(f"{content.name}/{entry.path}")
            member.external_attr = (0o755 if entry.executable else 0o644) << 16
            archive.writestr(member, content.files[entry.path], ZIP_DEFLATED)
    make_private_folders(folder)
    replace_file(path, data.getvalue())


def recall(name: str, tree: str) -> SkillContent | None:
    """Return a skill that was kept; None if it is not there, or not what it should be."""
    with suppress(OSError, NotPlainFile, RegistryError):
        data = read_file(_folder(), [f"{tree}.zip"], 0, MAX_ARCHIVE + 1).data
        content = read_content(open_archive(data, f"{tree}.zip"), name, name)
        if content.snapshot.tree == tree:
            return content
    return None


def _folder() -> str:
    cache = cache_home()
    if cache is None:
        raise OSError("this user has no home for a cache; set XDG_CACHE_HOME")
    return os.path.join(cache, "skills")
