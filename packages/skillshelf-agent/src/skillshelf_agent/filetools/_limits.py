"""How much the file tools read, write, search and return."""

MAX_CHARS = 50_000
"""The most characters of a page."""
MAX_LINES = 2000
MAX_MEDIA_BYTES = 5_000_000
"""The strictest limit for an image among the large providers."""
MAX_COUNTED_BYTES = 256 * 1024 * 1024
"""How far into a file lines are counted: a quarter of a second. The rest can be searched, but not paged."""

# --- writing ---

MAX_CHANGED_BYTES = 10 * 1024 * 1024
MAX_LINE_PAIRS = 4_000_000
"""Beyond this, `difflib` can take seconds: the middle of the diff is then all old lines and all new ones."""

# --- searching ---

MAX_WALKED = 100_000
MAX_IGNORE_BYTES = 64 * 1024
MAX_GLOB = 500
MAX_PATTERN = 1000
MAX_QUOTED_PATTERN = 200
MAX_SEARCHED_FILE = 10 * 1024 * 1024
MAX_LINE = 10_000
"""Longer lines are searched in their beginning only: `\\s+$` takes quadratic time, some 0.1 s for this many spaces."""
MAX_SLOW_FILES = 2
"""After this many files on which the pattern took too long, the pattern is to blame and not the files."""
SEARCH_SECONDS = 20.0
MAX_RESULTS = 1000
MAX_SHOWN_LINE = 500
"""The most characters of a line that a result holds."""
MAX_NAMED_FILES = 10
"""How many of the files that were left out are named."""
