"""How much is taken from documents, pages, graphs and their servers."""

MAX_QUESTION = 2_000
"""Characters that the sources get. A longer question is a document."""
MAX_REASON = 300
"""Characters of a server's or library's own message."""

# --- texts ---

MAX_CHARACTERS = 1_500
"""Of one passage: about 400 tokens, and less than the part of a text that is compared by meaning."""
MAX_PASSAGES = 5_000
"""Of one text. One of 5 MB has fewer, unless it was made of nothing but headings."""
MAX_TITLE = 160
MAX_DEPTH = 5_000
"""Of calls: pages nest deeply."""
MAX_ANSWER = 20_000_000
"""Bytes of a worker's answer."""

# --- graphs and tables ---

MAX_GRAPH_ROWS = 300
MAX_LINES = 20
"""Properties of a node in one passage, and relationships."""
MAX_VALUE = 300
"""Characters of a property in a passage. A query returns more of it."""
MAX_SCHEMA_ROWS = 500
MAX_TEXT = 1_900
"""Characters of a row's text."""
MAX_WORDS = 50
"""Words of a question that are looked for in a table."""
