raise RuntimeError("a reference is compiled, never executed")

PATTERN = "MATCH (n)\d RETURN n"  # noqa: W605 - a warning at compile time, and nobody hears of it
