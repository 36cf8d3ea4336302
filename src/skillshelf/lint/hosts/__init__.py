"""How other hosts load a skill: a verdict for each host, from the text and the place of a SKILL.md.

`hosts.json` records how the loader of each host treats a file with each condition. `benchmarks/portability.py`
measures it again.
"""

from skillshelf.lint.hosts._conditions import (
    CONDITIONS,
    OUTCOMES,
    Condition,
    HostOutcome,
    Verdict,
    judge,
    load_measurements,
)
from skillshelf.lint.hosts._detect import find_conditions

__all__ = [
    "CONDITIONS",
    "OUTCOMES",
    "Condition",
    "HostOutcome",
    "Verdict",
    "find_conditions",
    "judge",
    "load_measurements",
]
