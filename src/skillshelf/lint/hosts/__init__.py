"""How other hosts load a skill: a verdict for each host, from the text and the place of a SKILL.md.

`hosts.json` records how each host treats a file with each condition, and which folders the programs among them read.
`benchmarks/portability.py` and `benchmarks/npm_hosts` measure it again.
"""

from skillshelf.lint.hosts._advice import Advice, advise
from skillshelf.lint.hosts._conditions import CONDITIONS, Condition
from skillshelf.lint.hosts._detect import find_conditions
from skillshelf.lint.hosts._map import STATES, MappedSkill, Sighting, SightingState, map_skills
from skillshelf.lint.hosts._verdicts import (
    AS_WRITTEN,
    OUTCOMES,
    HostKind,
    HostOutcome,
    HostRecord,
    HostVerdict,
    Position,
    SkillFile,
    find_file_conditions,
    find_skill_files,
    is_nested,
    judge_conditions,
    judge_for_host,
    load_records,
)

__all__ = [
    "AS_WRITTEN",
    "CONDITIONS",
    "OUTCOMES",
    "STATES",
    "Advice",
    "Condition",
    "HostKind",
    "HostOutcome",
    "HostRecord",
    "HostVerdict",
    "MappedSkill",
    "Position",
    "Sighting",
    "SightingState",
    "SkillFile",
    "advise",
    "find_conditions",
    "find_file_conditions",
    "find_skill_files",
    "is_nested",
    "judge_conditions",
    "judge_for_host",
    "load_records",
    "map_skills",
]
