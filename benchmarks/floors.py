"""The least that Python can do: system calls that any scan needs, and nothing made of what they return."""

import os

HEAD_BYTES = 1024


def read_heads(folder: str) -> int:
    """One scandir for each folder, one read of each SKILL.md's head, one stat of each other file for its size.

    Counts the skills.
    """
    heads = 0
    for entry in os.scandir(folder):
        if entry.name == "SKILL.md":
            fd = os.open(entry.path, os.O_RDONLY)
            os.read(fd, HEAD_BYTES)
            os.close(fd)
            heads += 1
        elif entry.is_dir():
            heads += read_heads(entry.path)
        else:
            entry.stat()
    return heads


def known_paths(folder: str) -> list[str]:
    """Every folder and every SKILL.md: what a start that knows the collection already has to look at."""
    paths = [folder]
    for home in sorted(os.listdir(folder)):
        paths += f"{folder}/{home}", f"{folder}/{home}/SKILL.md", f"{folder}/{home}/references"
    return paths


def stat_all(paths: list[str]) -> None:
    for path in paths:
        os.stat(path)
