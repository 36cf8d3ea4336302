"""Mounts inside a root. A bind mount of the same file system looks like an ordinary folder to stat."""

import re

_ESCAPE = re.compile(r"\\([0-7]{3})")


def mounts_below(root: str) -> frozenset[str]:
    """Return the paths below `root` that are mount points, as far as the system tells."""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().splitlines()
    except OSError:  # not Linux: only the device number shows a mount
        return frozenset()
    points = (_ESCAPE.sub(lambda match: chr(int(match[1], 8)), line.split(" ", 5)[4]) for line in lines)
    return frozenset(point for point in points if point.startswith(root + "/"))
