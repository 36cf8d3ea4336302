"""Skills from elsewhere: fetch them, install them, pin them in `skills.lock`, and compare them with it."""

from typing import TYPE_CHECKING

from skillshelf.lazy import export_lazily

if TYPE_CHECKING:
    from skillshelf.registry._lock import (
        LOCK_FILE,
        LockedSkill,
        Origin,
        Pin,
        SkillsLock,
        dump_lock,
        parse_lock,
        read_lock,
    )
    from skillshelf.registry._package import (
        OfferedSkill,
        Package,
        PackageFile,
        SkillContent,
        SourceKind,
        choose_offered,
        find_offered,
        read_content,
    )
    from skillshelf.registry._sources import open_source, parse_source

__all__ = [
    "LOCK_FILE",
    "LockedSkill",
    "OfferedSkill",
    "Origin",
    "Package",
    "PackageFile",
    "Pin",
    "SkillContent",
    "SkillsLock",
    "SourceKind",
    "choose_offered",
    "dump_lock",
    "find_offered",
    "open_source",
    "parse_lock",
    "parse_source",
    "read_content",
    "read_lock",
]

# On demand: a workspace without a lock needs none of it.
__getattr__ = export_lazily(
    __name__,
    {
        "_lock": [
            "LOCK_FILE",
            "LockedSkill",
            "Origin",
            "Pin",
            "SkillsLock",
            "dump_lock",
            "parse_lock",
            "read_lock",
        ],
        "_package": [
            "OfferedSkill",
            "Package",
            "PackageFile",
            "SkillContent",
            "SourceKind",
            "choose_offered",
            "find_offered",
            "read_content",
        ],
        "_sources": ["open_source", "parse_source"],
    },
)
