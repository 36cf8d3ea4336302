"""What other hosts make of a skill: from its text and its place to a verdict for each. Pure; the table was measured.

`hosts.json` holds what each host's own loader did with one file for each condition here. `benchmarks/portability.py`
writes it anew.
"""

from skillshelf.lint.hosts._conditions import CONDITIONS, Condition
from skillshelf.lint.hosts._judged import WORDS, Makes, Verdict, judge, table
from skillshelf.lint.hosts._seen import find_conditions

__all__ = ["CONDITIONS", "WORDS", "Condition", "Makes", "Verdict", "find_conditions", "judge", "table"]
