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
MAX_SKILL_FILES = 512
"""Files of a skill, its SKILL.md included. Every host of the Skills extension takes as many."""
MAX_SKILL_BYTES = 16 * 1024 * 1024
"""Bytes of a skill's files together. Every host takes as many."""
