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

__all__ = [
    "LOCK_FILE",
    "LockedSkill",
    "Origin",
    "Pin",
    "SkillsLock",
    "dump_lock",
    "parse_lock",
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
    },
)
