"""How other hosts load a skill: a verdict for each host, from the text and the place of a SKILL.md.

`hosts.json` records how each host treats a file with each condition, and which folders the programs among them read.
`benchmarks/portability.py` and `benchmarks/npm_hosts` measure it again.
"""

from skillshelf.lint.hosts._advice import Advice, advise
from skillshelf.lint.hosts._conditions import CONDITIONS, Condition
from skillshelf.lint.hosts._detect import find_conditions
from skillshelf.lint.hosts._map import MappedSkill, Sighting, map_skills
from skillshelf.lint.hosts._verdicts import (
    OUTCOMES,
    HostRecord,
    HostVerdict,
    find_file_conditions,
    find_skill_files,
    is_nested,
    judge_conditions,
    load_records,
)

__all__ = [
    "CONDITIONS",
    "OUTCOMES",
    "Advice",
    "Condition",
    "HostRecord",
    "HostVerdict",
    "MappedSkill",
    "Sighting",
    "advise",
    "find_conditions",
    "find_file_conditions",
    "find_skill_files",
    "is_nested",
    "judge_conditions",
    "load_records",
    "map_skills",
]
