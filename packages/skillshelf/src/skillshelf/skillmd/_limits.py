"""How much of a SKILL.md is read. `bounded_yaml` limits its frontmatter."""

MAX_FILE = 1024 * 1024
"""Bytes."""
MAX_USABLE_NAME = 128
"""Characters. The format allows 64."""
MAX_REPAIRED_FIELDS = 256
"""Each field is parsed on its own; a hostile block with thousands of them must not take seconds."""
MAX_REPAIRED_LEVELS = 4
MAX_VARIABLES = 20
"""Variables that the metadata declares for scripts."""
MAX_VARIABLE_NAME = 128
