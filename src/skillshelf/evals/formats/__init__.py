"""Cases as people write them: YAML, Python, and the JSON of other tools."""
