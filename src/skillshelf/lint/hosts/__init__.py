"""How other hosts load a skill: from its text and its place to a verdict for each host, without opening files.

`hosts.json` records what each host's own loader did with a file for each condition. `benchmarks/portability.py`
measures it again.
"""

from skillshelf.lint.hosts._conditions import CONDITIONS, Condition
from skillshelf.lint.hosts._skill_text import find_conditions
from skillshelf.lint.hosts._verdicts import OUTCOMES, HostOutcome, Verdict, judge, load_measurements

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
