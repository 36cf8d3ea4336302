"""Images from the clipboard, by the programs that the system has for it."""

import os
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence

from skillshelf.errors import SkillError
from skillshelf.sandbox import CleanPath

_TYPES = ("image/png", "image/jpeg", "image/webp", "image/gif")
_SELECTION = ("-selection", "clipboard", "-o", "-t")
_PNG_IN_HEX = re.compile(rb"PNGf([0-9A-Fa-f]+)")
_SECONDS = 5.0
"""How long a program may take. It asks the one that the image was copied in, which may hang."""


def read_image(workspace: str) -> bytes:
    """Return the image in the clipboard. Raises SkillError if there is none, or no program that can read it.

    No program of the workspace is used: the agent's commands could have put it there.
    """
    readers = list(_find_readers(CleanPath(workspace)))
    if not readers:
        raise SkillError(
            "Images can't be pasted here: that needs wl-paste (on Wayland), xclip (on X11) or pngpaste (on macOS)."
        )
    for read in readers:
        image = read()
        if image:
            return image
    raise SkillError("There is no image in the clipboard.")


def _find_readers(programs: CleanPath) -> Iterator[Callable[[], bytes]]:
    """Yield what may read the clipboard. Over ssh, nothing does: there is no desktop."""
    wl_paste = programs.find("wl-paste")
    if wl_paste and os.environ.get("WAYLAND_DISPLAY"):
        yield lambda: _read_typed([wl_paste, "--list-types"], [wl_paste, "--type"])
    xclip = programs.find("xclip")
    if xclip and os.environ.get("DISPLAY"):
        yield lambda: _read_typed([xclip, *_SELECTION, "TARGETS"], [xclip, *_SELECTION])
    pngpaste = programs.find("pngpaste")
    if pngpaste:
        yield lambda: _run([pngpaste, "-"])
    osascript = programs.find("osascript")
    if osascript:  # which every macOS has
        yield lambda: _read_by_script(osascript)


def _read_typed(list_types: Sequence[str], read: Sequence[str]) -> bytes:
    """Return the clipboard as the first type of an image that it has; empty if it has none."""
    types = _run(list_types).decode(errors="replace").split()
    wanted = next((each for each in _TYPES if each in types), "")
    return _run([*read, wanted]) if wanted else b""


def _read_by_script(osascript: str) -> bytes:
    found = _PNG_IN_HEX.search(_run([osascript, "-e", "get the clipboard as «class PNGf»"]))
    return bytes.fromhex(found[1].decode()) if found else b""


def _run(command: Sequence[str]) -> bytes:
    """Return the output of a program; empty if it failed, as all of them do if there is nothing to read."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return b""
    return done.stdout if done.returncode == 0 else b""
