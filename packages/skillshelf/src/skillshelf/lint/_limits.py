"""How much of a skill is checked, and how much a report lists."""

# --- what the format recommends ---

MAX_NAME = 64
MAX_COMPATIBILITY = 500
MAX_TOKENS = 5_000
MAX_LINES = 500
MAX_INLINE_TOKENS = 150
"""Two paragraphs of a code skill without references. Those that come with skillshelf have 80 to 220, and references."""

# --- one skill, so that no folder takes seconds; of 2,079 public skills, one has more than its share ---

MAX_FILES = 5_000
MAX_TEXT_BYTES = 2_000_000
MAX_EFFORT = 1_000_000
"""Microseconds of parsing."""
MAX_SEARCHED_ENTRIES = 20_000
"""Entries of a folder without a skill."""
MAX_COMPARISONS = 1_000_000
"""Each pattern is compared with every file. Beyond this many comparisons, further patterns name nothing."""
MAX_WORD = 400
MAX_MARKS = 20_000
"""The parser takes up to 40 µs for a line or mark, and more if there are many brackets that open nothing."""

# --- a report ---

MAX_QUOTED = 80
"""Characters of an author's text that a message repeats."""
MAX_LISTED_FAULTS = 20
"""A skill with ten thousand faults of one kind does not list them all."""
MAX_LISTED_FIELDS = 10
MAX_LISTED_CHARACTERS = 10
MAX_HIDDEN_LINES = 10
