"""A case: a workspace, what is said in it, and what must be true afterwards."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from skillshelf.evals._code_skills import CodeSkill
from skillshelf.evals.check import Check


@dataclass(frozen=True, slots=True)
class Message:
    """The person says something; `/skills:` commands too."""

    text: str


@dataclass(frozen=True, slots=True)
class Edit:
    """Another program changes a file of the workspace between two messages; None removes it."""

    path: str
    text: str | None


@dataclass(frozen=True, slots=True)
class Case:
    """Something a skill should, or should not, make happen."""

    name: str
    turns: tuple[Message | Edit, ...]
    checks: tuple[Check, ...] = ()
    skill: str = ""
    """The skill under test, where the case belongs to one."""
    should_trigger: bool | None = None
    """For a case of a trigger set: whether the skill should be loaded."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """The workspace, by path."""
    skills: tuple[str, ...] = ()
    """Folders of skills, or of folders of skills, that are on the shelf."""
    code_skills: tuple[CodeSkill, ...] = ()
    """Code skills that are on the shelf."""
    script: tuple[Any, ...] | None = None
    """What a scripted model says, step by step; None where the run's model answers."""
    policy: str = "yolo"
    tags: tuple[str, ...] = ()
    location: str = ""
    """`path:line` of where it is written."""
    model: str = ""
    """The model it is for, as `--model` takes it; empty where the run's model answers."""

    @property
    def id(self) -> str:
        """Tells it from every other case of a run, and stays the same from run to run."""
        return f"{self.skill}/{self.name}" if self.skill else self.name
