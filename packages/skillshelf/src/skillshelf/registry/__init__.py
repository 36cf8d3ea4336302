"""Skills from elsewhere: fetch them, install them, pin them in `skills.lock`, and compare them with it."""

from typing import TYPE_CHECKING

from skillshelf.lazy import export_lazily

if TYPE_CHECKING:
    from skillshelf.registry._installation import LOCK_FILE, Installation, project_installation, user_installation
    from skillshelf.registry._lock import (
        LockedSkill,
        Origin,
        Pin,
        SkillsLock,
        dump_lock,
        parse_lock,
        read_lock,
        read_lock_bytes,
    )
    from skillshelf.registry._locked_source import LockedSource
    from skillshelf.registry._manifest import WantedSkills, find_wanted, install_wanted
    from skillshelf.registry._operations import (
        NewSkill,
        SyncReport,
        describe_new,
        describe_review,
        find_edited,
        install,
        refuse_taken,
        remove,
        show_origin,
        sync,
    )
    from skillshelf.registry._other_locks import OtherOrigin, find_other_origins
    from skillshelf.registry._package import (
        OfferedSkill,
        Package,
        PackageFile,
        SkillContent,
        SourceKind,
        choose_offered,
        choose_plugin,
        find_offered,
        find_offered_plugins,
        read_content,
    )
    from skillshelf.registry._sources import open_source, parse_source
    from skillshelf.registry._status import Difference, SkillStatus, compare, count_same, is_in_sync, load_known
    from skillshelf.registry._transaction import Transaction, change_installation, is_interrupted
    from skillshelf.registry._updates import Newest, Update, find_newest, install_updates, merge_newest, undo_update

__all__ = [
    "LOCK_FILE",
    "Difference",
    "Installation",
    "LockedSkill",
    "LockedSource",
    "NewSkill",
    "Newest",
    "OfferedSkill",
    "Origin",
    "OtherOrigin",
    "Package",
    "PackageFile",
    "Pin",
    "SkillContent",
    "SkillStatus",
    "SkillsLock",
    "SourceKind",
    "SyncReport",
    "Transaction",
    "Update",
    "WantedSkills",
    "change_installation",
    "choose_offered",
    "choose_plugin",
    "compare",
    "count_same",
    "describe_new",
    "describe_review",
    "dump_lock",
    "find_edited",
    "find_newest",
    "find_offered",
    "find_offered_plugins",
    "find_other_origins",
    "find_wanted",
    "install",
    "install_updates",
    "install_wanted",
    "is_in_sync",
    "is_interrupted",
    "load_known",
    "merge_newest",
    "open_source",
    "parse_lock",
    "parse_source",
    "project_installation",
    "read_content",
    "read_lock",
    "read_lock_bytes",
    "refuse_taken",
    "remove",
    "show_origin",
    "sync",
    "undo_update",
    "user_installation",
]

# On demand: a workspace without a lock needs none of it.
__getattr__ = export_lazily(
    __name__,
    {
        "_installation": ["LOCK_FILE", "Installation", "project_installation", "user_installation"],
        "_lock": [
            "LockedSkill",
            "Origin",
            "Pin",
            "SkillsLock",
            "dump_lock",
            "parse_lock",
            "read_lock",
            "read_lock_bytes",
        ],
        "_locked_source": ["LockedSource"],
        "_manifest": ["WantedSkills", "find_wanted", "install_wanted"],
        "_operations": [
            "NewSkill",
            "SyncReport",
            "describe_review",
            "describe_new",
            "find_edited",
            "install",
            "refuse_taken",
            "remove",
            "show_origin",
            "sync",
        ],
        "_other_locks": ["OtherOrigin", "find_other_origins"],
        "_package": [
            "OfferedSkill",
            "Package",
            "PackageFile",
            "SkillContent",
            "SourceKind",
            "choose_offered",
            "choose_plugin",
            "find_offered",
            "find_offered_plugins",
            "read_content",
        ],
        "_sources": ["open_source", "parse_source"],
        "_status": ["Difference", "SkillStatus", "compare", "count_same", "is_in_sync", "load_known"],
        "_transaction": ["Transaction", "change_installation", "is_interrupted"],
        "_updates": ["Newest", "Update", "find_newest", "install_updates", "merge_newest", "undo_update"],
    },
)
