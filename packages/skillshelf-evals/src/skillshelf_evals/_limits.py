"""How much is read of what others wrote: case files, what a trial leaves behind, and results of runs.

Each limit is enforced once, where the thing is read.
"""

KIB = 1024
MIB = 1024 * KIB

# Case files, and what they name.
MAX_CASE_FILE = MIB
MAX_CASE_VALUES = 100_000
"""Texts, numbers, lists and mappings of a case file."""
MAX_WORKSPACE = 16 * MIB
"""All files that a case puts into the workspace."""
MAX_REFERENCE_READ = 4 * MIB
"""Headings beyond this many bytes of a reference are not found."""
MAX_COMMAND = 20_000
"""Characters. Linux gives a program no argument of more than 128 KiB."""
MAX_COMMAND_SECONDS = 600.0

# What a trial keeps of the files and commands of its workspace. A model can write any amount.
MAX_TEXT_KEPT = 256 * KIB
"""Checks can search the text of files up to this size."""
MAX_FILE_KEPT = 8 * MIB
"""Checks get the bytes of a new or changed file up to this size,"""
MAX_FILES_KEPT = 32 * MIB
"""and of as many files as have this size together."""
MAX_INPUTS_KEPT = 64 * KIB
"""Judges can be shown the files that a case brings up to this size together."""
MAX_OUTPUT_KEPT = 20_000
"""Characters of stdout, and of stderr, that a trace keeps of one command."""
MAX_EXPONENT = 400
"""Of a number in a table: more than any measured one has. Arithmetic with much larger exponents fails."""
SEARCH_SECONDS = 3.0
"""A search for a pattern is stopped after this time."""
MAX_TEXT_SEARCHED_HERE = 4096
"""A simple pattern is searched for in this process: that takes some milliseconds for this much text."""
MAX_CALLS_COMPARED = 2000
"""Recorded calls that are read to name the nearest one in a message."""

# What a judge is shown of a trial, in characters. All parts together are 130,000, about 33,000 tokens.
MAX_SHOWN_MESSAGES = 20_000
MAX_SHOWN_INPUTS = 20_000
MAX_SHOWN_STEPS = 40_000
MAX_SHOWN_FILES = 20_000
MAX_SHOWN_ANSWERS = 20_000
MAX_SHOWN_COMMANDS = 10_000
MAX_SHOWN_TEXT = 8_000
"""The most that one text of a part gets,"""
MIN_SHOWN_TEXT = 500
"""and the least."""
MAX_SHOWN_NAME = 300
MAX_JUDGE_REASON = 400
"""Characters that are kept of a judge's reason."""

# What is kept beside the report.
MAX_TRIAL_ARTEFACTS = 100
MAX_ARTEFACT_NAME = 60
MAX_TRIAL_SIZE = 16 * MIB
MAX_RUN_SIZE = 64 * MIB
MAX_VIEW_SIZE = MIB
"""Larger HTML files can be read as text only."""

# Results of runs.
MAX_AMOUNT = 1e15
"""The most tokens, seconds or dollars of a trial that is believed. Sums of more than this many would overflow."""
MAX_RUN_DEPTH = 4
"""Folders below the one whose runs are listed."""
