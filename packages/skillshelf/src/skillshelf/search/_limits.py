"""How much of a text that others wrote is searched, and how much of a query."""

MAX_INSTRUCTIONS = 6_000
"""Characters of the instructions that are searched: about a thousand words."""
MAX_REFERENCES = 100
MAX_COMPARED = 2_000
"""Characters of a text that are compared by meaning."""
MAX_QUERY = 4_000
"""Characters of a query."""
MAX_QUERY_WORDS = 200
MAX_WORD = 40
"""Characters of a word. A longer run is data: only its beginning is kept."""
