"""How much of a folder is looked at."""

MAX_FOLDERS = 500_000
"""A workspace of 100,000 skills has 200,000 folders; a home folder opened by mistake has millions."""
MAX_DEPTH = 32
"""Nested folders."""
MAX_LINK_ROUNDS = 8
"""A link can lead to a folder with more links in it. Links that keep changing must not keep the scan going."""
MAX_REFERENCE_PATH = 1024
"""Characters."""
MAX_IGNORE_BYTES = 64 * 1024
"""Of an ignore file. Compiling one that is all wildcards takes 0.3 seconds."""
MAX_IGNORE_LINES = 1000
"""Each is compared with every folder."""
