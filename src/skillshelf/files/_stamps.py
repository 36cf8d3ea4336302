"""Noticing a change of a file from its status, without reading it."""

import os

FRESH_NS = 2_000_000_000
"""A file that changes twice within one tick of the clock keeps its stamp, so a stamp this young proves nothing."""


def file_stamp(info: os.stat_result) -> tuple[int, ...]:
    """Return the values of a file's status that change whenever the file does."""
    return info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns


def is_fresh(info: os.stat_result, now: int) -> bool:
    """Return True if a file changed so shortly before `now` (in nanoseconds) that its stamp may miss a further change.

    Only the change time counts: unlike the modification time, it cannot be set back.
    """
    return info.st_ctime_ns > now - FRESH_NS
