"""Texts that are stored beside a case, for checks to compare with."""

import os

MAX_STORED_FILE = 1024 * 1024


def read_stored(path: str) -> str:
    """Return the text of a file. Raises OSError, or ValueError if it is too large or not text."""
    # Without O_NONBLOCK, opening a named pipe would block forever.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        data = file.read(MAX_STORED_FILE + 1)
    if len(data) > MAX_STORED_FILE:
        raise ValueError(f"it is larger than {MAX_STORED_FILE // 1024} KiB")
    return data.decode("utf-8-sig")
