"""How much content can be approved, and how much of it a review shows."""

MAX_FILES = 2_000
MAX_BYTES = 50 * 1024 * 1024
MAX_MANIFEST = 4 * 1024 * 1024
"""Bytes of the list of files beside a copy."""
MAX_IMPORT = 100
"""Bytes of a file that does nothing but import the other one."""

# --- a review ---

MAX_INSTANCES = 10_000
"""No more instances of one kind are collected: a file of fifty megabytes can have millions."""
MAX_LISTED_INSTANCES = 100
MAX_LISTED_LINES = 10
"""Line numbers of one kind of instance."""
MAX_COMMAND_LINES = 20
"""Lines of a command in an eval case."""
MAX_COMPARE_STEPS = 40_000_000
"""Comparing takes about a second for this many steps. Beyond it, the new text is shown whole."""
