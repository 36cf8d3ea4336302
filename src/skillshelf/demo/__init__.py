"""The demonstration: a scripted conversation in a small workspace, and a recording of it.

`skillshelf.repl` plays the conversation in the real interface. The recording needs no extra.
"""

from skillshelf.demo._recording import Frame, Playback, dump_frames, read_recording
from skillshelf.demo._scenario import ANSWER, LINES, copy_workspace, script_path

__all__ = ["ANSWER", "LINES", "Frame", "Playback", "copy_workspace", "dump_frames", "read_recording", "script_path"]
