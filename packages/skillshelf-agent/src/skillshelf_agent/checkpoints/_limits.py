"""How much of a workspace the checkpoints cover, copy and keep."""

ENTRIES = 200_000
"""Files and folders of a workspace. In a larger one, changes by commands cannot be taken back: looking at so many takes
about a second and a half."""
SWEPT_TWICE = 20_000
"""Up to this many files and folders, each command has a sweep before it, so that the user's edits between two commands
of a turn are not taken for changes of the second one. A larger workspace is swept once in a turn."""
FILES_AT_ONCE = 20_000
"""Files that one command waits for, the first time about a second. The others are copied before later ones."""
FILE_BYTES = 10 * 1024 * 1024
"""What a command does to a larger file cannot be taken back: it is not copied. The file tools have this limit too."""
COPIED_BYTES = 256 * 1024 * 1024
"""Of all copied files together. Those modified last come first."""
BATCH_BYTES = 16 * 1024 * 1024
"""Contents are written in batches of this size, so that they never fill the memory."""

# The oldest checkpoints go first, whichever session and workspace they are of.
KEPT_TURNS = 500
KEPT_BYTES = 512 * 1024 * 1024
KEPT_DAYS = 30
